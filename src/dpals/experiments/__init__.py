"""The paper's tables and figures, rerun. One file each; ``dpals reproduce`` runs them.

To add one, write a file with an `Experiment` named ``EXPERIMENT`` and put its name in `NAMES`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpals.experiments.experiment import Experiment

NAMES = {
    "frontier": "Accuracy against epsilon, all methods of the library",
    "tradeoff-synthetic": "Accuracy against epsilon on the paper's synthetic task",
    "tradeoff-top400": "Accuracy against epsilon on the 400 most popular movies",
    "tradeoff-ratings": "Accuracy against epsilon on all movies",
    "tradeoff-items": "Recall against epsilon in item recommendation",
    "adaptive-sampling": "What adaptive sampling and projection bring",
    "count-distribution": "How skewed popularity is, under two ways of sampling",
    "count-histograms": "Who rates what: counts of users against counts of movies",
    "convergence": "Accuracy against the number of steps",
    "users": "Accuracy with fewer users",
    "rank": "Accuracy against the length of the vectors",
    "frequent-ratings": "Accuracy against the share of movies trained on",
    "frequent-items": "The same in item recommendation",
    "regularization": "Exponents of the regularisation",
    "accounting": "The epsilon of the paper's settings, recomputed",
    "sample-complexity": "Users needed as the catalogue grows",
    "initialization": "Starting points: random, power iteration, private PCA",
}


def find(name: str) -> "Experiment":
    """The experiment of that name."""
    if name not in NAMES:
        raise ValueError(f"there is no experiment {name!r}: see `dpals reproduce --list`")
    experiment: Experiment = import_module(f"dpals.experiments.{name.replace('-', '_')}").EXPERIMENT
    return experiment
