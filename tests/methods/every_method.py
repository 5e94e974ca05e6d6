"""Every method of the registry with small settings, data for it, and models that tests share."""

from functools import cache

import numpy as np

import dpals
from dpals.methods.base import registry

METHODS = {method.name: method for method in registry.METHODS}
PRIVATE = [name for name, method in METHODS.items() if method.private]
RATINGS = [name for name, method in METHODS.items() if method.ratings]
IMPLICIT = [name for name, method in METHODS.items() if method.implicit]
PAIRS = [(name, False) for name in RATINGS] + [(name, True) for name in IMPLICIT]
PRIVATE_PAIRS = [(name, implicit) for name, implicit in PAIRS if name in PRIVATE]
SPENDS_NOTHING = {"UserMean"}
EPSILON, DELTA = 4.0, 1e-5
N_USERS, N_ITEMS = 400, 40


def small(name):
    """Its small settings; a search chooses for PooledDPALS."""
    searched = {"estimator": dpals.PooledDPALS(**small("PooledDPALS"))} if name == "PrivateSearch" else {}
    return {**METHODS[name].small, **searched}


def make(name, seed=1, **changes):
    """The method, not fitted."""
    budget = {"epsilon": EPSILON, "delta": DELTA, "insecure_seed": seed} if METHODS[name].private else {}
    return getattr(dpals, name)(**{**budget, **small(name), **changes})


@cache
def data(implicit=False, n_users=N_USERS, seed=0):
    """Users and items have names; the last item has no ratings."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((n_users, N_ITEMS - 1)) < rng.random((n_users, 1)) * 0.6)
    names = np.array([f"user {i:04}" for i in range(n_users)])[users]
    catalogue = [f"item {j:02}" for j in range(N_ITEMS)]
    values = rng.choice([1.0, 2.0, 3.5, 5.0], len(users))
    rated = {} if implicit else {"values": values, "rating_range": (1, 5)}
    return dpals.Ratings.from_arrays(names, np.array(catalogue)[items], **rated, catalogue=catalogue)


def data_for(name):
    """Data of the kind that the method takes: ratings, if it takes both."""
    return data(implicit=not METHODS[name].ratings)


@cache
def fitted(name, implicit):
    """The method, fitted once for all tests that only look at it."""
    method = make(name)
    assert method.fit(data(implicit)) is method
    return method


def fitted_to_its_kind(name):
    """The same, on `data_for` the method."""
    return fitted(name, not METHODS[name].ratings)


def scores(model, ratings):
    """Of some users for all items: which of them a method trains on may depend on noise."""
    return model.predict(ratings, np.repeat(ratings.users[:20], N_ITEMS), np.tile(ratings.items, 20))
