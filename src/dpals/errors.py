"""Errors that say what the caller has to change."""


class InputError(ValueError):
    r"""Data cannot be used. The message says where, what is wrong, and what to do.

    Examples
    --------
    >>> from dpals import InputError, Ratings
    >>> try:
    ...     Ratings.from_arrays(["ann", 2], [7, 7])
    ... except InputError as error:
    ...     print(str(error).replace(": ", ":\n"))
    row 1 (counting from 0), column 'users':
    mixed id types:
    2 is an integer but the ids before it are text. Make them all integers or all text
    """


class RangeMissingError(InputError):
    """Ratings came without a declared scale, which is never inferred."""
