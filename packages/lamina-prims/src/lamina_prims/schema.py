"""The schema of an operator: its parameters, read from the declaring function's signature.

>>> def f(input: Tensor, dim: int | None = None, *, dtype: DType | None = None) -> Tensor: ...
>>> str(schema_of("f", f))
'f(input: Tensor, dim: int | None = None, *, dtype: DType | None = None) -> Tensor'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["NUMPY_NAMES", "Parameter", "Schema", "schema_of"]

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's spellings of keywords, which mean ours wherever an operator has ours (PyTorch takes them, too)."""

_REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: ``annotation`` is the text as written; ``tensor`` is "one", "list" or None."""

    name: str
    annotation: str
    default: Any
    keyword_only: bool
    tensor: str | None

    @property
    def required(self) -> bool:
        """True when there is no default."""
        return self.default is _REQUIRED


@dataclass(frozen=True, slots=True)
class Schema:
    """Parameters and results of an operator. ``outputs`` is the number of results (1 unless a tuple)."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    outputs: int

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, defaults filled in.

        Raises:
            TypeError: too many, missing, repeated or unknown arguments; the message shows the schema.
        """
        count = len(args)
        positional = [p for p in self.parameters if not p.keyword_only]
        if count > len(positional):
            raise TypeError(f"{self.name}() takes {len(positional)} positional arguments, got {count}: {self}")
        values = list(args)
        left = dict(self.spelled(kwargs))
        unknown = [name for name in left if not self._has(name)]
        if unknown:
            raise TypeError(f"{self.name}() has no parameter {', '.join(map(repr, unknown))}: {self}")
        for index, parameter in enumerate(self.parameters):
            if index < count and not parameter.keyword_only:
                if parameter.name in left:
                    raise TypeError(f"{self.name}() got {parameter.name!r} twice: {self}")
            elif parameter.name in left:
                values.append(left.pop(parameter.name))
            elif parameter.default is _REQUIRED:
                raise TypeError(f"{self.name}() misses the argument {parameter.name!r}: {self}")
            else:
                values.append(parameter.default)
        return tuple(values)

    def spelled(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The keywords by our names: ``axis`` and ``keepdims`` where the operator has ``dim`` and ``keepdim``.

        Raises:
            TypeError: the argument is given by both of its names.
        """
        found = [name for name in NUMPY_NAMES if name in kwargs and self._has(NUMPY_NAMES[name])]
        if not found:
            return kwargs
        for name in found:
            if NUMPY_NAMES[name] in kwargs:
                raise TypeError(f"{self.name}() got both {NUMPY_NAMES[name]!r} and {name!r}, which mean the same")
        return {NUMPY_NAMES[k] if k in found else k: v for k, v in kwargs.items()}

    def _has(self, name: str) -> bool:
        return any(p.name == name for p in self.parameters)

    def gather(self, args: tuple[Any, ...], variadic: str) -> tuple[Any, ...]:
        """Collect separate arguments, ``view(x, 2, 3)``, into one: ``view(x, (2, 3))``."""
        position = next(k for k, p in enumerate(self.parameters) if p.name == variadic)
        if len(args) > position and not isinstance(args[position], (tuple, list)) and args[position] is not None:
            return (*args[:position], tuple(args[position:]))
        return args

    def accepts(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Do the arguments fit the parameters in number, name and kind: which overload is meant."""
        try:
            values = self.bind(args, kwargs)
        except TypeError:
            return False
        return all(
            value is parameter.default or fits(parameter.annotation, value)
            for parameter, value in zip(self.parameters, values, strict=True)
        )

    def __str__(self) -> str:
        parts: list[str] = []
        star = False
        for p in self.parameters:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(f"{p.name}: {p.annotation}" + ("" if p.required else f" = {p.default!r}"))
        return f"{self.name}({', '.join(parts)}) -> {self.returns}"


def schema_of(name: str, function: Callable[..., Any]) -> Schema:
    """Read the schema of ``function``, whose annotations must be strings (postponed evaluation)."""
    signature = inspect.signature(function)
    parameters = tuple(
        Parameter(
            p.name,
            _text(p.annotation),
            p.default,
            p.kind is inspect.Parameter.KEYWORD_ONLY,
            _tensor_kind(_text(p.annotation)),
        )
        for p in signature.parameters.values()
    )
    returns = _text(signature.return_annotation)
    outputs = returns.count("Tensor") if returns.startswith("tuple[") and "..." not in returns else 1
    return Schema(name, parameters, returns, outputs)


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _tensor_kind(annotation: str) -> str | None:
    if "Tensor" not in annotation:
        return None
    return "list" if "[" in annotation else "one"


def fits(annotation: str, value: Any) -> bool:
    """Is ``value`` of a kind that the annotation names: tensor, number, sequence, text.

    >>> fits("int | None", 3), fits("Tensor", 3), fits("Tensor | Scalar", 3), fits("Shape", (2, 3))
    (True, False, True, True)
    """
    if value is None:
        return "None" in annotation
    if isinstance(value, (tuple, list)):
        if "Shape" in annotation and not all(
            hasattr(item, "__index__") or isinstance(item, (tuple, list)) for item in value
        ):
            return False
        return any(word in annotation for word in ("Shape", "Sequence", "tuple", "Any"))
    if "Any" in annotation:
        return True
    if isinstance(value, str):
        return "str" in annotation or "Device" in annotation
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return "Tensor" in annotation.split("[")[0]
    words = annotation.replace("|", " ").split()
    if isinstance(value, bool):
        return "bool" in words or "Scalar" in words
    if isinstance(value, int) or type(value).__name__ == "SymInt":
        return any(w in words for w in ("int", "float", "Scalar", "Size"))
    if isinstance(value, float) or type(value).__name__ == "SymFloat":
        return "float" in words or "Scalar" in words
    if isinstance(value, complex):
        return "Scalar" in words
    return type(value).__name__ in words
