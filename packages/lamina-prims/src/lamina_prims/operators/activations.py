"""Activation functions of neural networks.

Shapes: any -> same (glu halves one dimension). float16 and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math

from ..along import along
from ..metas import same_floating
from ..precision import narrow, widen
from ..registry import both, composite, ops
from ..samples import call, calls, error, tensor, unary
from ..types import Tensor

__all__: list[str] = []

_FLOATS = ("float32", "float64", "bfloat16")
_SQRT_HALF = math.sqrt(0.5)
_TANH_SCALE = math.sqrt(2.0 / math.pi)


def _named(name: str, *more: str) -> tuple[str, ...]:
    return (f"nn.functional.{name}", *more)


@composite(names=_named("relu", *both("relu")), in_place=True, samples=unary())
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x). NaN stays NaN; the gradient at 0 is 0."""
    return ops.maximum(input, 0)


@relu.vjp
def _(ct, out):
    return (ops.where(ops.le(out, 0), 0.0, ct),)


@composite(names=_named("relu6"), in_place=True, samples=unary(-2, 8, dtypes=_FLOATS))
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return hardtanh(input, 0.0, 6.0)


@composite(names=_named("hardtanh"), in_place=True, samples=unary(dtypes=_FLOATS))
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]. The gradient at the limits is 0."""
    return ops.minimum(ops.maximum(input, min_val), max_val)


@hardtanh.vjp
def _(ct, input, min_val, max_val):
    inside = ops.logical_and(ops.gt(input, min_val), ops.lt(input, max_val))
    return (ops.where(inside, ct, 0.0),)


@composite(meta=same_floating(), names=_named("leaky_relu"), in_place=True, samples=unary(dtypes=_FLOATS))
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope * x below."""
    return ops.where(ops.gt(input, 0), input, ops.mul(input, negative_slope))


@composite(names=_named("rrelu"), samples=unary(dtypes=_FLOATS))
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU whose slope is the mean of the bounds (in training a front end draws one for each element)."""
    if training:
        raise RuntimeError("rrelu: training=True needs random slopes; use rrelu_with_state(input, lower, upper, state)")
    return leaky_relu(input, (lower + upper) / 2)


@composite(
    names=_named("prelu", "prelu", "Tensor.prelu"),
    samples=calls(call(tensor(2, 3, 4), tensor(3)), call(tensor(2, 3), tensor(1)), call(tensor(5), tensor(1))),
    errors=[error(RuntimeError, "number of input channels", tensor(2, 3), tensor(4))],
)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight * x below; ``weight`` has one element, or one for each channel (dimension 1)."""
    if tuple(weight.shape) not in ((), (1,)):
        if len(input.shape) < 2 or weight.shape[0] != input.shape[1]:
            raise RuntimeError(
                f"prelu: mismatch of parameter numbers and the number of input channels: {tuple(weight.shape)} for an "
                f"input {tuple(input.shape)}"
            )
        weight = along(weight, 1, len(input.shape))
    else:
        weight = ops.reshape(weight, (1,) * len(input.shape))
    return ops.where(ops.gt(input, 0), input, ops.mul(input, weight))


@composite(meta=same_floating(), names=_named("elu"), in_place=True, samples=unary(dtypes=_FLOATS))
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below. Source: Clevert et al. 2015."""
    x = widen(input)
    low = ops.mul(ops.expm1(ops.where(ops.gt(x, 0), 0.0, x)), alpha)
    return narrow(ops.where(ops.gt(x, 0), x, low), input)


@composite(names=_named("celu", "celu"), in_place=True, samples=unary(dtypes=_FLOATS))
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha * (exp(x / alpha) - 1) below. Source: Barron 2017."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    x = widen(input)
    low = ops.mul(ops.expm1(ops.div(ops.where(ops.gt(x, 0), 0.0, x), alpha)), alpha)
    return narrow(ops.where(ops.gt(x, 0), x, low), input)


@composite(meta=same_floating(), names=_named("selu", "selu"), in_place=True, samples=unary(dtypes=_FLOATS))
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU that keeps mean 0 and variance 1. Source: Klambauer et al. 2017."""
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    x = widen(input)
    low = ops.mul(ops.expm1(ops.where(ops.gt(x, 0), 0.0, x)), scale * alpha)
    return narrow(ops.where(ops.gt(x, 0), ops.mul(x, scale), low), input)


def _check_gelu(input: Tensor, approximate: str = "none") -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"gelu: approximate argument must be either none or tanh, got {approximate!r}")


@composite(
    meta=same_floating(_check_gelu),
    names=_named("gelu"),
    samples=calls(
        *(call(tensor(3, 4, dtype=d), approximate=a) for d in _FLOATS for a in ("none", "tanh")),
        call(tensor(12, kind="special")),
        call(tensor(0, 2)),
    ),
    errors=[error(RuntimeError, "approximate", tensor(2), approximate="erf")],
)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), exactly or by a tanh. Source: Hendrycks and Gimpel 2016."""
    _check_gelu(input, approximate)
    x = widen(input)
    if approximate == "none":
        cdf = ops.mul(ops.add(ops.erf(ops.mul(x, _SQRT_HALF)), 1.0), 0.5)
    else:
        cdf = ops.mul(ops.add(ops.tanh(_tanh_argument(x)), 1.0), 0.5)
    return narrow(ops.mul(x, cdf), input)


def _tanh_argument(x: Tensor) -> Tensor:
    return ops.mul(ops.mul(x, ops.add(ops.mul(ops.mul(x, x), 0.044715), 1.0)), _TANH_SCALE)


@gelu.vjp
def _(ct, input, approximate):
    x, ct = widen(input), widen(ct)
    if approximate == "none":
        cdf = ops.mul(ops.add(ops.erf(ops.mul(x, _SQRT_HALF)), 1.0), 0.5)
        pdf = ops.mul(ops.exp(ops.mul(ops.mul(x, x), -0.5)), 1.0 / math.sqrt(2.0 * math.pi))
        return (ops.mul(ct, ops.add(cdf, ops.mul(x, pdf))),)
    t = ops.tanh(_tanh_argument(x))
    inner = ops.mul(ops.add(ops.mul(ops.mul(x, x), 3 * 0.044715), 1.0), _TANH_SCALE)
    slope = ops.mul(ops.mul(x, ops.sub(1.0, ops.mul(t, t))), inner)
    return (ops.mul(ct, ops.mul(ops.add(ops.add(t, 1.0), slope), 0.5)),)


@composite(meta=same_floating(), names=_named("silu"), in_place=True, samples=unary(dtypes=_FLOATS))
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x). Source: Elfwing et al. 2017."""
    x = widen(input)
    return narrow(ops.mul(x, ops.sigmoid(x)), input)


@silu.vjp
def _(ct, input):
    x, ct = widen(input), widen(ct)
    s = ops.sigmoid(x)
    return (ops.mul(ct, ops.mul(s, ops.add(ops.mul(x, ops.sub(1.0, s)), 1.0))),)


@composite(meta=same_floating(), names=_named("mish"), in_place=True, samples=unary(dtypes=_FLOATS))
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)). Source: Misra 2019."""
    x = widen(input)
    return narrow(ops.mul(x, ops.tanh(softplus(x))), input)


@composite(meta=same_floating(), names=_named("softplus"), samples=unary(-30, 30, dtypes=_FLOATS))
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, linear above the threshold. Source: Dugas et al. 2001."""
    x = widen(input)
    scaled = ops.mul(x, float(beta))
    linear = ops.gt(scaled, threshold)
    bent = ops.mul(ops.log1p(ops.exp(ops.where(linear, 0.0, scaled))), 1.0 / beta)
    return narrow(ops.where(linear, x, bent), input)


@softplus.vjp
def _(ct, input, beta, threshold):
    ct, scaled = widen(ct), ops.mul(widen(input), float(beta))
    return (ops.where(ops.gt(scaled, threshold), ct, ops.mul(ct, ops.sigmoid(scaled))),)


@composite(meta=same_floating(), names=_named("logsigmoid"), samples=unary(-30, 30, dtypes=_FLOATS))
def log_sigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) without overflow."""
    x = widen(input)
    return narrow(ops.sub(ops.minimum(x, 0.0), ops.log1p(ops.exp(ops.neg(ops.abs(x))))), input)


@log_sigmoid.vjp
def _(ct, input):
    return (ops.mul(widen(ct), ops.sigmoid(ops.neg(widen(input)))),)


@composite(meta=same_floating(), names=_named("softsign"), samples=unary(dtypes=_FLOATS))
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    x = widen(input)
    return narrow(ops.div(x, ops.add(ops.abs(x), 1.0)), input)


@composite(meta=same_floating(), names=_named("tanhshrink"), samples=unary(dtypes=_FLOATS))
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    x = widen(input)
    return narrow(ops.sub(x, ops.tanh(x)), input)


@composite(names=_named("hardshrink", *both("hardshrink")), samples=unary(dtypes=_FLOATS))
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, and 0 within [-lambd, lambd]."""
    return ops.where(ops.le(ops.abs(input), lambd), 0.0, input)


@composite(names=_named("softshrink"), samples=unary(dtypes=_FLOATS))
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 within [-lambd, lambd]."""
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}")
    above = ops.where(ops.gt(input, lambd), ops.sub(input, lambd), 0.0)
    moved = ops.where(ops.lt(input, -lambd), ops.add(input, lambd), above)
    return ops.where(ops.ne(input, input), input, moved)


@composite(
    names=_named("threshold", "threshold"), in_place=True, samples=unary(dtypes=_FLOATS, threshold=0.3, value=-1.0)
)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, ``value`` at and below it."""
    return ops.where(ops.le(input, threshold), value, input)


@composite(meta=same_floating(), names=_named("hardsigmoid"), in_place=True, samples=unary(-5, 5, dtypes=_FLOATS))
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6. Source: Howard et al. 2019."""
    x = widen(input)
    return narrow(ops.mul(hardtanh(ops.add(x, 3.0), 0.0, 6.0), 1.0 / 6.0), input)


@composite(meta=same_floating(), names=_named("hardswish"), in_place=True, samples=unary(-5, 5, dtypes=_FLOATS))
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x). Source: Howard et al. 2019."""
    x = widen(input)
    return narrow(ops.mul(ops.mul(x, hardtanh(ops.add(x, 3.0), 0.0, 6.0)), 1.0 / 6.0), input)


@composite(
    names=_named("glu"),
    samples=calls(call(tensor(2, 6)), call(tensor(4, 3), 0), call(tensor(2, 4, dtype="bfloat16"))),
    errors=[error(RuntimeError, "even", tensor(2, 3))],
)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b) for the halves a, b along ``dim``. Source: Dauphin et al. 2016."""
    size = input.shape[dim]
    if size % 2 != 0:
        raise RuntimeError(f"glu: halving dimension must be even, but dimension {dim} is size {size}")
    half = size // 2
    a, b = ops.slice(input, dim, 0, half), ops.slice(input, dim, half, size)
    return narrow(ops.mul(widen(a), ops.sigmoid(widen(b))), input)


@composite(names=_named("softmin"), samples=calls(call(tensor(2, 3), 1), call(tensor(2, 3), 0)))
def softmin(input: Tensor, dim: int, *, dtype: object = None) -> Tensor:
    """softmax(-x)."""
    return ops.softmax(ops.neg(input), dim, dtype=dtype)
