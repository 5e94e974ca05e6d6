"""Numbers that look random and depend on nothing but their arguments.

They decide what need not be secret: which ratings are held out, which of a user's ratings are sampled, where training
starts. A generator with a state would make one user's numbers depend on the users before.
"""

import hashlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def id_hashes(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """A 64-bit number for each id. The integer 7 and the text "7" are the same id.

    Libraries that read tables turn everybody's ids into text if a single id is not an integer. That must not change
    anyone's number.

    Examples
    --------
    >>> id_hashes(np.array([7, -1])) == id_hashes(np.array(["7", "-1"]))
    array([ True,  True])
    >>> bool(id_hashes(np.array([7])) == id_hashes(np.array(["07"])))
    False
    """
    if np.issubdtype(ids.dtype, np.integer):
        return ids.astype(np.uint64)
    return np.fromiter((_text_hash(str(text)) for text in ids), np.uint64, len(ids))


def _text_hash(text: str) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 20:
        number = int(text)
        if -(2**63) <= number < 2**64 and str(number) == text:
            return number % 2**64
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), sys.byteorder)


def block_hashes(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """A 64-bit number for each user id. Its leading bits say in which block of users the user is.

    Formal guarantee (docs/privacy.md, step 10): a user's number is a function of that user's id alone. Different
    integers have different numbers.

    Examples
    --------
    >>> [f"{number:016x}" for number in block_hashes(np.array([7, 8]))]
    ['64bf61b512ffabe7', 'e4892e1ae6477125']
    """
    return _mixed(0, id_hashes(ids))


def row_hashes(indptr: NDArray[np.int64], *words: NDArray[Any]) -> NDArray[np.uint64]:
    """A 64-bit number for each row of a sparse matrix, from the words of its entries in any order.

    Formal guarantee (docs/privacy.md, step 10): a row's number is a function of that row's entries alone. Sums wrap
    around at 2^64 exactly, so the difference of two running totals is the sum of the entries between them, whatever
    comes before.

    ==============  ===========================
    empty row       0
    ==============  ===========================

    Examples
    --------
    >>> words = np.array([5, 6, 6, 5, 9])
    >>> first, second, third = row_hashes(np.array([0, 2, 4, 5]), words)
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(0, *words), dtype=np.uint64)])
    hashes: NDArray[np.uint64] = totals[indptr[1:]] - totals[indptr[:-1]]
    return hashes


def hashed_uniform(seed: int, *words: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers in (0, 1), one for each tuple of words, by rounds of splitmix64.

    Examples
    --------
    >>> hashed_uniform(7, np.array([1, 2]), np.array([1, 1])).round(3)
    array([0.79 , 0.415])
    """
    return ((_mixed(seed, *words) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _mixed(seed: int, *words: NDArray[Any]) -> NDArray[np.uint64]:
    """A 64-bit number for each tuple of words."""
    shape = np.broadcast_shapes(*(word.shape for word in words))
    state = np.full(shape, seed % 2**64, np.uint64)
    for word in (np.zeros((), np.uint64), *words):
        state = (state ^ word.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def hashed_normal(seed: int, *words: NDArray[Any]) -> NDArray[np.float64]:
    """The same for the standard normal distribution."""
    from scipy.special import ndtri

    result: NDArray[np.float64] = ndtri(hashed_uniform(seed, *words))
    return result
