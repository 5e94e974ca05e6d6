"""ALS on users in blocks: counts, and the normal equations of the items, added up over all users.

Each is a pass over the blocks that any engine can run. Numbers are put on a grid of integers, which add up exactly: the
result is the same for any blocks, and any number of threads or machines. Nothing here is private.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import PartOfPopulation, Population
from dpals.errors import InputError
from dpals.kernels.target import target
from dpals.methods.als_in_memory import first_factors
from dpals.methods.als_settings import SCORED_LISTS, Errors, Settings, with_lists
from dpals.model.factor_model import FactorModel
from dpals.private.means import pattern_of, per_entry
from dpals.private.sampling import PartOfSplit, Split, part_of_split, split_parts
from dpals.private.scoring import ScoredSplit, misses, squared_errors
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.item_step import count_ridges, unpacked
from dpals.release.contribution import Pattern
from dpals.release.passes import Block, Engine, Receipt, Table, Work, check_receipts
from dpals.release.sums import add_matrices, add_vectors

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

_MOST_BITS = 18
"""Of a number on the grid, so that 2^15 products of two, which are added in float64, stay below 2^53."""
_RATING_BITS = 30
_ERROR_BITS = 36
"""Of a squared error, as a share of the largest possible: those of 2^26 held-out ratings add up to less than 2^63."""
_ITEMS_AT_ONCE = 4096


class InBlocks:
    """Users in blocks, and the numbers of their ratings."""

    def __init__(self, population: Population, engine: Engine) -> None:
        self.population, self.engine = population, engine
        self.counts = count(population, engine)

    @property
    def n_ratings(self) -> int:
        return int(self.counts.of_items.sum())

    @property
    def mean_counts(self) -> tuple[float, float]:
        """The mean numbers of ratings of the users, and of the items, that have any."""
        return self.n_ratings / self.counts.of_users[1:].sum(), self.n_ratings / np.count_nonzero(self.counts.of_items)

    def models(self, settings: Settings) -> Iterator[FactorModel]:
        """The model after each step."""
        n_items, counts = self.population.n_items, self.counts
        user_ridge = settings.ridge / counts.user_powers(settings.user_exponent)
        item_ridges = count_ridges(settings.ridge, counts.of_items, settings.item_exponent)
        factors, biases = first_factors(n_items, settings), np.zeros(n_items, np.float32)
        latest = settings.model(self.population, factors, biases, counts.mean, user_ridge)
        for _ in range(settings.steps):
            problem = latest.user_problem()
            assert isinstance(problem, LeastSquaresProblem)
            equations = item_equations(self.population, self.engine, problem, counts, settings.unit)
            factors, biases = equations.solve(item_ridges, settings.bias_ridge, settings.unseen_weight)
            latest = settings.model(self.population, factors, biases, counts.mean, user_ridge)
            yield latest

    def split(self, split: Split) -> "tuple[InBlocks, Callable[[FactorModel], Errors]]":
        """The first part, to train on, and what a model that is given it makes of the second."""

        def errors_of(model: FactorModel) -> Errors:
            low, high = model.rating_range or (0.0, 1.0)
            share = 1.0 if model.rating_range else SCORED_LISTS / max(float(self.counts.of_users.sum()), 1.0)
            work = _ErrorPass(ScoredSplit(model.serving(), split), (high - low) ** 2, share)
            total, number = (int(table[0, 0]) for table in _added(work, self.population, self.engine))
            return Errors(math.ldexp(total, -_ERROR_BITS) * work.largest, number)

        return InBlocks(PartOfPopulation(self.population, part_of_split, PartOfSplit(split, 0)), self.engine), errors_of


class Counts(NamedTuple):
    """How many ratings there are."""

    of_items: Doubles
    of_users: Doubles
    """For each number of ratings from 0 on, how many users have it."""
    mean: float
    """Of the ratings; 0 for implicit feedback."""

    def user_powers(self, exponent: float) -> float:
        """The mean of the users' numbers of ratings, at least 1, to this power."""
        powers = np.maximum(np.arange(len(self.of_users)), 1.0) ** exponent
        return float(self.of_users @ powers / self.of_users.sum())

    @property
    def bits(self) -> int:
        """Of a number on the grid: the products of two, for all users, add up to less than 2^62."""
        return min(_MOST_BITS, (62 - int(self.of_users.sum()).bit_length()) // 2)

    @property
    def most(self) -> int:
        """The most ratings of a user."""
        return int(np.flatnonzero(self.of_users)[-1])


def count(population: Population, engine: Engine) -> Counts:
    """Counts from one pass over the users."""
    of_items, of_users, total = _added(_CountPass(population.n_items, population.rating_range), population, engine)
    n_ratings = int(of_items.sum())
    if n_ratings == 0:
        raise InputError("there are no ratings to learn from")
    mean = 0.0
    if population.rating_range is not None:
        low, high = population.rating_range
        mean = low + (high - low) * int(total[0, 0]) / (n_ratings << _RATING_BITS)
    return Counts(of_items[:, 0].astype(np.float64), of_users[:, 0].astype(np.float64), mean)


@dataclass(frozen=True)
class _CountPass:
    n_items: int
    rating_range: tuple[float, float] | None

    def empty(self) -> list[Table]:
        return [np.zeros((size, 1), np.int64) for size in (self.n_items, self.n_items + 1, 1)]

    def add(self, block: Block, tables: Sequence[Table]) -> Receipt:
        ratings = block.open()
        tables[0][:, 0] += np.bincount(ratings.indices, minlength=self.n_items)
        tables[1][:, 0] += np.bincount(np.diff(ratings.indptr), minlength=self.n_items + 1)
        if self.rating_range is not None:
            low, high = self.rating_range
            shares = (ratings.values.astype(np.float64) - low) / max(high - low, 1e-300)
            tables[2] += np.rint(np.ldexp(shares, _RATING_BITS)).astype(np.int64).sum()
        return Receipt(block.name, ratings.n_users, target())


class ItemEquations(NamedTuple):
    """The normal equations of the items: sums of x_i x_i^T and of targets times x_i over the users of each item.

    x_i is the user's vector, followed by 1 where items have biases.
    """

    grams: Doubles
    """Upper triangles, row by row."""
    moments: Doubles
    all_users: Doubles
    """The sum of u_i u_i^T over all users."""

    def solve(self, ridges: Doubles, bias_ridge: float | None, unseen: float) -> tuple[Floats, Floats]:
        """Factors and biases of the items."""
        rank, size = len(self.all_users), self.moments.shape[1]
        base = np.zeros((size, size))
        base[:rank, :rank] = unseen * self.all_users
        if bias_ridge is not None:
            base[rank, rank] = bias_ridge
        solved, diagonal = np.zeros_like(self.moments), np.arange(rank)
        for start in range(0, len(solved), _ITEMS_AT_ONCE):
            some = slice(start, start + _ITEMS_AT_ONCE)
            systems = unpacked(self.grams[some], size) + base
            systems[:, diagonal, diagonal] += ridges[some, None]
            solved[some] = np.linalg.solve(systems, self.moments[some, :, None])[..., 0]
        biases = solved[:, rank] if bias_ridge is not None else np.zeros(len(solved))
        return np.ascontiguousarray(solved[:, :rank], np.float32), biases.astype(np.float32)


def item_equations(
    population: Population, engine: Engine, problem: LeastSquaresProblem, counts: Counts, unit: float = 1.0
) -> ItemEquations:
    """The equations, with the users' vectors that solve a problem, from one pass over the users.

    Targets and the users' vectors, which are in proportion to them, are divided by the unit.
    """
    low, high = population.rating_range or (0.0, 1.0)
    largest = high - low + float(np.abs(problem.offsets - counts.mean).max())
    longest = _longest_vector(problem, largest / unit, counts.most)
    steps = longest / 2**counts.bits, ((high - low) / unit + longest) / 2**counts.bits
    work = _EquationPass(problem, population.n_items, counts.mean, unit, *steps)
    grams, moments, all_users = _added(work, population, engine)
    squared, product = np.float64(work.vector_step**2), np.float64(work.vector_step * work.target_step)
    return ItemEquations(grams * squared, moments * product, unpacked(all_users * squared, problem.rank)[0])


def _longest_vector(problem: LeastSquaresProblem, largest_target: float, most_ratings: int) -> float:
    """No user's vector is longer: with the ridge l and the targets t it has at most the norm |t| / (2 sqrt l)."""
    numbers = np.array([1.0, most_ratings])
    ridges = problem.ridge * numbers**problem.exponent
    if len(problem.base) > problem.rank:  # the bias has a ridge of its own
        ridges = np.minimum(ridges, problem.base[-1, -1])
    bound = largest_target * np.sqrt(numbers[:, None] / ridges) / 2
    return 1.01 * max(1.0, float(bound.max()))  # 1 is beside the vector; the rest is for rounding


@dataclass(frozen=True, eq=False)
class _EquationPass:
    problem: LeastSquaresProblem
    n_items: int
    mean: float
    unit: float
    vector_step: float
    target_step: float

    def empty(self) -> list[Table]:
        rank, size = self.problem.rank, self.problem.features.shape[1]
        shapes = (self.n_items, size * (size + 1) // 2), (self.n_items, size), (1, rank * (rank + 1) // 2)
        return [np.zeros(shape, np.int64) for shape in shapes]

    def add(self, block: Block, tables: Sequence[Table]) -> Receipt:
        ratings, rank = block.open(), self.problem.rank
        vectors = self.problem.solve(ratings).astype(np.float64) / self.unit
        targets = (np.ones(ratings.n_ratings) if ratings.values is None else ratings.values - self.mean) / self.unit
        if vectors.shape[1] > rank:
            targets = targets - per_entry(ratings, vectors[:, rank])
            vectors[:, rank] = 1.0
        on_grid = _rounded(vectors, self.vector_step)
        pattern, everyone = pattern_of(ratings), Pattern.one_item(ratings.n_users)
        add_matrices(tables[0], pattern, np.ones(ratings.n_ratings, np.int32), on_grid)
        add_vectors(tables[1], pattern, _rounded(targets, self.target_step), on_grid)
        add_matrices(tables[2], everyone, np.ones(ratings.n_users, np.int32), np.ascontiguousarray(on_grid[:, :rank]))
        return Receipt(block.name, ratings.n_users, target())


@dataclass(frozen=True, eq=False)
class _ErrorPass:
    public: ScoredSplit
    largest: float
    """Error of a rating; of what a list misses, it is 1."""
    share: float
    """Of the users, which is asked for lists."""

    def empty(self) -> list[Table]:
        return [np.zeros((1, 1), np.int64) for _ in range(2)]

    def add(self, block: Block, tables: Sequence[Table]) -> Receipt:
        ratings = block.open()
        known, hidden = split_parts(ratings, self.public.split)
        if ratings.is_implicit:
            errors = misses(self.public.model, *with_lists(known, hidden, self.share))
            tables[1] += len(errors)
        else:
            errors = squared_errors(self.public.model, known, hidden) / self.largest
            tables[1] += hidden.n_ratings
        tables[0] += np.rint(np.ldexp(errors, _ERROR_BITS)).astype(np.int64).sum()
        return Receipt(block.name, ratings.n_users, target())


def _rounded(numbers: Doubles, step: float) -> NDArray[np.int32]:
    return np.rint(np.clip(numbers / step, -(2**_MOST_BITS), 2**_MOST_BITS)).astype(np.int32)


def _added(work: Work, population: Population, engine: Engine) -> list[Table]:
    """The tables of one pass, in which every block took part once."""
    tables, receipts = engine.run(work, population.blocks)
    check_receipts(receipts, population.blocks)
    return tables
