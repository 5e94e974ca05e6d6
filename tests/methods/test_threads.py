"""Threads, of kernels and of BLAS, change no bit of what a method releases or learns."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.methods.every_method import PAIRS
from threadpoolctl import threadpool_limits

import dpals
from dpals.audit.recorded_run import record_run
from dpals.methods.base.estimator import PrivateEstimator

RANK = {"rank": 12}
METHODS = {
    "PooledDPALS": {**RANK, "steps": 2},
    "DPALS": {**RANK, "steps": 2, "start": "power", "orthonormal": True, "frequent_fraction": 0.5},
    "AdaDPALS": {**RANK, "steps": 2, "start": "pca", "frequent_fraction": 0.5},
    "DPFrankWolfe": {"steps": 2, "search": "covariance", "frequent_fraction": 0.5},
    "DPSVD": {**RANK, "most_items": 300},
    "DPSGD": {**RANK, "steps": 2},
    "SGLD": {**RANK, "steps": 2},
    "GlobalMean": {},
    "UserMean": {},
    "ItemMean": {},
    "PrivateBiases": {"steps": 2},
    "Popularity": {},
    "PrivateSearch": {"estimator": dpals.PooledDPALS(**RANK, steps=1), "grid": {"clip": [0.4, 0.5]}, "tries": 2},
    "ALS": {**RANK, "steps": 2},
    "StagewiseALS": {**RANK, "steps": 1, "stage_size": 6},
    "TraceNorm": {**RANK, "steps": 3},
}


def data(n_users, n_items, implicit):
    ratings = dpals.simulate.movielens_like(n_users=n_users, n_items=n_items, mean_ratings=40, seed=1)
    return dpals.Ratings.from_csr(ratings.to_csr(), users=ratings.users, implicit=True) if implicit else ratings


def bits(name, ratings, threads, **changes):
    """Everything that a training run with so many threads releases and learns, by name."""
    method = getattr(dpals, name)(**{**METHODS[name], **changes})
    found = {}
    with threadpool_limits(threads, user_api="blas"):  # as OPENBLAS_NUM_THREADS would
        if isinstance(method, PrivateEstimator):
            run = record_run(method.set_params(epsilon=4.0), ratings, threads=threads, insecure_seed=1)
            found = {f"{n}: {release.query.purpose}": release.published for n, release in enumerate(run.releases)}
            model = run.model
        else:
            model = method.fit(ratings, options=dpals.Options(threads=threads)).model_
        ids, scores = model.recommend(ratings, k=5)
        similar = model.similar_items(model.items[0])[1] if model.item_factors[0].any() else np.zeros(0)
        predicted = model.predict(ratings, ratings.users[:99], ratings.items[:99])
    mean = np.array(model.global_mean)
    return {
        **found,
        "item factors": model.item_factors,
        "item biases": model.item_biases,
        "global mean": mean,
        "recommended": ids,
        "scores": scores,
        "similar": similar,
        "predictions": predicted,
    }


def differences(results):
    """Names of what is not the same in all of them."""
    first, *others = results
    assert all(other.keys() == first.keys() for other in others)
    return {name for other in others for name, array in first.items() if array.tobytes() != other[name].tobytes()}


@pytest.mark.parametrize(("name", "implicit"), PAIRS)
def test_one_two_and_four_threads_give_the_same_bits(name, implicit):
    ratings = data(1500, 600, implicit)
    results = [bits(name, ratings, threads) for threads in (1, 2, 4)]
    assert differences(results) == set()
    if METHODS[name].get("rank"):
        assert results[0]["item factors"].any()


@pytest.mark.parametrize("implicit", [False, True])
def test_a_large_catalogue_does_not_turn_the_features(implicit):
    """BLAS splits sums over 12,000 items among its threads, and the features of the items then had another basis."""
    ratings = data(800 if implicit else 3000, 12_000, implicit)
    results = [bits("PooledDPALS", ratings, threads) for threads in (1, 2)]
    assert differences(results) == set()
    assert results[0]["item factors"].any()


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "implicit"), [(12, False), (12, True), (40, False)])
def test_many_users_and_higher_ranks(rank, implicit):
    ratings = data(60_000, 10_000, implicit)
    results = [bits("PooledDPALS", ratings, threads, rank=rank, steps=4) for threads in (1, 2, 4)]
    assert differences(results) == set()
    assert results[0]["item factors"].any()


FIT = """
import hashlib
import dpals
ratings = dpals.simulate.movielens_like(n_users=1000, n_items=12_000, mean_ratings=40, seed=1)
model = dpals.PooledDPALS(4.0, rank=12, steps=1, insecure_seed=1).fit(ratings)
print(hashlib.sha256(model.item_factors_.tobytes()).hexdigest())
"""


def test_variables_of_the_environment_change_nothing():
    printed = set()
    for threads in "12":
        variables = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        command = [sys.executable, "-c", FIT]
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
        printed.add(done.stdout.strip())
    assert len(printed) == 1
    assert len(*printed) == len(hashlib.sha256().hexdigest())
