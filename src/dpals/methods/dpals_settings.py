"""What the arguments of DPALS may be, and what its releases cost."""

from dataclasses import dataclass

from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, OneOf, Within

_NOISE = Within(optional=True)
CONSTRAINTS: dict[str, Within | OneOf] = {
    "rank": COUNT,
    "steps": COUNT,
    "ridge": POSITIVE,
    "user_ridge": Within(optional=True),
    "user_exponent": NOT_NEGATIVE,
    "item_exponent": NOT_NEGATIVE,
    "typical_count": POSITIVE,
    "unseen_weight": Within(closed=True, optional=True),
    "row_clip": POSITIVE,
    "entry_clip": Within(optional=True),
    "ratings_per_user": COUNT,
    "sampling": OneOf(("adaptive", "uniform")),
    "frequent_fraction": Within(low=1e-9, high=1, closed=True),
    "noise_ratio": POSITIVE,
    "count_share": SHARE,
    "mean_share": SHARE,
    "unseen_share": SHARE,
    "start": OneOf(("random", "power", "pca")),
    "start_share": SHARE,
    "start_scale": POSITIVE,
    "gram_noise": _NOISE,
    "moment_noise": _NOISE,
    "count_noise": _NOISE,
    "seed": WHOLE,
}


@dataclass(frozen=True)
class Costs:
    """What a release of each kind costs: before training counts, a mean and a start; in each step three sums."""

    counts: int
    mean: int
    start: int
    gram: int
    moment: int
    unseen: int
