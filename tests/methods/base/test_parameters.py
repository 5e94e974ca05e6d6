"""Declared parameters: one line gives the constructor, the check, the docstring and what scikit-learn needs."""

import inspect
import pydoc
from typing import Literal

import pytest
from tests.methods.every_method import METHODS

import dpals
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.parameters import COUNT, SHARE, OneOf, Parameters, Within, attribute, parameter


class Walk(Parameters):
    """Walks.

    Examples
    --------
    >>> Walk("north").steps
    3
    """

    to: str = parameter("Where to.", kw_only=False)
    steps: int = parameter("How many steps.", COUNT, default=3, kw_only=False)
    pace: Literal["slow", "fast"] = parameter("How fast.", default="slow")
    seed: int | None = parameter("Of the way.", default=None, last=True)
    way_: list[str] = attribute("Where it led.")
    hidden_: int = attribute()


class Run(Walk):
    """Runs."""

    pace: Literal["fast", "faster"] = parameter("How fast.", default="fast")
    rest: float = parameter("Share of the time.", SHARE, default=0.5)


def test_the_signature_is_that_of_a_constructor_written_out():
    class Written:
        def __init__(
            self, to: str, steps: int = 3, *, pace: Literal["slow", "fast"] = "slow", seed: int | None = None
        ) -> None:
            self.to, self.steps, self.pace, self.seed = to, steps, pace, seed

    assert inspect.signature(Walk) == inspect.signature(Written)
    assert inspect.signature(Walk.__init__) == inspect.signature(Written.__init__)


def test_a_subclass_adds_and_changes_and_the_last_stay_last():
    assert str(inspect.signature(Run)) == (
        "(to: str, steps: int = 3, *, pace: Literal['fast', 'faster'] = 'fast', rest: float = 0.5, "
        "seed: int | None = None) -> None"
    )
    assert repr(Run("south", 4)) == "Run(to='south', steps=4, pace='fast', rest=0.5, seed=None)"


def test_arguments_are_stored_and_nothing_else_happens():
    unheard = object()
    walk = Walk(unheard, pace=unheard)
    assert vars(walk) == {"to": unheard, "steps": 3, "pace": unheard, "seed": None}
    assert not hasattr(Walk, "steps"), "a default is no value of an object that was never made"
    assert not hasattr(walk, "way_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "missing a required argument: 'to'"),
        ({"to": "north", "colour": "red"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_wrong_names_are_type_errors_that_name_the_class(arguments, message):
    with pytest.raises(TypeError, match=rf"^Walk\(\) .*{message}"):
        Walk(**arguments)
    with pytest.raises(TypeError, match="too many positional"):
        Walk("north", 3, "slow")


def test_get_and_set_are_those_of_scikit_learn():
    walk = Walk("north", 7)
    assert walk.get_params() == {"to": "north", "steps": 7, "pace": "slow", "seed": None}
    assert walk.set_params(steps=4, seed=9) is walk
    assert (walk.to, walk.steps, walk.seed) == ("north", 4, 9)
    with pytest.raises(ValueError, match=r"Walk has no parameter 'sigma': \['to', 'steps', 'pace', 'seed'\]"):
        walk.set_params(sigma=1)


@pytest.mark.parametrize(
    ("walk", "message"),
    [
        (Walk("north", 0), "steps must be a whole number of at least 1, got 0"),
        (Walk("north", True), "steps must be a whole number of at least 1, got True"),
        (Walk("north", pace="faster"), "pace must be one of slow, fast, got 'faster'"),
        (Run("north", pace="slow"), "pace must be one of fast, faster, got 'slow'"),
        (Run("north", rest=1), "rest must be a number above 0 and below 1, got 1"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named_with_what_is_allowed(walk, message):
    with pytest.raises(ValueError) as problem:  # noqa: PT011, the whole text is compared
        walk.check_parameters()
    assert str(problem.value) == message


@pytest.mark.parametrize(
    "walk", [Walk("north"), Walk(None, 1, pace="fast", seed="any"), Run("north", rest=0.1)], ids=str
)
def test_right_values_pass(walk):
    walk.check_parameters()


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (Within(), "a number above 0"),
        (Within(closed=True, optional=True), "a number of at least 0 or None"),
        (Within(low=1, high=9, closed=True, whole=True), "a whole number of at least 1 and at most 9"),
        (OneOf(("a", "b")), "one of a, b"),
    ],
)
def test_what_is_allowed_is_said_in_words(allowed, text):
    assert str(allowed) == text


def test_the_docstring_has_every_parameter_before_the_examples():
    assert (
        Walk.__doc__
        == """Walks.

Parameters
----------
to : str
    Where to.
steps : int, default 3
    How many steps.
pace : {'slow', 'fast'}, default 'slow'
    How fast.
seed : int | None, default None
    Of the way.

Attributes
----------
way_ : list[str]
    Where it led.

Examples
--------
>>> Walk("north").steps
3"""
    )
    assert "rest : float, default 0.5\n    Share of the time.\nseed : int | None" in Run.__doc__


@pytest.mark.parametrize("name", METHODS)
def test_help_shows_every_argument_of_a_method_with_its_sentence(name):
    method = getattr(dpals, name)
    text = pydoc.render_doc(method, renderer=pydoc.plaintext)
    for argument, declared in method._parameters.items():
        assert f" {argument} : " in text
        assert declared.text.endswith("."), f"{argument} of {name} has no whole sentence"
    assert list(method._parameters) == method._parameter_names()


class TestMethodsOfOthers:
    """A constructor that is written out is left alone, as the documentation of the audit has it."""

    class Written(PrivateEstimator):
        """Written out."""

        def __init__(self, epsilon=1.0, *, insecure_seed=None):
            self.epsilon = epsilon
            self.delta = 1e-6
            self.insecure_seed = insecure_seed

    class Below(Written):
        """Has no constructor of its own."""

    class Bare(PrivateEstimator):
        pass

    def test_their_arguments_are_those_of_their_constructor(self):
        for method in (self.Written, self.Below):
            assert method(3.0).get_params() == {"epsilon": 3.0, "insecure_seed": None}
            assert "Parameters" not in method.__doc__
            method(3.0).check_parameters()

    def test_without_a_constructor_they_have_the_budget(self):
        assert self.Bare(3.0).get_params() == {"epsilon": 3.0, "delta": 1e-5, "insecure_seed": None}
