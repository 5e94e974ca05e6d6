"""Level 2: is the noise what it should be, and never the same twice."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import stats

from dpals.audit.noise_samples import (
    Noise,
    Scores,
    fits_with_releases,
    noise_of_releases,
    pooled_scores,
    taller_table,
    weights_by_definition,
)
from dpals.audit.noise_use import check_no_repeats, check_refused_spend, check_seed_marks
from dpals.audit.p_values import (
    chi_square_p_value,
    coin_p_values,
    correlation_p_values,
    judge_p_values,
    limit_for,
    samples_for_half_variance,
    standardised,
    variance_p_value,
)
from dpals.audit.recorded_run import RecordedRelease, RecordedRun, record_run
from dpals.audit.report import Check, Level
from dpals.data.ratings import Ratings
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.private_search import PrivateSearch
from dpals.release.mechanism import Mechanism

LOW_BITS = 8
_WIDE = 2.0**12  # steps: noise wider than this has low bits that are fair to far more digits than can be seen
_SHORTEST = 8  # numbers of a table whose noise is compared with that of others
_FOR_TAILS = 1_000_000


def audit_noise(estimator: PrivateEstimator, ratings: Ratings, samples: int = 200_000) -> Level:
    """Look at the noise of the method's real releases, which is secure: each audit sees other noise.

    A sound method fails with a probability of at most 1e-4.

    Parameters
    ----------
    estimator
        The method with its settings; its ``insecure_seed`` is not used.
    ratings
        Simulated data that the method takes.
    samples
        How many numbers to look at, over all releases; each release has at least 2,000, or all that are asked for.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=200, n_items=40, mean_ratings=25, seed=1)
    >>> [check.question for check in audit_noise(dpals.UserMean(), ratings).checks]
    ['nothing is released, so there is no noise']
    """
    mechanism_class = estimator.mechanism_class
    runs = fits_with_releases(estimator, ratings)
    noises = noise_of_releases(runs, samples, mechanism_class)
    if not noises:
        return Level(2, "noise", (_check_nothing(runs),))
    fitted = [release for run in runs for release in run.releases]
    releases = list(dict.fromkeys([*fitted, *(release for noise in noises for release in noise.releases)]))
    checks = [
        _check_variance(noises),
        _check_shape(noises),
        _check_tails(noises[0], mechanism_class),
        *_check_bits(noises),
        _check_grid(releases),
        _check_independence(noises, runs),
        check_no_repeats(releases),
        check_refused_spend(fitted[0], mechanism_class),
        check_seed_marks(runs[0], record_run(estimator, ratings, insecure_seed=1)),
    ]
    scores = pooled_scores(noises)
    facts = {
        "releases": len(noises),
        "numbers": scores.size,
        "variance_over_stated": float(np.mean(scores**2)),
    }
    return Level(2, "noise", tuple(checks), facts)


def _check_nothing(runs: Sequence[RecordedRun]) -> Check:
    """For methods that publish nothing."""
    if any(isinstance(run.estimator, PrivateSearch) for run in runs):
        return Check("there is noise to look at", "inconclusive", f"none of {len(runs)} searches made a try")
    spent = sum(mechanism.spent for run in runs for mechanism in run.mechanisms)
    return Check(
        "nothing is released, so there is no noise",
        "failed" if spent else "passed",
        f"spent {spent}",
    )


def _check_variance(noises: Sequence[Noise]) -> Check:
    """Variance of each release, as it is and with taller tables; of each weight; of all."""
    by_weight: dict[int, list[Scores]] = {}
    for noise in noises:
        for weight, column in zip(noise.weights.tolist(), noise.scores.T, strict=True):
            by_weight.setdefault(weight, []).append(column)
    whole, released = pooled_scores(noises), np.concatenate([noise.as_released.ravel() for noise in noises])
    groups = [whole, released, *(noise.scores for noise in noises), *(noise.as_released for noise in noises)]
    groups += [np.concatenate(columns) for columns in by_weight.values()]
    ratios = [float(np.mean(noise.scores**2)) for noise in noises]
    least, fewest = int(np.argmin(ratios)), min(noise.scores.size for noise in noises)
    check = judge_p_values(
        "the noise of every release has the stated variance",
        [variance_p_value(group) for group in groups],
        f"{len(noises)} releases, {whole.size:,} numbers, at least {fewest:,} of each: variance over what was stated "
        f"{np.mean(whole**2):.4f}, from {min(ratios):.3f} ({noises[least].purpose!r}) to {max(ratios):.3f}",
    )
    enough = samples_for_half_variance(limit_for(len(groups)))
    if fewest < enough and check.verdict == "passed":
        too_few = f"{fewest} numbers of a release would not show half the variance: {enough:,} of each would"
        return Check(check.question, "inconclusive", f"{too_few}; {check.detail}")
    return check


def _check_shape(noises: Sequence[Noise]) -> Check:
    """Kolmogorov-Smirnov for each release and for all, and cells of equal chances."""
    scores = pooled_scores(noises)
    cells = np.bincount((stats.norm.cdf(scores) * 256).astype(int).clip(0, 255), minlength=256)
    p_values = [float(stats.kstest(noise.scores.ravel(), "norm").pvalue) for noise in noises]
    p_values += [float(stats.kstest(scores, "norm").pvalue), chi_square_p_value(cells, np.full(256, 1 / 256))]
    return judge_p_values("the noise is Gaussian", p_values, f"{scores.size:,} numbers of {len(noises)} releases")


def _check_tails(noise: Noise, mechanism_class: type[Mechanism]) -> Check:
    """Tails of one release, because far tails take many numbers: noise that is cut off there gives users away."""
    table = taller_table(noise.releases[0], _FOR_TAILS // len(noise.weights), mechanism_class)
    scores, tails = np.abs(standardised(table, noise.sigmas, seed=0)), np.array([3.0, 3.5, 4.0, 4.5])
    expected = 2 * stats.norm.sf(tails) * scores.size
    seen = [int(np.sum(scores > tail)) for tail in tails]
    p_values = [
        float(stats.binomtest(count, scores.size, due / scores.size).pvalue)
        for count, due in zip(seen, expected, strict=True)
    ]
    found = ", ".join(
        f"{count:,} beyond {tail} sigma ({due:,.0f} expected)"
        for count, tail, due in zip(seen, tails, expected, strict=True)
    )
    return judge_p_values("the tails of the noise are as long as they should be", p_values, found)


def _check_bits(noises: Sequence[Noise]) -> list[Check]:
    """The last bits of the noise, where it is wide enough for them to be fair coins; the sign everywhere."""
    bits, signs = [], []
    low = np.zeros(2**LOW_BITS, np.int64)
    for noise in noises:
        wide = noise.whole[:, noise.sigmas >= _WIDE].ravel()
        heads = [int(np.sum((wide >> bit) & 1)) for bit in range(LOW_BITS)]
        bits += coin_p_values(heads, wide.size).tolist()
        low += np.bincount(wide & (len(low) - 1), minlength=len(low))
        signs.append((int(np.sum(noise.whole > 0)), int(np.sum(noise.whole != 0))))
    positive, signed = np.sum(signs, axis=0)
    fair = judge_p_values(
        "the sign of the noise is fair",
        coin_p_values(*np.transpose([*signs, (positive, signed)])),
        f"{positive:,} of {signed:,} numbers are positive",
    )
    if not low.sum():
        return [fair]
    bits.append(chi_square_p_value(low, np.full(len(low), 1 / len(low))))
    return [fair, judge_p_values(f"the last {LOW_BITS} bits of the noise are fair", bits, f"{low.sum():,} numbers")]


def _check_grid(releases: Sequence[RecordedRelease]) -> Check:
    """Whole numbers of steps, as noise that is added to floats would not be."""
    off = total = 0
    for release in releases:
        steps = np.rint(release.published / release.record.step)
        off += int(np.sum(steps * release.record.step != release.published))
        total += steps.size
    return Check(
        "published numbers are whole steps of the grid",
        "failed" if off else "passed",
        f"{total:,} numbers, {off:,} of them between two steps",
    )


def _check_independence(noises: Sequence[Noise], runs: Sequence[RecordedRun]) -> Check:
    """Correlations between neighbours in a table, repeats, releases of a fit, and fits; and with the data."""
    p_values: list[float] = []
    for noise in noises:
        scores, shape = noise.scores, noise.releases[0].sums.shape
        repeats = noise.as_released.reshape(len(noise.releases), shape[0] * shape[1])
        data = np.concatenate([release.sums for release in noise.releases]).astype(float)
        for one, other in (
            (scores[:-1], scores[1:]),
            (scores[:, :-1], scores[:, 1:]),
            (repeats[:-1], repeats[1:]),
            (noise.as_released, data - data.mean()),
        ):
            if one.size >= _SHORTEST:
                p_values += correlation_p_values(one.ravel(), other.ravel()).tolist()
    fitted = [release for run in runs for release in run.releases if release.sums.size >= _SHORTEST]
    tables = [_scores_of(release, len(noises) + number) for number, release in enumerate(fitted)]
    for one, other in pairwise(tables):
        common = min(one.size, other.size)
        p_values += correlation_p_values(one[:common], other[:common]).tolist()
    if tables:
        common = min(table.size for table in tables)
        heads = np.array([table[:common] for table in tables])
        for number, head in enumerate(heads[:-1]):
            p_values += correlation_p_values(head[None, :], heads[number + 1 :]).tolist()
    return judge_p_values(
        "noise is independent of other noise and of the data",
        p_values,
        f"neighbours in tables, {sum(len(noise.releases) for noise in noises):,} tables of repeats, {len(tables)} "
        f"tables of {len(runs)} fits each with every other",
    )


def _scores_of(release: RecordedRelease, seed: int) -> Scores:
    sigmas = np.sqrt(release.record.variance / weights_by_definition(release.query))
    return standardised(release.noise, sigmas, seed).ravel()
