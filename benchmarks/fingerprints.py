"""Seeded models of every method, as hashes: two revisions whose lines agree train the same models, bit by bit.

    python benchmarks/fingerprints.py > before; git switch other-branch; python benchmarks/fingerprints.py | diff
    before -

Item factors depend on the type of processor, so compare on one machine only. The data is simulated.
"""

import hashlib

import dpals

RATINGS = dpals.simulate.movielens_like(n_users=3000, n_items=200, mean_ratings=40, seed=1)
IMPLICIT = dpals.Ratings.from_arrays(RATINGS.users[RATINGS.rows], RATINGS.items[RATINGS.indices])
DPALS = {"ratings_per_user": 20, "frequent_fraction": 0.5}
FOR_RATINGS = [
    *(dpals.PooledDPALS(epsilon) for epsilon in (0.1, 1.0, 10.0)),
    dpals.PooledDPALS(5.0, rank=40, steps=3),
    dpals.PooledDPALS(1.0, rank=0),
    dpals.DPALS(5.0, **DPALS),
    dpals.DPALS(5.0, **DPALS, start="power", sampling="uniform"),
    dpals.DPALS(5.0, **DPALS, start="pca", unseen_weight=0.1, orthonormal=True),
    dpals.DPALS.from_paper("ml-10m", epsilon=5),
    dpals.AdaDPALS(5.0, frequent_fraction=0.5),
    dpals.DPFrankWolfe(5.0),
    dpals.DPFrankWolfe(5.0, search="covariance"),
    dpals.DPSVD(5.0, most_items=100),
    dpals.DPSVD(5.0, form="plain"),
    dpals.DPSGD(5.0),
    dpals.SGLD(5.0),
    dpals.GlobalMean(1.0),
    dpals.UserMean(1.0),
    dpals.ItemMean(1.0),
    dpals.PrivateBiases(1.0),
    dpals.ALS(rank=8, steps=5),
    dpals.StagewiseALS(rank=4, steps=2),
    dpals.TraceNorm(rank=4, steps=5),
]
FOR_IMPLICIT = [
    *(dpals.PooledDPALS(epsilon) for epsilon in (0.01, 1.0, 10.0)),
    dpals.DPALS(5.0, **DPALS),
    dpals.AdaDPALS(5.0, frequent_fraction=0.5),
    dpals.Popularity(1.0),
    dpals.ALS(rank=8, steps=5),
]


def fingerprint(estimator, ratings):
    """A hash of all that is published, of what users are served, and of what was spent."""
    if "insecure_seed" in estimator.get_params():
        estimator.set_params(insecure_seed=7)
    estimator.fit(ratings)
    model = estimator.model_
    ids, scores = estimator.recommend(ratings, k=10)
    content = hashlib.sha256()
    for array in (model.item_factors, model.item_biases, model.is_trained, ids, scores):
        content.update(str(array.dtype).encode() + array.tobytes())
    facts = [model.global_mean, model.user_ridge, model.user_exponent, model.user_bias_ridge, model.unseen_weight]
    if model.privacy is not None:
        facts += [model.privacy.epsilon, model.privacy.mu, *(release.mu for release in model.privacy.releases)]
    content.update(repr(facts).encode())
    return content.hexdigest()[:16]


for ratings, kind, estimators in ((RATINGS, "ratings", FOR_RATINGS), (IMPLICIT, "implicit", FOR_IMPLICIT)):
    for number, estimator in enumerate(estimators, 1):
        print(f"{fingerprint(estimator, ratings)} {kind} {number} {type(estimator).__name__}", flush=True)
