"""What methods train on: a population, users in blocks with a public face. Ratings in memory come in blocks, too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from numpy.typing import NDArray

from dpals.data.rating_arrays import counted

if TYPE_CHECKING:  # what compiles kernels takes long to import
    from dpals.data.ratings import Ratings
    from dpals.release.passes import Block

Public = TypeVar("Public")
Result = TypeVar("Result")


class Population(Protocol):
    """Users in blocks, and what the caller declared public about them."""

    @property
    def blocks(self) -> "Sequence[Block]": ...
    @property
    def items(self) -> NDArray[Any]: ...
    @property
    def n_items(self) -> int: ...
    @property
    def rating_range(self) -> tuple[float, float] | None: ...
    @property
    def is_implicit(self) -> bool: ...
    @property
    def anonymous(self) -> bool: ...
    def public_facts(self) -> list[str]: ...


class Declared(Protocol):
    """What the caller declared about ratings."""

    @property
    def n_items(self) -> int: ...
    @property
    def rating_range(self) -> tuple[float, float] | None: ...
    @property
    def catalogue_declared(self) -> bool: ...
    @property
    def schema(self) -> str: ...


def declared_facts(ratings: Declared) -> list[str]:
    """Say what the caller declared public about ratings, for the privacy statement."""
    origin = "given" if ratings.catalogue_declared else "taken from the data and thereby declared public"
    facts = [f"The catalogue has {counted(ratings.n_items, 'item')}: {origin} by the caller."]
    if ratings.rating_range is not None:
        low, high = ratings.rating_range
        facts.insert(0, f"Every rating lies between {low:g} and {high:g}: declared by the caller.")
    return [*facts, ratings.schema] if ratings.schema else facts


@dataclass(frozen=True, eq=False)
class MemoryBlock:
    """Users whose ratings are in memory."""

    ratings: "Ratings"
    name: str = "memory"

    def open(self) -> "Ratings":
        return self.ratings


@dataclass(frozen=True, eq=False)
class PartOfBlock:
    """Some ratings of the users of a block. A pure function of the block and public values says which."""

    whole: "Block"
    function: Callable[["Ratings", Any], "Ratings"]
    public: Any

    @property
    def name(self) -> str:
        return self.whole.name

    def open(self) -> "Ratings":
        return self.function(self.whole.open(), self.public)


def whole_block(block: "Block") -> "Block":
    """The block that a part is taken from, or the block itself."""
    return whole_block(block.whole) if isinstance(block, PartOfBlock) else block


@dataclass(frozen=True, eq=False)
class PartOfPopulation:
    """The same users with some of their ratings, chosen anew whenever a block is opened: nothing is copied.

    Parameters
    ----------
    whole
        All their ratings.
    function, public
        What chooses ratings: a function of a module, from the ratings of a block and public values to some of them.
    """

    whole: Population
    function: Callable[["Ratings", Any], "Ratings"]
    public: Any

    @property
    def blocks(self) -> Sequence[PartOfBlock]:
        return [PartOfBlock(block, self.function, self.public) for block in self.whole.blocks]

    @property
    def items(self) -> NDArray[Any]:
        return self.whole.items

    @property
    def n_items(self) -> int:
        return self.whole.n_items

    @property
    def rating_range(self) -> tuple[float, float] | None:
        return self.whole.rating_range

    @property
    def is_implicit(self) -> bool:
        return self.whole.is_implicit

    @property
    def anonymous(self) -> bool:
        return self.whole.anonymous

    def public_facts(self) -> list[str]:
        return self.whole.public_facts()


def user_ids(population: Population) -> Iterator[Any]:
    """The ids of all users, one block after another."""
    return (user for block in population.blocks for user in block.open().users.tolist())


def remembered(function: Callable[["Ratings", Public], Result]) -> Callable[["Ratings", Public], Result]:
    """Let a block keep the last result of a function of the block and public values, while the block is in memory.

    It saves time where several passes need the same, and changes nothing: the function has no other result for the
    same values. A block on disk is opened anew for each pass and remembers nothing.
    """

    @wraps(function)
    def recall(block: "Ratings", public: Public) -> Result:
        values, result = block.memory.get(function, (None, None))
        if values is not public or values is None:
            result = function(block, public)
            block.memory[function] = public, result
        return result  # type: ignore[no-any-return]

    return recall
