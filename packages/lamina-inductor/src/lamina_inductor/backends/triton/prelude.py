"""Functions that kernels call: Triton text, of which a module contains what it mentions.

NaN wins in ``maximum`` and ``minimum``; integers are divided as in Python, and by zero give 0; a shift by the width or
more gives 0 or all sign bits. ``lm_philox`` is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011).

``lm_from_e4m3`` and ``lm_to_e4m3`` (``e5m2``) make numbers of the bytes of float8 values, and back: normal numbers by
rounding their bits to even, smaller ones by adding a number whose last place is the smallest float8. What is too large
becomes infinity (e5m2) or the largest number (e4m3, which has no infinity).

``lm_log_pairs`` adds up two sums of exponentials, each as the largest exponent and the sum divided by its exponential.

``lm_bfloat16`` rounds float32 values to bfloat16, two in one operation; a conversion there and back takes a slow unit.
``lm_widened`` is the way back, also of two, without a shift of the second one.

``lm_erf_narrow`` and ``lm_tanh_narrow`` are for ``1 + erf(x)`` and ``1 + tanh(x)`` on the way to bfloat16: the
relative error of that sum is below 4e-4, a tenth of a unit in the last place of bfloat16, also where the sum is small.
``lm_gelu_narrow`` is ``x * 0.5 * (1 + erf(x / sqrt(2)))`` as well as that. (``1 - erf`` of a positive number is a
power of two, whose exponent is a polynomial that was fitted on [0, 4].)
"""

from __future__ import annotations

import re

from .sort_functions import SORT_FUNCTIONS

__all__ = ["IMPORTS", "functions_for"]

IMPORTS = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""

_TEXT = """
@triton.jit
def lm_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)

@triton.jit
def lm_minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)

@triton.jit
def lm_product(a, b):
    return a * b

@triton.jit
def lm_log_pairs(a, s, b, t):
    less = tl.exp(-tl.where(a == b, 0.0, tl.abs(a - b)))
    return lm_maximum(a, b), tl.where(a < b, s * less + t, s + t * less)

@triton.jit
def lm_bfloat16(x):
    return tl.inline_asm_elementwise(
        "{ .reg .b32 t; cvt.rn.bf16x2.f32 t, $3, $2; shl.b32 $0, t, 16; and.b32 $1, t, 0xffff0000; }",
        "=r,=r,r,r", [x], dtype=tl.float32, is_pure=True, pack=2)

@triton.jit
def lm_widened(x):
    return tl.inline_asm_elementwise(
        "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;",
        "=r,=r,r", [x], dtype=tl.float32, is_pure=True, pack=2)

@triton.jit
def lm_from_e4m3(x):
    u = x.to(tl.uint32)
    low = u & 0x7F
    v = tl.where(low < 8, low.to(tl.float32) * 0.001953125, ((low << 20) + 0x3C000000).to(tl.float32, bitcast=True))
    v = tl.where(low == 0x7F, float("nan"), v)
    return (v.to(tl.uint32, bitcast=True) | ((u & 0x80) << 24)).to(tl.float32, bitcast=True)

@triton.jit
def lm_from_e5m2(x):
    u = x.to(tl.uint32)
    low = u & 0x7F
    bits = (low << 21) + tl.where(low < 0x7C, 0x38000000, 0x70000000).to(tl.uint32)
    v = tl.where(low < 4, low.to(tl.float32) * 1.52587890625e-05, bits.to(tl.float32, bitcast=True))
    return (v.to(tl.uint32, bitcast=True) | ((u & 0x80) << 24)).to(tl.float32, bitcast=True)

@triton.jit
def lm_to_float8(
    x, dropped: tl.constexpr, rebias: tl.constexpr, magic: tl.constexpr, most: tl.constexpr, nan: tl.constexpr
):
    u = x.to(tl.uint32, bitcast=True)
    a = u & 0x7FFFFFFF
    normal = ((a + ((1 << (dropped - 1)) - 1) + ((a >> dropped) & 1)) >> dropped) - (rebias << (23 - dropped))
    start = tl.full([], magic, tl.float32)
    tiny = (tl.abs(x) + start).to(tl.uint32, bitcast=True) - start.to(tl.uint32, bitcast=True)
    code = tl.minimum(tl.where(a < ((rebias + 1) << 23), tiny, normal), most)
    code = tl.where(a > 0x7F800000, nan, code)
    return (code | ((u >> 24) & 0x80)).to(tl.uint8)

@triton.jit
def lm_to_e4m3(x):
    return lm_to_float8(x, 20, 120, 16384.0, 0x7E, 0x7F)

@triton.jit
def lm_to_e5m2(x):
    return lm_to_float8(x, 21, 112, 128.0, 0x7C, 0x7E)

@triton.jit
def lm_reciprocal(x):
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)

@triton.jit
def lm_sum2(a, b, c, d):
    return a + c, b + d

@triton.jit
def lm_sum3(a, b, c, d, e, f):
    return a + d, b + e, c + f

@triton.jit
def lm_sum4(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h

@triton.jit
def lm_xor(a, b):
    return a ^ b

@triton.jit
def lm_argmax(a, i, b, j):
    nan_a = a != a
    nan_b = b != b
    same = (a == b) | (nan_a & nan_b)
    left = (a > b) & (nan_b == 0) | nan_a & (nan_b == 0) | same & (i < j)
    return tl.where(left, a, b), tl.where(left, i, j)

@triton.jit
def lm_argmin(a, i, b, j):
    nan_a = a != a
    nan_b = b != b
    same = (a == b) | (nan_a & nan_b)
    left = (a < b) & (nan_b == 0) | nan_a & (nan_b == 0) | same & (i < j)
    return tl.where(left, a, b), tl.where(left, i, j)

@triton.jit
def lm_erf_narrow(x):
    a = tl.abs(x)
    p = (((-0.0013052148 * a + 0.019447485) * a - 0.126488745) * a - 0.93800443) * a - 1.622501
    return libdevice.copysign(1.0 - tl.exp2(p * a), x)

@triton.jit
def lm_gelu_narrow(x):
    a = tl.abs(x)
    p = (((-0.00023073157 * a + 0.0048618712) * a - 0.044720525) * a - 0.46900222) * a - 1.1472815
    e = tl.exp2(p * a - 1.0)
    return x * tl.where(x < 0, e, 1.0 - e)

@triton.jit
def lm_tanh_narrow(x):
    return 1.0 - 2.0 / (1.0 + tl.exp2(x * 2.8853900817779268))

@triton.jit
def lm_divide(a, b):
    return a / b

@triton.jit
def lm_row_quotient(x, row):
    a = tl.abs(row)
    scale = tl.where(a < 2.0**-100, 2.0**64, tl.where(a > 2.0**100, 2.0**-64, 1.0))
    return (x * scale) * (1.0 / (row * scale))

@triton.jit
def lm_with_sign(y, x):
    sign = x.to(tl.uint32, bitcast=True) & 0x80000000
    return (y.to(tl.uint32, bitcast=True) | sign).to(tl.float32, bitcast=True)

@triton.jit
def lm_fast_erf(x):
    a = tl.abs(x)
    t = libdevice.fast_dividef(1.0, 1.0 + 0.3275911 * a)
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return lm_with_sign(1.0 - p * tl.exp2(a * a * (-1.4426950408889634)), x)

@triton.jit
def lm_scaled_erf(x, a: tl.constexpr, b: tl.constexpr):
    t = lm_reciprocal(1.0 + a * tl.abs(x))
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return lm_with_sign(1.0 - p * tl.exp2(x * x * b), x)

@triton.jit
def lm_half_erf(x):
    a = tl.abs(x)
    return tl.where(a < 0.04, 1.1283791671 * x * (1.0 - a * a * 0.33333334), lm_fast_erf(x))

@triton.jit
def lm_fast_tanh(x):
    e = tl.exp2(tl.abs(x) * (-2.8853900817779268))
    return lm_with_sign(libdevice.fast_dividef(1.0 - e, 1.0 + e), x)

@triton.jit
def lm_half_tanh(x):
    a = tl.abs(x)
    return tl.where(a < 0.02, x * (1.0 - a * a * 0.33333334), lm_fast_tanh(x))

@triton.jit
def lm_sign(x):
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)

@triton.jit
def lm_heaviside(x, h):
    return tl.where(x == 0, h, tl.where(x != x, x, (x > 0).to(x.dtype)))

@triton.jit
def lm_sinc(x):
    y = x * 3.14159265358979323846
    return tl.where(x == 0, 1.0, tl.sin(y) / tl.where(x == 0, 1.0, y))

@triton.jit
def lm_float_remainder(a, b):
    r = libdevice.fmod(a, b)
    shifted = tl.where((r < 0) != (b < 0), r + b, r)
    return tl.where(r != 0, shifted, tl.where(r != r, r, libdevice.copysign(r * 0.0, b)))

@triton.jit
def lm_float_floor_div(a, b):
    r = libdevice.fmod(a, b)
    q = (a - r) / b
    q = tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1.0, q)
    whole = tl.floor(q)
    whole = tl.where(q - whole > 0.5, whole + 1.0, whole)
    whole = tl.where(q == 0, libdevice.copysign(q * 0.0, a / b), whole)
    return tl.where(b == 0, a / b, tl.where(r != r, r, whole))

@triton.jit
def lm_trunc_div(a, b):
    q = a // tl.where(b == 0, 1, b).to(a.dtype)
    return tl.where(b == 0, 0, q).to(a.dtype)

@triton.jit
def lm_trunc_remainder(a, b):
    r = a % tl.where(b == 0, 1, b).to(a.dtype)
    return tl.where(b == 0, 0, r).to(a.dtype)

@triton.jit
def lm_floor_div(a, b):
    d = tl.where(b == 0, 1, b).to(a.dtype)
    q = a // d
    lower = (a - q * d != 0) & ((a - q * d < 0) != (d < 0))
    return tl.where(b == 0, 0, q - lower.to(a.dtype)).to(a.dtype)

@triton.jit
def lm_remainder(a, b):
    d = tl.where(b == 0, 1, b).to(a.dtype)
    r = a % d
    r = tl.where((r != 0) & ((r < 0) != (d < 0)), r + d, r)
    return tl.where(b == 0, 0, r).to(a.dtype)

@triton.jit
def lm_shift_left(a, n, bits: tl.constexpr):
    fits = (n >= 0) & (n < bits)
    return tl.where(fits, a << tl.where(fits, n, 0).to(a.dtype), 0).to(a.dtype)

@triton.jit
def lm_shift_right(a, n, bits: tl.constexpr):
    fits = (n >= 0) & (n < bits)
    return tl.where(fits, a >> tl.where(fits, n, 0).to(a.dtype), tl.where(a < 0, -1, 0).to(a.dtype)).to(a.dtype)

@triton.jit
def lm_philox(seed, offset, i):
    start = offset.to(tl.uint64)
    block = (i // 4).to(tl.uint64) + start
    c0 = (block & 0xFFFFFFFF).to(tl.uint32)
    c1 = (block >> 32).to(tl.uint32)
    c2 = (block < start).to(tl.uint32)
    c3 = tl.zeros_like(c2)
    k0 = (seed & 0xFFFFFFFF).to(tl.uint32)
    k1 = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    for _ in tl.static_range(10):
        m0 = tl.full([], 0xD2511F53, tl.uint32)
        m1 = tl.full([], 0xCD9E8D57, tl.uint32)
        high0 = tl.umulhi(c0, m0)
        high1 = tl.umulhi(c2, m1)
        low0 = c0 * m0
        low1 = c2 * m1
        c0 = high1 ^ c1 ^ k0
        c1 = low1
        c2 = high0 ^ c3 ^ k1
        c3 = low0
        k0 = k0 + tl.full([], 0x9E3779B9, tl.uint32)
        k1 = k1 + tl.full([], 0xBB67AE85, tl.uint32)
    word = i % 4
    return tl.where(word == 0, c0, tl.where(word == 1, c1, tl.where(word == 2, c2, c3)))
"""

_FUNCTIONS: dict[str, str] = {
    re.search(r"def (\w+)", part)[1]: part.strip() + "\n"  # type: ignore[index]
    for part in re.split(r"\n(?=@triton\.jit)", _TEXT + SORT_FUNCTIONS)
    if part.strip()
}


def functions_for(source: str) -> str:
    """Those functions, in order, that ``source`` calls, and that they call."""
    used: set[str] = set()
    texts = [source]
    while texts:
        found = set(re.findall(r"\blm_\w+", texts.pop())) - used
        used |= found
        texts += [_FUNCTIONS[name] for name in found if name in _FUNCTIONS]
    return "\n\n".join([text for name, text in _FUNCTIONS.items() if name in used])
