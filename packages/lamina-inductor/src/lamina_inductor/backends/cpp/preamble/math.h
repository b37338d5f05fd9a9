// Elementary functions of generated kernels, for float and double, all free of branches where a loop over them should
// vectorise. With LM_LIBMVEC the C library's vector versions are used (at most 4 ULP); the attribute makes GCC call them
// without -ffast-math. Where libmvec is slow or absent the polynomials here take over; tests measure every one.

///@ libm
#ifdef LM_LIBMVEC
#define LM_SIMD __attribute__((simd("notinbranch"), const, nothrow, leaf))
#else
#define LM_SIMD __attribute__((const, nothrow, leaf))
#endif
#define LM_PROTO1(name) extern "C" { LM_SIMD f32 name##f(f32); LM_SIMD f64 name(f64); }
#define LM_PROTO2(name) extern "C" { LM_SIMD f32 name##f(f32, f32); LM_SIMD f64 name(f64, f64); }
#define LM_SCALAR1(name) extern "C" { __attribute__((const, nothrow, leaf)) f32 name##f(f32); __attribute__((const, nothrow, leaf)) f64 name(f64); }
#define LM_SCALAR2(name) extern "C" { __attribute__((const, nothrow, leaf)) f32 name##f(f32, f32); __attribute__((const, nothrow, leaf)) f64 name(f64, f64); }
#define LM_UNARY(proto, name) proto(name) LM_INLINE f32 lm_##name(f32 x) { return name##f(x); } LM_INLINE f64 lm_##name(f64 x) { return name(x); }
#define LM_BINARY(proto, name) proto(name) LM_INLINE f32 lm_##name(f32 x, f32 y) { return name##f(x, y); } LM_INLINE f64 lm_##name(f64 x, f64 y) { return name(x, y); }

///@ fast_exp
// exp on float, inlined so that a loop keeps its values in registers across it: x = n ln2 + r and a polynomial in r. Not scaled
// for subnormal results: below 2^-126 the result is zero or a little more. For arguments of at most 88; at most 1.1 ULP.
LM_INLINE f32 lm_exp_poly(f32 x) {
    f32 n = __builtin_rintf(x * 1.44269504f);
    f32 r = __builtin_fmaf(n, -0.693359375f, x);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    f32 p = 0.0013813142431899905f;
    p = __builtin_fmaf(p, r, 0.008369418792426586f);
    p = __builtin_fmaf(p, r, 0.04166845604777336f);
    p = __builtin_fmaf(p, r, 0.16666515171527863f);
    p = __builtin_fmaf(p, r, 0.4999999403953552f);
    p = __builtin_fmaf(p * r, r, r) + 1.0f;
    return p * lm_bits_f32((u32)((i32)n + 127) << 23);
}

///@ full_exp
// exp on float over its whole range: the power of two comes in two factors (subnormal results). Arguments whose result is zero
// are replaced, not clamped: making a subnormal only to round it to zero costs a hundred cycles.
LM_INLINE f32 lm_exp_own(f32 x) {
    f32 c = x < -104.0f ? 0.0f : x;
    c = c > 89.0f ? 89.0f : c;
    f32 n = __builtin_rintf(c * 1.44269504f);
    f32 r = __builtin_fmaf(n, -0.693359375f, c);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    f32 p = 0.0013813142431899905f;
    p = __builtin_fmaf(p, r, 0.008369418792426586f);
    p = __builtin_fmaf(p, r, 0.04166845604777336f);
    p = __builtin_fmaf(p, r, 0.16666515171527863f);
    p = __builtin_fmaf(p, r, 0.4999999403953552f);
    p = __builtin_fmaf(p * r, r, r) + 1.0f;
    i32 i = (i32)n, half = i >> 1;
    f32 y = p * lm_bits_f32((u32)(half + 127) << 23) * lm_bits_f32((u32)(i - half + 127) << 23);
    return x < -104.0f ? 0.0f : y;
}

///@ exp
LM_PROTO1(exp)
LM_INLINE f64 lm_exp(f64 x) { return exp(x); }
#ifdef LM_LIBMVEC
LM_INLINE f32 lm_exp(f32 x) { return expf(x); }
#else
LM_INLINE f32 lm_exp(f32 x) { return lm_exp_own(x); }
#endif

///@ sigmoid
LM_INLINE f32 lm_sigmoid(f32 x) { return 1.0f / (1.0f + lm_exp(-x)); }
LM_INLINE f64 lm_sigmoid(f64 x) { return 1.0 / (1.0 + lm_exp(-x)); }

///@ erf
// Below 1 an odd polynomial, above 1 - exp(-t q(t)); at most 2.5 ULP. libmvec's erff takes longer.
LM_PROTO1(erf)
LM_INLINE f64 lm_erf(f64 x) { return erf(x); }
LM_INLINE f32 lm_erf(f32 x) {
    f32 t = __builtin_fabsf(x), s = x * x;
    f32 p = 7.853857823647559e-05f;
    p = __builtin_fmaf(p, s, -0.0008010192541405559f);
    p = __builtin_fmaf(p, s, 0.005188327748328447f);
    p = __builtin_fmaf(p, s, -0.026853810995817184f);
    p = __builtin_fmaf(p, s, 0.1128358542919159f);
    p = __builtin_fmaf(p, s, -0.3761262595653534f);
    p = __builtin_fmaf(p, s, 1.1283791065216064f) * x;
    f32 c = t > 4.0f ? 4.0f : t;
    f32 q = 1.2339525710558519e-05f;
    q = __builtin_fmaf(q, c, -0.0003339609829708934f);
    q = __builtin_fmaf(q, c, 0.003688111202791333f);
    q = __builtin_fmaf(q, c, -0.023859279230237007f);
    q = __builtin_fmaf(q, c, 0.10635057091712952f);
    q = __builtin_fmaf(q, c, 0.6350820064544678f);
    q = __builtin_fmaf(q, c, 1.1286656856536865f);
    f32 big = __builtin_copysignf(1.0f - lm_exp_poly(-(c * q)), x);
    return t < 1.0f || x != x ? p : big;
}

///@ erf_plus_one
// 1 + erf(x) = erfc(-x): exp(-t q(t)) for negative x, 2 minus that for positive. Off by at most 1.2e-7 (half an ULP of 2), for
// negative x by at most 1e-5 of the value; below -4 it is 0, where erf itself has rounded to -1.
LM_INLINE f32 lm_erf_plus_one(f32 x) {
    f32 t = __builtin_fabsf(x), c = t > 4.0f ? 4.0f : t;
    f32 q = -2.363781050007674e-06f;
    q = __builtin_fmaf(q, c, 4.165853897575289e-05f);
    q = __builtin_fmaf(q, c, -0.0002902914711739868f);
    q = __builtin_fmaf(q, c, 0.0008544008596800268f);
    q = __builtin_fmaf(q, c, 0.0009273049072362483f);
    q = __builtin_fmaf(q, c, -0.019972678273916245f);
    q = __builtin_fmaf(q, c, 0.1031058207154274f);
    q = __builtin_fmaf(q, c, 0.6365587711334229f);
    q = __builtin_fmaf(q, c, 1.1283828020095825f);
    f32 tail = lm_exp_poly(-(c * q));
    tail = t > 4.0f ? 0.0f : tail;
    return x != x ? x : x > 0.0f ? 2.0f - tail : tail;
}

///@ exp2
LM_UNARY(LM_PROTO1, exp2)

///@ expm1
LM_UNARY(LM_PROTO1, expm1)

///@ log
LM_UNARY(LM_PROTO1, log)

///@ log2
LM_UNARY(LM_PROTO1, log2)

///@ log10
LM_UNARY(LM_PROTO1, log10)

///@ log1p
LM_UNARY(LM_PROTO1, log1p)

///@ sin
LM_UNARY(LM_PROTO1, sin)

///@ cos
LM_UNARY(LM_PROTO1, cos)

///@ tan
LM_UNARY(LM_PROTO1, tan)

///@ asin
LM_UNARY(LM_PROTO1, asin)

///@ acos
LM_UNARY(LM_PROTO1, acos)

///@ atan
LM_UNARY(LM_PROTO1, atan)

///@ sinh
LM_UNARY(LM_PROTO1, sinh)

///@ cosh
LM_UNARY(LM_PROTO1, cosh)

///@ tanh
LM_UNARY(LM_PROTO1, tanh)

///@ asinh
LM_UNARY(LM_PROTO1, asinh)

///@ acosh
LM_UNARY(LM_PROTO1, acosh)

///@ atanh
LM_UNARY(LM_PROTO1, atanh)

///@ erfc
LM_UNARY(LM_PROTO1, erfc)

///@ cbrt
LM_UNARY(LM_PROTO1, cbrt)

///@ atan2
LM_BINARY(LM_PROTO2, atan2)

///@ hypot
LM_BINARY(LM_PROTO2, hypot)

///@ pow
LM_BINARY(LM_PROTO2, pow)

///@ fmod
LM_BINARY(LM_SCALAR2, fmod)

///@ nextafter
LM_BINARY(LM_SCALAR2, nextafter)

///@ lgamma
LM_UNARY(LM_SCALAR1, lgamma)

///@ signbit
LM_INLINE bool lm_signbit(f32 x) { return (i32)lm_bits_u32(x) < 0; }
LM_INLINE bool lm_signbit(f64 x) { return (i64)lm_bits_u64(x) < 0; }

///@ heaviside
template <typename T> LM_INLINE T lm_heaviside(T x, T h) { return x == 0 ? h : x != x ? x : (T)(x > 0); }

///@ sinc
template <typename T> LM_INLINE T lm_sinc(T x) {
    T y = x * (T)3.14159265358979323846;
    return x == 0 ? (T)1 : lm_sin(y) / y;
}

///@ floatdiv
// As in NumPy: the remainder has the divisor's sign, the quotient is rounded from the exact difference.
template <typename T> LM_INLINE T lm_fremainder(T a, T b) {
    T r = lm_fmod(a, b);
    T shifted = (r < 0) != (b < 0) ? r + b : r;
    return r != 0 ? shifted : r != r ? r : (b < 0 ? (T)-0.0 : (T)0.0);
}
template <typename T> LM_INLINE T lm_ffloordiv(T a, T b) {
    T r = lm_fmod(a, b), q = (a - r) / b;
    q = r != 0 && (r < 0) != (b < 0) ? q - 1 : q;
    T whole = sizeof(T) == 4 ? (T)__builtin_floorf((f32)q) : (T)__builtin_floor((f64)q);
    whole = q - whole > (T)0.5 ? whole + 1 : whole;
    return b == 0 ? a / b : r != r ? r : q == 0 ? (sizeof(T) == 4 ? (T)__builtin_copysignf(0.0f, (f32)(a / b)) : (T)__builtin_copysign(0.0, (f64)(a / b))) : whole;
}

///@ digamma
// Recurrence up to 10, then the asymptotic series; below 0 by reflection.
LM_NOINLINE f64 lm_digamma(f64 x) {
    f64 result = 0;
    if (x == 0) return __builtin_copysign((f64)LM_INF, -x);
    if (x < 0) {
        if (x == __builtin_floor(x)) return (f64)LM_NAN;
        f64 part = x - __builtin_floor(x);
        result = -3.14159265358979323846 / lm_tan(3.14159265358979323846 * part);
        x = 1 - x;
    }
    if (x != x || x == (f64)LM_INF) return x;
    for (; x < 10; x += 1) result -= 1 / x;
    f64 z = 1 / (x * x);
    f64 series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
    return result + lm_log(x) - 0.5 / x - series;
}
LM_INLINE f32 lm_digamma(f32 x) { return (f32)lm_digamma((f64)x); }

///@ erfinv
// Winitzki's approximation, then Halley steps on erf (on erfc in the tails, where erf cancels).
LM_NOINLINE f64 lm_erfinv(f64 y) {
    f64 a = __builtin_fabs(y);
    if (!(a < 1)) return a == 1 ? __builtin_copysign((f64)LM_INF, y) : (f64)LM_NAN;
    f64 l = lm_log1p(-a * a), h = 4.330746750799873 + l * 0.5;
    f64 x = __builtin_sqrt(__builtin_sqrt(h * h - l * 6.802721088435374) - h);
    for (int i = 0; i < 3; ++i) {
        f64 error = a > 0.5 ? (1 - a) - lm_erfc(x) : lm_erf(x) - a;
        f64 step = error / (1.1283791670955126 * lm_exp(-x * x));
        x -= step / (1 + x * step);
    }
    return __builtin_copysign(a == 0 ? 0.0 : x, y);
}
LM_INLINE f32 lm_erfinv(f32 y) { return (f32)lm_erfinv((f64)y); }

///@ gcd
template <typename T> LM_INLINE T lm_gcd(T a, T b) {
    a = lm_iabs(a), b = lm_iabs(b);
    while (b != 0) { T r = (T)(a % b); a = b; b = r; }
    return a;
}
template <typename T> LM_INLINE T lm_lcm(T a, T b) {
    T g = lm_gcd(a, b);
    return g == 0 ? g : lm_iabs(lm_imul((T)(a / g), b));
}

///@ philox
// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011): word i % 4 of counter offset + i / 4 under key seed.
struct lm_words { u32 w0, w1, w2, w3; };
LM_INLINE lm_words lm_philox_block(i64 seed, i64 offset, i64 block) {
    u64 counter = (u64)offset + (u64)block;
    u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = counter < (u64)offset, c3 = 0;
    u32 k0 = (u32)(u64)seed, k1 = (u32)((u64)seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
        u64 p0 = (u64)c0 * 0xD2511F53u, p1 = (u64)c2 * 0xCD9E8D57u;
        u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1, c3 = (u32)p0, c0 = n0, c2 = n2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}
LM_INLINE u32 lm_philox(i64 seed, i64 offset, i64 i) {
    lm_words w = lm_philox_block(seed, offset, i >> 2);
    u32 low = i & 1 ? w.w1 : w.w0, high = i & 1 ? w.w3 : w.w2;
    return i & 2 ? high : low;
}
// Eight (or four) blocks of the cipher at once, in 64-bit lanes whose upper halves do not matter: GCC alone would multiply all 64 bits.
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
typedef u64 lm_lanes __attribute__((vector_size(64)));
typedef u64 lm_lanes_in_memory __attribute__((vector_size(64), aligned(4), may_alias));
LM_INLINE lm_lanes lm_wide_mul(lm_lanes a, lm_lanes b) {
    typedef int v __attribute__((vector_size(64)));
    typedef long long w __attribute__((vector_size(64)));
    return (lm_lanes)__builtin_ia32_pmuludq512_mask((v)a, (v)b, (w){}, (unsigned char)-1);
}
#define LM_LANES 8
#define LM_LANE_NUMBERS (lm_lanes){0, 1, 2, 3, 4, 5, 6, 7}
#define LM_ZIP_LOW (lm_lanes){0, 8, 1, 9, 2, 10, 3, 11}
#define LM_ZIP_HIGH (lm_lanes){4, 12, 5, 13, 6, 14, 7, 15}
#elif defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
typedef u64 lm_lanes __attribute__((vector_size(32)));
typedef u64 lm_lanes_in_memory __attribute__((vector_size(32), aligned(4), may_alias));
LM_INLINE lm_lanes lm_wide_mul(lm_lanes a, lm_lanes b) {
    typedef int v __attribute__((vector_size(32)));
    return (lm_lanes)__builtin_ia32_pmuludq256((v)a, (v)b);
}
#define LM_LANES 4
#define LM_LANE_NUMBERS (lm_lanes){0, 1, 2, 3}
#define LM_ZIP_LOW (lm_lanes){0, 4, 1, 5}
#define LM_ZIP_HIGH (lm_lanes){2, 6, 3, 7}
#endif
// Words of elements first .. first + count - 1 into `out`: one block of the cipher per four elements.
LM_NOINLINE void lm_philox_fill(u32 *__restrict out, i64 seed, i64 offset, i64 first, i64 count) {
    i64 i = 0;
    for (; i < count && ((first + i) & 3); ++i) out[i] = lm_philox(seed, offset, first + i);
    i64 blocks = (count - i) >> 2, base = (first + i) >> 2, b = 0;
    u32 *__restrict body = out + i;
#ifdef LM_LANES
    const lm_lanes m0 = (lm_lanes){} + 0xD2511F53ul, m1 = (lm_lanes){} + 0xCD9E8D57ul, zero = {};
    for (; b + LM_LANES <= blocks; b += LM_LANES) {
        lm_lanes c0 = LM_LANE_NUMBERS + ((u64)offset + (u64)(base + b));
        lm_lanes c1 = c0 >> 32, c2 = (lm_lanes)(c0 < zero + (u64)offset) & 1ul, c3 = zero;
        u32 k0 = (u32)(u64)seed, k1 = (u32)((u64)seed >> 32);
#pragma GCC unroll 10
        for (int round = 0; round < 10; ++round) {
            lm_lanes p0 = lm_wide_mul(c0, m0), p1 = lm_wide_mul(c2, m1);
            c0 = (p1 >> 32) ^ c1 ^ (u64)k0, c2 = (p0 >> 32) ^ c3 ^ (u64)k1, c1 = p1, c3 = p0;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        lm_lanes low = (c0 & 0xfffffffful) | (c1 << 32), high = (c2 & 0xfffffffful) | (c3 << 32);
        *(lm_lanes_in_memory *)(body + 4 * b) = __builtin_shuffle(low, high, LM_ZIP_LOW);
        *(lm_lanes_in_memory *)(body + 4 * b + 2 * LM_LANES) = __builtin_shuffle(low, high, LM_ZIP_HIGH);
    }
#endif
#pragma omp simd
    for (i64 r = b; r < blocks; ++r) {
        lm_words w = lm_philox_block(seed, offset, base + r);
        body[4 * r] = w.w0, body[4 * r + 1] = w.w1, body[4 * r + 2] = w.w2, body[4 * r + 3] = w.w3;
    }
    for (i += 4 * blocks; i < count; ++i) out[i] = lm_philox(seed, offset, first + i);
}
