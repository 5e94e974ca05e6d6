"""What DPSGD and SGLD have in common."""

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries


def test_both_learn_from_ratings_and_better_with_more_budget():
    train, _, test = split_entries(dpals.simulate.movielens_like(5_000, 300, 40, seed=3))
    user_mean = rmse(dpals.UserMean().fit(train).predict(train, *pairs(test)), test.values)
    for name in ("DPSGD", "SGLD"):
        scores = [
            rmse(getattr(dpals, name)(e, insecure_seed=1).fit(train).predict(train, *pairs(test)), test.values)
            for e in (1.0, 20.0)
        ]
        assert scores[1] < scores[0] - 0.01, name
        assert scores[1] < user_mean - 0.05, name
