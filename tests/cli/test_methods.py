"""Methods by their names on the command line."""

import click
import pytest

import dpals
from dpals.cli.methods import NOT_PRIVATE_CHOICES, PRIVATE_CHOICES, estimator_of, required_epsilon


@pytest.mark.parametrize("name", PRIVATE_CHOICES)
def test_private_methods(name):
    estimator = estimator_of(name, 2.0, 1e-5, ())
    assert type(estimator) is getattr(dpals, PRIVATE_CHOICES[name])
    assert (estimator.epsilon, estimator.delta) == (2.0, 1e-5)


@pytest.mark.parametrize("name", NOT_PRIVATE_CHOICES)
def test_methods_without_privacy(name):
    assert type(estimator_of(name, None, 1e-6, ())) is getattr(dpals, NOT_PRIVATE_CHOICES[name])
    with pytest.raises(click.UsageError, match=f"{name} is not private"):
        estimator_of(name, 1.0, 1e-6, ())


def test_every_estimator_of_the_package_has_a_name():
    """But for the search, which takes a method."""
    from dpals.methods.base.estimator import Estimator

    kinds = [getattr(dpals, name) for name in dpals.__all__]
    estimators = {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, Estimator)}
    assert {*PRIVATE_CHOICES.values(), *NOT_PRIVATE_CHOICES.values()} == estimators - {"PrivateSearch"}


def test_settings():
    settings = ("rank=3", "clip=2.5", "seed=None", "loss=robust=ly")
    with pytest.raises(click.UsageError, match="'loss'"):
        estimator_of("pooled", 1.0, 1e-6, settings)
    estimator = estimator_of("pooled", 1.0, 1e-6, settings[:2])
    assert (estimator.rank, estimator.clip) == (3, 2.5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rank", "--set takes NAME=VALUE, for example --set rank=16, not 'rank'"),
        ("epsilon=3", "give epsilon as --epsilon 3, not with --set"),
        ("ranc=3", "PooledDPALS has no parameter 'ranc'"),
    ],
)
def test_wrong_settings_are_usage_errors(setting, message):
    with pytest.raises(click.UsageError) as refusal:
        estimator_of("pooled", 1.0, 1e-6, (setting,))
    assert message in refusal.value.message


def test_epsilon_has_no_default():
    assert required_epsilon(2.0) == 2.0
    with pytest.raises(click.UsageError, match="say how much privacy to spend with --epsilon"):
        estimator_of("pooled", None, 1e-6, ())
