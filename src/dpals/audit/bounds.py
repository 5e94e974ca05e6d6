"""From counts to what they prove: confidence bounds on shares, and on the privacy that they belie."""

from scipy.stats import beta

CONFIDENCE = 0.9999
"""Of every bound of an audit. One sound method in ten thousand is called broken by chance."""


def share_bounds(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Clopper-Pearson: the true share is below the first number, and above the second, with 1 - confidence each.

    Examples
    --------
    >>> [round(bound, 3) for bound in share_bounds(40, 100, confidence=0.95)]
    [0.318, 0.487]
    """
    risk = 1 - confidence
    low = 0.0 if successes == 0 else float(beta.ppf(risk, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - risk, successes + 1, trials - successes))
    return low, high
