"""Arguments of a method, each declared once: name, type, default, check and sentence.

    class ItemMean(PrivateEstimator):
        bias_prior: float = parameter("Standard deviation that is expected of item means.", POSITIVE, default=0.25)

The constructor and its signature, `get_params` and `set_params`, the error for a wrong value and a section of the
docstring follow from the declaration. Type checkers and editors read it as they read a dataclass.
"""

import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, dataclass_transform, get_args, get_origin

_WIDTH = 100
_REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Within:
    """A number between two limits. `closed` allows the limits, `whole` only whole numbers, `optional` also None."""

    low: float = 0.0
    high: float = math.inf
    closed: bool = False
    whole: bool = False
    optional: bool = False

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, bool) or not isinstance(value, numbers.Integral if self.whole else numbers.Real):
            return False
        number = float(value)
        inside = self.low <= number <= self.high if self.closed else self.low < number < self.high
        return inside and math.isfinite(number)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        low = f"of at least {self.low:g}" if self.closed else f"above {self.low:g}"
        high = "" if math.isinf(self.high) else f" and {'at most' if self.closed else 'below'} {self.high:g}"
        return f"{kind} {low}{high}{' or None' if self.optional else ''}"


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        return value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


POSITIVE = Within()
NOT_NEGATIVE = Within(closed=True)
WHOLE = Within(closed=True, whole=True)
COUNT = Within(low=1, closed=True, whole=True)
SHARE = Within(high=1, closed=False)
FRACTION = Within(high=1, closed=True)


@dataclass(frozen=True)
class Parameter:
    """An argument of a constructor, as `parameter` declares it. The annotation is that of the class."""

    text: str
    check: Within | OneOf | None
    default: Any
    kw_only: bool
    last: bool
    annotation: Any = Any


@dataclass(frozen=True)
class Attribute:
    """What `fit` sets, as `attribute` declares it."""

    text: str
    annotation: Any = Any


def parameter(
    text: str,
    check: Within | OneOf | None = None,
    *,
    default: Any = _REQUIRED,
    kw_only: bool = True,
    last: bool = False,
) -> Any:
    """Declare an argument of a method in the body of its class.

    Parameters
    ----------
    text
        What it means, in whole sentences.
    check
        What values are allowed; `Estimator.check` raises for others. An annotation ``Literal[...]`` is its own check.
    default
        The value if it is not given; without one, it must be given.
    kw_only
        Whether it is given by name only.
    last
        Whether it comes after the arguments that subclasses add.
    """
    return Parameter(text, check, default, kw_only, last)


def attribute(text: str = "", *, init: Literal[False] = False) -> Any:  # noqa: ARG001, for type checkers
    """Declare what `fit` sets, in the body of the class of a method. It is not an argument, and not there before `fit`.

    Parameters
    ----------
    text
        For the section "Attributes" of the docstring; not mentioned there if empty.
    """
    return Attribute(text)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter, attribute))
class Parameters:
    """Base of classes that declare their arguments. ``__init__`` only stores them, as scikit-learn requires.

    A class that writes an ``__init__`` of its own keeps it; its arguments are then those of the signature.

    Examples
    --------
    >>> class Mean(Parameters):
    ...     '''Predicts a mean.'''
    ...     shrinkage: float = parameter("How many ratings the mean starts with.", NOT_NEGATIVE, default=0.0)
    >>> Mean(shrinkage=-1.0)
    Mean(shrinkage=-1.0)
    >>> Mean(shrinkage=-1.0).check_parameters()
    Traceback (most recent call last):
    ...
    ValueError: shrinkage must be a number of at least 0, got -1.0
    >>> print(Mean.__doc__)
    Predicts a mean.
    <BLANKLINE>
    Parameters
    ----------
    shrinkage : float, default 0.0
        How many ratings the mean starts with.
    """

    _parameters: ClassVar[Mapping[str, Parameter]] = {}
    _attributes: ClassVar[Mapping[str, Attribute]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = {name: found for name, found in vars(cls).items() if isinstance(found, Parameter | Attribute)}
        for name in declared:
            delattr(cls, name)  # an argument has no value before it is given
        bases = [base for base in reversed(cls.__mro__[1:]) if issubclass(base, Parameters)]  # as dataclasses do
        parameters = {name: found for base in bases for name, found in base._parameters.items()}
        attributes = {name: found for base in bases for name, found in base._attributes.items()}
        for name, found in declared.items():
            annotation = cls.__annotations__[name]
            if isinstance(found, Attribute):
                attributes[name] = replace(found, annotation=annotation)
            else:
                one_of = OneOf(_words(annotation)) if _words(annotation) else None
                parameters[name] = replace(found, annotation=annotation, check=found.check or one_of)
        cls._parameters = dict(sorted(parameters.items(), key=lambda item: (item[1].kw_only, item[1].last)))
        cls._attributes = attributes
        if "__init__" not in vars(cls) and any(isinstance(found, Parameter) for found in declared.values()):
            cls.__init__ = _storing(cls._parameters)  # type: ignore[method-assign]
        if vars(cls).get("__doc__") and getattr(cls.__init__, "stores", None) == list(cls._parameters):
            cls.__doc__ = _documented(cls)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def check_parameters(self) -> None:
        """Raise a ValueError that names the first argument whose value is not allowed."""
        for name, declared in self._parameters.items():
            if declared.check is not None and not declared.check.allows(getattr(self, name)):
                raise ValueError(f"{name} must be {declared.check}, got {getattr(self, name)!r}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, scikit-learn passes it
        """The constructor's arguments and their values."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments by name."""
        for name, value in parameters.items():
            if name not in self._parameter_names():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {self._parameter_names()}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({arguments})"


def _storing(parameters: Mapping[str, Parameter]) -> Any:
    """A constructor with these arguments, which stores them and does nothing else."""
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(
                name,
                keyword_only if declared.kw_only else positional,
                default=declared.default,
                annotation=declared.annotation,
            )
            for name, declared in parameters.items()
        ],
        return_annotation=None,
    )

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise TypeError(f"{type(self).__name__}() {problem}") from None
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    itself = inspect.Parameter("self", positional)
    __init__.__signature__ = signature.replace(parameters=[itself, *signature.parameters.values()])  # type: ignore[attr-defined]
    __init__.stores = list(parameters)  # type: ignore[attr-defined]
    return __init__


def _documented(cls: type[Parameters]) -> str:
    """The docstring with sections on parameters and attributes before the examples, if there are any."""
    arguments = [
        (f"{name} : {_shown(found.annotation)}{_default(found.default)}", found.text)
        for name, found in cls._parameters.items()
    ]
    results = [
        (f"{name} : {_shown(found.annotation)}", found.text) for name, found in cls._attributes.items() if found.text
    ]
    text, heading, examples = inspect.cleandoc(cls.__doc__ or "").partition("\n\nExamples\n--------\n")
    return "\n".join([text, *_section("Parameters", arguments), *_section("Attributes", results)]) + heading + examples


def _section(title: str, entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for number, (name, text) in enumerate(entries):
        if number == 0:
            yield from ("", title, "-" * len(title))
        yield name
        yield textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _default(value: Any) -> str:
    return "" if value is _REQUIRED else f", default {value!r}"


def _shown(annotation: Any) -> str:
    """A type as people write it: without modules, and words in braces."""
    if words := _words(annotation):
        return f"{{{', '.join(map(repr, words))}}}"
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(annotation))


def _words(annotation: Any) -> tuple[str, ...]:
    """The words of a ``Literal``; none of another annotation."""
    return get_args(annotation) if get_origin(annotation) is Literal else ()
