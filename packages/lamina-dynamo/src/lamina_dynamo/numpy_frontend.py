"""Capture of plain NumPy code: the smallest front end.

An operator's id is where NumPy has it (``numpy.add``, ``ndarray.sum``, ``operator.add``). A fake learns results
by running NumPy itself on ones of the same shape, so NumPy's own rules and errors hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina_fx import TensorSpec, dtype_of
from lamina_fx.symbolic import ShapeEnv, SymInt

from .frontend import DataDependent, Member, SizePolicy
from .guard import Ambient, Guard, array_matches
from .numpy_fakes import FakeArray, broadcast_shape, known_shape
from .source import Source

__all__ = ["FakeArray", "NumpyFrontend"]

_DATA_DEPENDENT = frozenset(
    [
        "nonzero",
        "argwhere",
        "flatnonzero",
        "unique",
        "extract",
        "compress",
        "allclose",
        "array_equal",
        "array_equiv",
        "may_share_memory",
    ]
)
_METADATA = frozenset(["numpy.shape", "numpy.ndim", "numpy.size", "numpy.result_type", "numpy.can_cast"])
_INPLACE = [
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "iand",
    "ior",
    "ixor",
    "ilshift",
    "irshift",
    "imatmul",
]
_PYTHON = [
    *["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift",
    "neg", "pos", "invert", "abs", "lt", "le", "eq", "ne", "gt", "ge"],
    *_INPLACE, "getitem", "setitem",
]  # fmt: skip
_WRITES = frozenset(f"operator.{name}" for name in [*_INPLACE, "setitem"]) | {"ndarray.fill", "ndarray.sort"}
_REFUSED_METHODS = frozenset(["item", "tolist", "tobytes", "dump", "dumps", "tofile", "nonzero", "__array_interface__"])
_DTYPES = {"bool": "bool"}


class NumpyFrontend:
    """NumPy as a front end."""

    name = "numpy"

    def __init__(self) -> None:
        self._ids: dict[int, tuple[Any, str]] = {}
        for name in _PYTHON:
            function = getattr(operator, name)
            self._ids[id(function)] = (function, f"operator.{name}")
        self._ids[id(abs)] = (abs, "operator.abs")
        for name in dir(np.ndarray):
            method = getattr(np.ndarray, name)
            if not name.startswith("_") and callable(method) and name not in _REFUSED_METHODS:
                self._ids[id(method)] = (method, f"ndarray.{name}")
        for prefix, module in (("numpy", np), ("numpy.linalg", np.linalg), ("numpy.fft", np.fft)):
            for name in module.__all__:
                function = getattr(module, name)
                if callable(function) and not isinstance(function, type) and name not in _DATA_DEPENDENT:
                    self._ids.setdefault(id(function), (function, f"{prefix}.{name}"))

    def is_array(self, value: object) -> bool:
        """Arrays and scalars of NumPy, of the dtypes that graphs know."""
        return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc" and type(value) in _TYPES

    def is_constant(self, value: object) -> bool:
        """dtypes, and the classes that stand for them."""
        return isinstance(value, np.dtype)

    def fake(self, value: Any, shape_env: ShapeEnv, policy: SizePolicy) -> FakeArray:
        """Same shape, by the policy, and dtype."""
        shape = [policy(dim, size) for dim, size in enumerate(value.shape)]
        return FakeArray(shape, value.dtype, isinstance(value, np.generic))

    def array_type(self, fake: FakeArray) -> type:
        """ndarray, or the scalar's type."""
        return fake.dtype.type if fake.scalar else np.ndarray

    def spec(self, fake: FakeArray) -> TensorSpec:
        """Contiguous: NumPy's strides are not modelled."""
        return TensorSpec(fake.shape, dtype_of(_spec_name(fake.dtype)))

    def is_fake(self, value: object) -> bool:
        """A ``FakeArray``."""
        return type(value) is FakeArray

    def operator(self, function: object) -> str | None:
        """Functions of numpy, numpy.linalg and numpy.fft, methods of ndarray, Python's operators."""
        found = self._ids.get(id(function))
        return found[1] if found is not None and found[0] is function else None

    def call(self, id: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run on ones; sizes of elementwise results stay symbolic."""
        first = args[0] if args else None
        if id in ("operator.getitem", "operator.setitem") and _has_mask(args[1]):
            raise DataDependent("a boolean mask")
        if id == "numpy.where" and len(args) == 1:
            raise DataDependent("where() with one argument")
        if id in _WRITES and type(first) is FakeArray and not first.scalar:
            self._check_write(id, args, kwargs)
            return None if id in ("operator.setitem", "ndarray.fill", "ndarray.sort") else first
        loose = _is_elementwise(id)
        result = self.resolve(id)(*_real(args, loose), **_real(kwargs, loose))
        if id in _METADATA:
            return result
        fake = _fake_result(result, id)
        if type(fake) is FakeArray and loose:
            fake.shape = broadcast_shape([a.shape for a in args if type(a) is FakeArray]) or fake.shape
        elif type(fake) is FakeArray and (shape := known_shape(id, args, kwargs)) is not None:
            fake.shape = shape
        else:
            _specialize(args)
        return fake

    def _check_write(self, id: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        target = np.ones(args[0].ones().shape, args[0].dtype)
        self.resolve(id)(target, *_real(args[1:]), **_real(kwargs))

    def effect(self, id: str) -> str | None:
        """In-place operators write."""
        return "write" if id in _WRITES else None

    def member(self, fake: FakeArray, name: str) -> Member | None:
        """Shape and dtype are known; other properties are operators; methods are functions."""
        if name in ("shape", "dtype", "ndim"):
            return Member("value", getattr(fake, name))
        if name in ("size", "nbytes", "itemsize"):
            count = 1
            for size in fake.shape:
                count = count * size
            return Member(
                "value", {"size": count, "nbytes": count * fake.dtype.itemsize, "itemsize": fake.dtype.itemsize}[name]
            )
        if name in ("T", "real", "imag", "mT"):
            return Member("operator", f"attribute.{name}")
        method = getattr(np.ndarray, name, None)
        return None if method is None else Member("function", method)

    def set_member(self, fake: FakeArray, name: str) -> str | None:
        """Arrays take no attributes."""
        return None

    def truth(self, fake: FakeArray) -> bool | None:
        """It depends on the data."""
        return None

    def guards(self, value: Any, source: Source, fake: FakeArray) -> list[Guard]:
        """Type, dtype and fixed sizes."""
        return [array_matches(source, value, self.spec(fake), check_strides=False)]

    def memory_bounds(self, value: Any) -> tuple[int, int]:
        """First and one past the last byte of an array's memory."""
        if isinstance(value, np.generic):
            return 0, 0
        return np.lib.array_utils.byte_bounds(value) if hasattr(np.lib, "array_utils") else np.byte_bounds(value)

    def shares_memory(self, first: Any, second: Any) -> bool:
        """Whether two arrays have an element in common."""
        try:
            return np.shares_memory(first, second, max_work=10_000)
        except np.exceptions.TooHardError:
            return True

    def function_rule(self, function: object) -> tuple[str, str] | None:
        """Nothing special."""
        return None

    def ambient(self) -> Sequence[Ambient]:
        """None that is modelled."""
        return ()

    def mode_function(self, function: object) -> str | None:
        """NumPy has no modes."""
        return None

    def get_mode(self, name: str) -> Any:
        """NumPy has no modes."""
        raise KeyError(name)

    def set_mode(self, name: str, value: Any) -> None:
        """NumPy has no modes."""
        raise KeyError(name)

    def regions(self) -> tuple[str, ...]:
        """None."""
        return ()

    def resolve(self, id: str) -> Callable[..., Any]:
        """The function of NumPy or of Python behind an id."""
        where, _, name = id.rpartition(".")
        if where == "attribute":
            return operator.attrgetter(name)
        if where == "ndarray":  # scalars have methods of their own with the same names
            return lambda array, *args, **kwargs: getattr(array, name)(*args, **kwargs)
        owners = {"operator": operator, "numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}
        return getattr(owners[where], name)


_TYPES = frozenset([np.ndarray, *(np.dtype(c).type for c in "?bBhHiIlLqQefdFD")])


def _spec_name(dtype: np.dtype[Any]) -> str:
    return "bool" if dtype.kind == "b" else dtype.name


def _real(value: Any, loose: bool = False) -> Any:
    """Ones for fakes. Symbolic ints become their value: guarded, unless ``loose`` (the result does not depend on
    it).
    """
    kind = type(value)
    if kind is FakeArray:
        return value.ones()
    if kind in (tuple, list):
        return kind(_real(v, loose) for v in value)
    if kind is dict:
        return {k: _real(v, loose) for k, v in value.items()}
    if kind is slice:
        return slice(_real(value.start), _real(value.stop), _real(value.step))
    if kind is SymInt:
        return value.hint if loose else int(value)
    return value


def _specialize(args: Any) -> None:
    for value in args:
        if type(value) is FakeArray:
            for size in value.shape:
                int(size)
        elif type(value) in (tuple, list):
            _specialize(value)


def _fake_result(value: Any, id: str) -> Any:
    if isinstance(value, np.ndarray):
        return FakeArray(value.shape, value.dtype)
    if isinstance(value, np.generic):
        return FakeArray((), value.dtype, scalar=True)
    if isinstance(value, (tuple, list)):
        return (
            type(value)(*[_fake_result(v, id) for v in value])
            if hasattr(value, "_fields")
            else type(value)(_fake_result(v, id) for v in value)
        )
    raise DataDependent(f"{id} gives a {type(value).__name__}")


def _is_elementwise(id: str) -> bool:
    where, _, name = id.rpartition(".")
    if where == "operator":
        return name not in ("getitem", "matmul", "imatmul")
    return where == "numpy" and isinstance(getattr(np, name), np.ufunc) and name != "matmul"


def _has_mask(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return any(type(i) is FakeArray and i.dtype.kind == "b" for i in items)
