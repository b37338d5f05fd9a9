"""What each call of NumPy is in Lamina's operators: ``rule(spec, *args, **kwargs)``, with the spec that NumPy gave.

Only calls whose results are NumPy's are here. Operands are brought to NumPy's common dtype first (by NumPy's own
promotion), since tensors promote by PyTorch's rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lamina_fx import Proxy, TensorSpec, dtype_of
from lamina_prims import ops

__all__ = ["NotTranslated", "rule_of"]

Rule = Callable[..., Any]
_RULES: dict[str, Rule] = {}


class NotTranslated(Exception):
    """A call of NumPy that no operator stands for; the message says why."""


def rule_of(target: str) -> Rule:
    """The rule of an id such as ``numpy.add``.

    Raises:
        NotTranslated: there is none.
    """
    found = _RULES.get(target)
    if found is None:
        raise NotTranslated("it has no compiled form")
    return found


def _spec(value: Any) -> Any:
    return value.node.spec if isinstance(value, Proxy) else None


def _numpy_dtype(spec: TensorSpec) -> np.dtype[Any]:
    return np.dtype(spec.dtype.name)


def _cast(value: Any, dtype: Any) -> Any:
    return value if _spec(value) is None or _spec(value).dtype is dtype else ops.convert_element_type(value, dtype)


def _common(operands: tuple[Any, ...]) -> Any:
    kinds = [_numpy_dtype(_spec(v)) if _spec(v) is not None else v for v in operands]
    return dtype_of(np.result_type(*kinds).name)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) if _spec(value) is None else _spec(value).dtype.kind in ("int", "uint", "bool")


def _elementwise(op: Any, arity: int, of_operands: bool = False, floats: bool = False) -> Rule:
    """``of_operands``: computed in the operands' common dtype (comparisons), else in the result's."""

    def rule(spec: TensorSpec, *args: Any) -> Any:
        if len(args) != arity:
            raise NotTranslated("optional arguments")
        dtype = _common(args) if of_operands else spec.dtype
        if of_operands and dtype.kind == "float" and all(_is_whole(a) for a in args):
            raise NotTranslated("signed and unsigned 64-bit integers, which NumPy compares exactly")
        if floats and dtype.kind != "float":
            raise NotTranslated(f"{op.id} of {dtype.name}")
        return op(*[_cast(a, dtype) for a in args])

    return rule


def _dims(axis: Any, ndim: int) -> Any:
    return tuple(range(ndim)) if axis is None else axis


def _reduction(op: Any) -> Rule:
    """Computed in the result's dtype, as NumPy does."""

    def rule(
        spec: TensorSpec, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
    ) -> Any:
        if out is not None:
            raise NotTranslated("out=")
        return op(_cast(a, spec.dtype), _dims(axis, len(_spec(a).shape)), keepdim=bool(keepdims))

    return rule


def _extreme(op: Any) -> Rule:
    def rule(spec: TensorSpec, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        if out is not None:
            raise NotTranslated("out=")
        return op(a, _dims(axis, len(_spec(a).shape)), keepdim=bool(keepdims))

    return rule


def _argument(op: Any) -> Rule:
    return lambda spec, a, axis=None, *, keepdims=False: op(a, axis, bool(keepdims))


def _spread(op: Any) -> Rule:
    def rule(spec: TensorSpec, a: Any, axis: Any = None, *, ddof: Any = 0, keepdims: Any = False) -> Any:
        return op(_cast(a, spec.dtype), _dims(axis, len(_spec(a).shape)), correction=ddof, keepdim=bool(keepdims))

    return rule


def _product(spec: TensorSpec, a: Any, b: Any) -> Any:
    if not len(_spec(a).shape) or not len(_spec(b).shape):
        raise NotTranslated("a product of numbers")
    return ops.matmul(_cast(a, spec.dtype), _cast(b, spec.dtype))


def _dot(spec: TensorSpec, a: Any, b: Any) -> Any:
    if not (1 <= len(_spec(a).shape) <= 2 and 1 <= len(_spec(b).shape) <= 2):
        raise NotTranslated("a dot product of more than two dimensions")
    return _product(spec, a, b)


def _reshape(spec: TensorSpec, a: Any, *shape: Any) -> Any:
    if any(isinstance(s, str) for s in shape):
        raise NotTranslated("another order than 'C'")
    return ops.reshape(a, tuple(spec.shape))


def _transpose(spec: TensorSpec, a: Any, *axes: Any) -> Any:
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
    ndim = len(_spec(a).shape)
    return ops.permute(a, tuple(given) if given else tuple(reversed(range(ndim))))


def _getitem(spec: TensorSpec, a: Any, index: Any) -> Any:
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, slice) and item.step is not None and not (type(item.step) is int and item.step > 0):
            raise NotTranslated("a slice with a negative step")
        if not (item is None or item is Ellipsis or type(item) in (int, slice)):
            raise NotTranslated("an index that is no int or slice")
    return a[index]


def _where(spec: TensorSpec, condition: Any, x: Any, y: Any) -> Any:
    if _spec(x) is None and _spec(y) is None:
        raise NotTranslated("two numbers")  # their dtype is Python's in NumPy, the default dtype's here
    return ops.where(condition, _cast(x, spec.dtype), _cast(y, spec.dtype))


def _clip(spec: TensorSpec, a: Any, low: Any = None, high: Any = None) -> Any:
    return ops.clamp(_cast(a, spec.dtype), _cast(low, spec.dtype), _cast(high, spec.dtype))


def _joined(op: Any) -> Rule:
    def rule(spec: TensorSpec, arrays: Any, axis: Any = 0) -> Any:
        if type(axis) is not int:
            raise NotTranslated("axis=None")
        return op([_cast(a, spec.dtype) for a in arrays], axis)

    return rule


def _cumulative(op: Any) -> Rule:
    def rule(spec: TensorSpec, a: Any, axis: Any = None) -> Any:
        flat = ops.reshape(a, tuple(spec.shape)) if axis is None else a
        return op(_cast(flat, spec.dtype), 0 if axis is None else axis)

    return rule


_UNARY = {
    **{"exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10"},
    **{"log1p": "log1p", "sqrt": "sqrt", "square": "square", "reciprocal": "reciprocal"},
    **{"sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh"},
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh"},
    **{"arctanh": "atanh", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "round"},
}
"""Of floating-point numbers only: NumPy's rules for integers differ from function to function."""
_PAIRS = {"add": "add", "subtract": "sub", "multiply": "mul", "maximum": "maximum", "minimum": "minimum"}
_FLOAT_PAIRS = {"divide": "div", "power": "pow", "arctan2": "atan2", "hypot": "hypot"}
_COMPARISONS = {
    **{"less": "lt", "less_equal": "le", "greater": "gt"},
    **{"greater_equal": "ge", "equal": "eq", "not_equal": "ne"},
}


def _fill_elementwise(table: dict[str, Rule]) -> None:
    for name, ours in _UNARY.items():
        table[f"numpy.{name}"] = _elementwise(getattr(ops, ours), 1, floats=True)
    for name, ours in {"negative": "neg", "absolute": "abs"}.items():
        table[f"numpy.{name}"] = table[f"operator.{ours}"] = _elementwise(getattr(ops, ours), 1)
    for name, ours in _PAIRS.items():
        table[f"numpy.{name}"] = table[f"operator.{ours}"] = _elementwise(getattr(ops, ours), 2)
    for name, ours in _FLOAT_PAIRS.items():
        table[f"numpy.{name}"] = _elementwise(getattr(ops, ours), 2, floats=True)
    for name, ours in _COMPARISONS.items():
        table[f"numpy.{name}"] = table[f"operator.{ours}"] = _elementwise(getattr(ops, ours), 2, of_operands=True)
    for name, ours in {"and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor"}.items():
        table[f"operator.{name}"] = table[f"numpy.{ours}"] = _elementwise(getattr(ops, ours), 2)
    table["operator.invert"] = table["numpy.invert"] = _elementwise(ops.bitwise_not, 1)
    table |= {"operator.truediv": table["numpy.divide"], "operator.pow": table["numpy.power"], "numpy.where": _where}


def _fill_methods(table: dict[str, Rule], where: str) -> None:
    """What NumPy has as a function and as a method."""
    for name in ("sum", "mean", "prod"):
        table[f"{where}.{name}"] = _reduction(getattr(ops, name))
    for name, ours in {"max": "amax", "min": "amin", "any": "any", "all": "all"}.items():
        table[f"{where}.{name}"] = _extreme(getattr(ops, ours))
    for name in ("argmax", "argmin"):
        table[f"{where}.{name}"] = _argument(getattr(ops, name))
    for name in ("std", "var"):
        table[f"{where}.{name}"] = _spread(getattr(ops, name))
    for name in ("cumsum", "cumprod"):
        table[f"{where}.{name}"] = _cumulative(getattr(ops, name))
    for name in ("reshape", "ravel", "squeeze"):
        table[f"{where}.{name}"] = _reshape
    table |= {f"{where}.transpose": _transpose, f"{where}.clip": _clip, f"{where}.dot": _dot}
    table[f"{where}.swapaxes"] = lambda spec, a, i, j: ops.transpose(a, i, j)


def _fill_others(table: dict[str, Rule]) -> None:
    table |= {"operator.matmul": _product, "numpy.matmul": _product, "operator.getitem": _getitem}
    table |= {"numpy.concatenate": _joined(ops.cat), "numpy.stack": _joined(ops.stack), "numpy.expand_dims": _reshape}
    table |= {"attribute.T": _transpose, "attribute.mT": lambda spec, a: ops.transpose(a, -1, -2)}
    table |= {
        "ndarray.astype": lambda spec, a, dtype: _cast(a, spec.dtype),
        "ndarray.copy": lambda spec, a: ops.clone(a),
    }


def _fill_other_names() -> None:
    """NumPy has several names for one function (``concat`` is ``concatenate``); the rule is the same."""
    known = {id(getattr(np, k.partition(".")[2])): rule for k, rule in _RULES.items() if k.startswith("numpy.")}
    for name in np.__all__:
        rule = known.get(id(getattr(np, name)))
        if rule is not None:
            _RULES.setdefault(f"numpy.{name}", rule)


_fill_elementwise(_RULES)
_fill_methods(_RULES, "numpy")
_fill_methods(_RULES, "ndarray")
_fill_others(_RULES)
_fill_other_names()
