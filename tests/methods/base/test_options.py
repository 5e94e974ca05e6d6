"""Options and callbacks: what they promise for every method."""

import logging
import os
import pty
import subprocess
import sys

import numpy as np
import pytest

import dpals
from dpals.kernels.threads import thread_count
from dpals.methods.base.registry import NOT_PRIVATE

METHODS = {
    "PooledDPALS": ({"rank": 2, "steps": 3}, 3),
    "DPALS": ({"rank": 2, "steps": 2}, 2),
    "AdaDPALS": ({"rank": 2, "steps": 2}, 2),
    "DPFrankWolfe": ({"steps": 3}, 3),
    "DPSGD": ({"rank": 2, "steps": 3}, 3),
    "SGLD": ({"rank": 2, "steps": 3}, 3),
    "PrivateBiases": ({"steps": 2}, 2),
    "ALS": ({"rank": 2, "steps": 3}, 3),
    "StagewiseALS": ({"rank": 3, "steps": 2, "stage_size": 2}, 4),
    "TraceNorm": ({"rank": 2, "steps": 3}, 3),
}


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)


def make(name):
    seed = {} if name in NOT_PRIVATE else {"epsilon": 4.0, "insecure_seed": 1}
    return getattr(dpals, name)(**METHODS[name][0], **seed)


@pytest.mark.parametrize("name", METHODS)
def test_callbacks_hear_of_every_step_and_get_the_model_so_far(name, ratings):
    steps = []
    method = make(name).fit(ratings, callbacks=[steps.append])
    total = METHODS[name][1]
    assert [(step.number, step.total) for step in steps] == [(number, total) for number in range(1, total + 1)]
    assert all(isinstance(step.model, dpals.FactorModel) for step in steps)
    unwatched = make(name).fit(ratings)
    assert np.array_equal(unwatched.item_factors_, method.item_factors_)
    users, items = ratings.users[:50], ratings.items[:50]
    early, late = (step.model.predict(ratings, users, items) for step in (steps[0], steps[-1]))
    assert not np.array_equal(early, late)
    if name not in ("DPSGD", "SGLD"):  # whose models are averages over the last steps
        assert np.array_equal(late, method.predict(ratings, users, items))


def test_models_of_private_steps_say_what_was_spent_by_then(ratings):
    steps = []
    fitted = dpals.DPALS(4.0, rank=2, steps=2).fit(ratings, callbacks=[steps.append])
    first, last = (step.model.privacy for step in steps)
    assert first.is_private
    assert first.epsilon < last.epsilon == fitted.privacy.epsilon
    assert first.releases == last.releases[: len(first.releases)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"threads": 1}}, "options must be dpals.Options"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"ledger": "ledger.db"}, r"for example dpals.Ledger\('ledger.db'\)"),
    ],
)
def test_arguments_of_the_wrong_kind_are_said(ratings, arguments, message):
    with pytest.raises(dpals.InputError, match=message):
        make("DPALS").fit(ratings, **arguments)


def test_a_method_that_is_not_fitted_says_so(ratings):
    with pytest.raises(AttributeError, match="this DPALS is not fitted yet: call fit first"):
        dpals.DPALS().recommend(ratings)
    with pytest.raises(AttributeError, match="no attribute 'modell_'"):
        dpals.DPALS().modell_  # noqa: B018


def test_implicit_feedback_too(ratings):
    steps = []
    feedback = dpals.Ratings.from_csr(ratings.to_csr(), implicit=True)
    dpals.PooledDPALS(20.0, rank=2, steps=2).fit(feedback, callbacks=[steps.append])
    assert [step.number for step in steps] == [1, 2]


def test_a_callback_can_stop_training_and_the_method_can_be_used_again(ratings):
    method = make("ALS")

    def stop(_):
        raise StopIteration

    with pytest.raises(StopIteration):
        method.fit(ratings, callbacks=[stop])
    heard = []
    method.fit(ratings)
    method.fit(ratings, callbacks=[heard.append])
    assert len(heard) == 3


def test_threads_are_limited_while_training_and_change_nothing(ratings):
    seen = []
    one = make("PooledDPALS").fit(
        ratings, options=dpals.Options(threads=1), callbacks=[lambda _: seen.append(thread_count())]
    )
    assert seen == [1, 1, 1]
    assert thread_count() == os.cpu_count()
    assert np.array_equal(one.item_factors_, make("PooledDPALS").fit(ratings).item_factors_)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two", True])
def test_impossible_threads_are_refused(threads):
    with pytest.raises(dpals.InputError, match="threads must be a whole number"):
        dpals.Options(threads=threads)


def test_steps_and_releases_are_logged_under_the_name_dpals(ratings, caplog):
    with caplog.at_level(logging.INFO, logger="dpals"):
        make("DPALS").fit(ratings)
    assert "step 2 of 2" in caplog.text
    assert "released Gram matrices, step 1: mu" in caplog.text
    assert {record.name.split(".")[0] for record in caplog.records} == {"dpals"}


SHOWN = """
import dpals
ratings = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)
dpals.ALS(rank=2, steps=3).fit(ratings, options=dpals.Options(progress=True))
"""


def test_progress_is_shown_on_a_terminal():
    terminal, ours = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    subprocess.run([sys.executable, "-c", SHOWN], stderr=ours, check=True, env=environment)
    os.close(ours)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert "Training" in shown
    assert "left:" in shown


def test_progress_is_not_shown_elsewhere():
    result = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, check=True)
    assert (result.stdout, result.stderr) == (b"", b"")


def test_a_search_keeps_its_secret(ratings, tmp_path):
    search = dpals.PrivateSearch(dpals.ItemMean(), {"bias_prior": [0.1, 0.2]}, epsilon=4.0, tries=2)
    wanted = [
        {"callbacks": [print]},
        {"options": dpals.Options(progress=True)},
        {"options": dpals.Options(checkpoint=tmp_path)},
    ]
    for arguments in wanted:
        with pytest.raises(ValueError, match="how many tries a search makes is secret"):
            search.fit(ratings, **arguments)
    search.fit(ratings, options=dpals.Options(threads=1))


def test_an_engine_must_be_able_to_run():
    assert dpals.Options() == dpals.Options()
    with pytest.raises(dpals.InputError, match="engine must have a method run"):
        dpals.Options(engine="spark")
