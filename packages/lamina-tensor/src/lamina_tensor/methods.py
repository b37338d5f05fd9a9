"""The front end's surface, generated from the names that operators carry.

``add`` and ``Tensor.add`` become a function and a method, ``nn.functional.gelu`` a function of that namespace;
``add_`` and ``__iadd__`` are derived. ``operator_of`` tells which operator a callable stands for.
"""

from __future__ import annotations

import copyreg
import inspect
import pickle
from collections.abc import Callable
from typing import Any

from lamina_prims import Operator
from lamina_prims.registry import by_name, names, resolve

from ._C import FastOp, TensorBase, write_ufunc
from .creation import creator
from .dispatch import FAST, make_fast
from .inplace import call_inplace, plain_ufunc

__all__ = ["function", "install_methods", "namespace_names", "operator_of"]

_OPERATOR_OF: dict[Any, str] = {}
_FUNCTIONS: dict[str, Any] = {}
_SPELLING_OF: dict[Any, str] = {}
_INPLACE_DUNDERS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
)  # fmt: skip

_PROPERTIES = frozenset(("T", "H", "mT", "mH", "real", "imag"))


def operator_of(callable_: Any) -> str | None:
    """The id of the operator that a function, method or in-place method of this package stands for, or None.

    Of overloads the first is given; ``resolve`` tells them apart by the arguments. In-place variants end in ``_``.
    """
    try:
        return _OPERATOR_OF.get(callable_) or _OPERATOR_OF.get(getattr(callable_, "__func__", None))
    except TypeError:  # not hashable, so none of ours
        return None


def function(name: str) -> Any:
    """The callable of a registered spelling (``"softmax"``, ``"nn.functional.gelu"``, ``"Tensor.add"``), or None."""
    made = _FUNCTIONS.get(name)
    if made is None:
        overloads = by_name(name)
        if not overloads:
            return None
        made = _creator(name, overloads) if _creates(name, overloads) else fast_operator(name, overloads)
        _FUNCTIONS[name] = made
        _SPELLING_OF.setdefault(made, name)
        _OPERATOR_OF.setdefault(made, overloads[0].id)
    return made


def _reduce(made: Any) -> tuple[Callable[[str], Any], tuple[str]]:
    """Functions are copied and pickled by their spelling."""
    return function, (_SPELLING_OF[made],)


copyreg.pickle(FastOp, _reduce)


def reduce_function(entry: Any) -> tuple[Any, tuple[str]]:
    """How a function of the namespace is pickled: by its spelling."""
    for spelling, made in _FUNCTIONS.items():
        if made is entry:
            return function, (spelling,)
    raise pickle.PicklingError(f"{entry!r} is no function of the namespace")


def signature_of(entry: Any) -> inspect.Signature:
    """Parameters of a function of the namespace (of its first overload)."""
    return inspect.signature(entry.operator.function)


def _creates(name: str, overloads: tuple[Operator, ...]) -> bool:
    """Does the function make tensors from nothing. Read off the annotations: schemas cost import time."""
    parameters = [{k: v for k, v in op.function.__annotations__.items() if k != "return"} for op in overloads]
    return any("dtype" in p for p in parameters) and (
        name.endswith("_like")
        or name.startswith("Tensor.new_")
        or not any("Tensor" in str(annotation) for p in parameters for annotation in p.values())
    )


def _creator(name: str, overloads: tuple[Operator, ...]) -> Callable[..., Any]:
    del overloads
    return creator(name)


def fast_operator(name: str, overloads: tuple[Operator, ...]) -> Any:
    """A ``FastOp`` for a spelling."""
    op = overloads[0]
    if len(overloads) == 1 and not name.startswith("Tensor.__"):
        made = FAST.get(op)  # one object for the function and the method
        if made is not None:
            return made
    reflected = name.startswith("Tensor.__")
    spelling = name if len(overloads) > 1 or reflected else None
    made = make_fast(op, name.rpartition(".")[2], spelling)
    if spelling is None:
        FAST[op] = made
    return made


def inplace_method(name: str, overloads: tuple[Operator, ...]) -> Callable[..., Any]:
    """``name_``: computes out of place and writes."""
    first, several, spelling = overloads[0], len(overloads) > 1, f"Tensor.{name}"
    ufunc, dtypes = plain_ufunc(first) or (None, 0)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if ufunc is not None and not kwargs and write_ufunc(ufunc, dtypes, self, args):
            return self
        op = resolve(spelling, (self, *args), kwargs) if several else first
        return call_inplace(op, self, args, kwargs)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"In-place form of ``{name}``.\n\n{first.__doc__ or ''}"
    return method


def _inplace_dunder(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def dunder(self: Any, other: Any) -> Any:
        return method(self, other)

    dunder.__name__ = dunder.__qualname__ = name
    return dunder


def install_methods(cls: type[TensorBase]) -> None:
    """Give ``cls`` the methods that operators name, but for those it writes itself."""
    written = set(vars(cls)) | {n for base in cls.__mro__[1:] if base is not object for n in vars(base)}
    for spelling, overloads in names().items():
        if not spelling.startswith("Tensor."):
            continue
        name = spelling[7:]
        if name in _PROPERTIES:
            setattr(cls, name, _property(spelling))
        elif name not in written:
            setattr(cls, name, function(spelling))
        if not name.startswith("__") and any(op.in_place for op in overloads):
            target = f"{name}_"
            if target not in written:
                usable = tuple(op for op in overloads if op.in_place)
                method = inplace_method(name, usable if len(usable) == 1 else overloads)
                setattr(cls, target, method)
                _OPERATOR_OF[method] = f"{usable[0].id}_"
    for word in _INPLACE_DUNDERS:
        overloads = by_name(f"Tensor.__{word}__")
        if overloads and f"__i{word}__" not in written:
            method = inplace_method(f"__{word}__", overloads)
            dunder = _inplace_dunder(method, f"__i{word}__")
            setattr(cls, f"__i{word}__", dunder)
            _OPERATOR_OF[dunder] = f"{overloads[0].id}_"


def _property(spelling: str) -> property:
    call = function(spelling)

    def get(self: Any) -> Any:
        return call(self)

    get.__doc__ = call.__doc__
    made = property(get)
    _OPERATOR_OF[made] = _OPERATOR_OF[call]
    return made


def namespace_names(prefix: str = "") -> list[str]:
    """Names of the functions of a namespace: ``""`` for the root, ``"nn.functional"``, ``"linalg"``, ..."""
    lead = f"{prefix}." if prefix else ""
    return sorted(n[len(lead) :] for n in names() if n.startswith(lead) and "." not in n[len(lead) :])
