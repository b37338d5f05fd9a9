"""Functions of kernels that sort: see ``sorting``.

``lm_opaque`` is its argument, through which LLVM does not see. Without it that of triton 3.9 takes up to two minutes
for a loop of stages, looking for what is known of words in front of it and which of their bits are read behind it.
"""

from __future__ import annotations

__all__ = ["SORT_FUNCTIONS"]

SORT_FUNCTIONS = """
@triton.jit
def lm_number_key(x):
    bits = tl.where(x != x, float("nan"), x + 0.0).to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)

@triton.jit
def lm_float_key(bits, most: tl.constexpr, infinity: tl.constexpr):
    size = bits & most
    key = tl.where(bits < 0, bits ^ most, bits)
    return tl.where(size > infinity, most, tl.where(size == 0, 0, key))

@triton.jit
def lm_key_bits(key, place, most: tl.constexpr):
    bits = tl.where(key < 0, key ^ most, key)
    return tl.where((place & 1) != 0, -most - 1, bits)

@triton.jit
def lm_word_place(word):
    return ((word & 65535) >> 1).to(tl.int64)

@triton.jit
def lm_partner(x, n: tl.constexpr, bit: tl.constexpr):
    return tl.sum(x, n - bit, keep_dims=True) - x

@triton.jit
def lm_upper(n: tl.constexpr, bit: tl.constexpr):
    return tl.reshape(tl.arange(0, 2), [1] * (n - bit) + [2] + [1] * bit) != 0

@triton.jit
def lm_swaps(less, more, n: tl.constexpr, bit: tl.constexpr, stage: tl.constexpr, own: tl.constexpr):
    upper = lm_upper(n, bit)
    if bit < own:
        swap = tl.where(upper, less, more)
    else:
        swap = more != upper
    if stage < n:
        swap = swap != lm_upper(n, stage)
    return swap

@triton.jit
def lm_spread(x, n: tl.constexpr, high: tl.constexpr, low: tl.constexpr):
    if high > 1:
        rows: tl.constexpr = x.shape[0]
        between: tl.constexpr = x.shape[1] // (high * low)
        x = tl.permute(tl.reshape(x, [rows, high, between, low]), [0, 2, 1, 3])
    return tl.reshape(x, [x.shape[0]] + [2] * n)

@triton.jit
def lm_late_swaps(less, more, n: tl.constexpr, bit: tl.constexpr, flip, own: tl.constexpr):
    upper = lm_upper(n, bit)
    if bit < own:
        swap = tl.where(upper, less, more)
    else:
        swap = more != upper
    return swap != flip

@triton.jit
def lm_late_flip(n: tl.constexpr, own: tl.constexpr, stage):
    place = tl.zeros([1] * (n + 1), tl.int32)
    for bit in tl.static_range(own, n):
        place = place + (lm_upper(n, bit).to(tl.int32) << bit)
    return ((place >> stage) & 1) != 0

@triton.jit
def lm_opaque(x):
    if x.dtype.primitive_bitwidth == 32:
        return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=True, pack=1)
    else:
        return tl.inline_asm_elementwise("mov.b64 $0, $1;", "=l,l", [x], dtype=x.dtype, is_pure=True, pack=1)

@triton.jit
def lm_sort_words(x, n: tl.constexpr, own: tl.constexpr, high: tl.constexpr, low: tl.constexpr):
    h = lm_spread(x, n, high, low)
    most: tl.constexpr = 11 if x.dtype.primitive_bitwidth == 32 else 9
    unrolled: tl.constexpr = n if n < most else own
    for stage in tl.static_range(1, unrolled + 1):
        for step in tl.static_range(stage):
            y = lm_partner(h, n, stage - 1 - step)
            h = tl.where(lm_swaps(h < y, h > y, n, stage - 1 - step, stage, own), y, h)
    if unrolled < n:
        h = lm_opaque(h)
        bits = (2 << unrolled) - 1
        for stage in range(unrolled + 1, n + 1):
            flip = lm_late_flip(n, own, stage)
            for step in tl.static_range(n):
                if ((bits >> (n - 1 - step)) & 1) != 0:
                    y = lm_partner(h, n, n - 1 - step)
                    h = tl.where(lm_late_swaps(h < y, h > y, n, n - 1 - step, flip, own), y, h)
            bits = bits * 2 + 1
        h = lm_opaque(h)
    return tl.reshape(h, x.shape)

@triton.jit
def lm_extreme(x, steps: tl.constexpr, largest: tl.constexpr):
    for _ in tl.static_range(steps):
        a, b = tl.split(tl.reshape(x, [1, x.shape[1] // 2, 2]))
        if largest:
            x = lm_maximum(a, b)
        else:
            x = tl.minimum(a, b)
    return x

@triton.jit
def lm_merge_words(x, n: tl.constexpr):
    h = lm_spread(x, n, 1, 1)
    for step in tl.static_range(n):
        y = lm_partner(h, n, n - 1 - step)
        h = tl.where(lm_swaps(h < y, h > y, n, n - 1 - step, n, 0), y, h)
    return tl.reshape(h, x.shape)

@triton.jit
def lm_first_words(
    x, n: tl.constexpr, m: tl.constexpr, own: tl.constexpr, high: tl.constexpr, low: tl.constexpr
):
    h = lm_spread(x, n, high, low)
    for stage in tl.static_range(1, m + 1):
        for step in tl.static_range(stage):
            y = lm_partner(h, n, stage - 1 - step)
            h = tl.where(lm_swaps(h < y, h > y, n, stage - 1 - step, stage, own), y, h)
    for level in tl.static_range(1, n - m + 1):
        h = tl.min(h, n - m + 1 - level)
        for step in tl.static_range(m):
            y = lm_partner(h, n - level, m - 1 - step)
            h = tl.where(lm_swaps(h < y, h > y, n - level, m - 1 - step, m, own), y, h)
    return tl.reshape(h, [x.shape[0], 1 << m])

@triton.jit
def lm_repeat(x, columns: tl.constexpr):
    rows: tl.constexpr = x.shape[0]
    width: tl.constexpr = x.shape[1]
    return tl.reshape(tl.broadcast_to(x[:, None, :], [rows, columns // width, width]), [rows, columns])

@triton.jit
def lm_lower_half(x, n: tl.constexpr, bit: tl.constexpr):
    return tl.sum(tl.where(lm_upper(n, bit), 0, x), n - bit)

@triton.jit
def lm_first_pairs(
    x, at, n: tl.constexpr, m: tl.constexpr, own: tl.constexpr, high: tl.constexpr, low: tl.constexpr
):
    h = lm_spread(x, n, high, low)
    p = lm_spread(at, n, high, low)
    for stage in tl.static_range(1, m + 1):
        for step in tl.static_range(stage):
            h, p = lm_pair_step(h, p, n, stage - 1 - step, stage, own)
    for level in tl.static_range(1, n - m + 1):
        h, p = lm_pair_step(h, p, n - level + 1, m, n - level + 1, own)
        h = lm_lower_half(h, n - level + 1, m)
        p = lm_lower_half(p, n - level + 1, m)
        for step in tl.static_range(m):
            h, p = lm_pair_step(h, p, n - level, m - 1 - step, m, own)
    return tl.reshape(h, [x.shape[0], 1 << m]), tl.reshape(p, [x.shape[0], 1 << m])

@triton.jit
def lm_pair_step(h, p, n: tl.constexpr, bit: tl.constexpr, stage: tl.constexpr, own: tl.constexpr):
    y = lm_partner(h, n, bit)
    q = lm_partner(p, n, bit)
    less = (h < y) | ((h == y) & (p < q))
    more = (h > y) | ((h == y) & (p > q))
    swap = lm_swaps(less, more, n, bit, stage, own)
    return tl.where(swap, y, h), tl.where(swap, q, p)

@triton.jit
def lm_sort_pairs(x, at, n: tl.constexpr, own: tl.constexpr, high: tl.constexpr, low: tl.constexpr):
    h = lm_spread(x, n, high, low)
    p = lm_spread(at, n, high, low)
    unrolled: tl.constexpr = n if n < 8 else own
    for stage in tl.static_range(1, unrolled + 1):
        for step in tl.static_range(stage):
            h, p = lm_pair_step(h, p, n, stage - 1 - step, stage, own)
    if unrolled < n:
        bits = (2 << unrolled) - 1
        for stage in range(unrolled + 1, n + 1):
            flip = lm_late_flip(n, own, stage)
            for step in tl.static_range(n):
                if ((bits >> (n - 1 - step)) & 1) != 0:
                    y = lm_partner(h, n, n - 1 - step)
                    q = lm_partner(p, n, n - 1 - step)
                    less = (h < y) | ((h == y) & (p < q))
                    more = (h > y) | ((h == y) & (p > q))
                    swap = lm_late_swaps(less, more, n, n - 1 - step, flip, own)
                    h = tl.where(swap, y, h)
                    p = tl.where(swap, q, p)
            bits = bits * 2 + 1
    return tl.reshape(h, x.shape), tl.reshape(p, x.shape)
"""
