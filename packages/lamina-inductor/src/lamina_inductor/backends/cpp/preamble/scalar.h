// Types, selections and integer arithmetic of generated kernels. Sections start with a line of slashes and "@"; only
// those a unit mentions are included. No header may be included here: builtins only.

///@ types
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef float f32;
typedef double f64;
#ifdef __clang__
#define LM_PLAIN __attribute__((optnone, noinline))
#else
#define LM_PLAIN __attribute__((optimize("O0")))
#endif
#define LM_INLINE static inline __attribute__((always_inline))
#define LM_NOINLINE static __attribute__((noinline, unused))
#define LM_SPECIAL inline __attribute__((always_inline))
#define LM_INF __builtin_inff()
// Clang's own max and min of floats start from the largest finite numbers: a row of infinities alone would come out as those.
#ifdef __clang__
#pragma omp declare reduction(lm_greatest : float, double : omp_out = omp_in > omp_out ? omp_in : omp_out) initializer(omp_priv = -LM_INF)
#pragma omp declare reduction(lm_least : float, double : omp_out = omp_out > omp_in ? omp_in : omp_out) initializer(omp_priv = LM_INF)
#define LM_GREATEST lm_greatest
#define LM_LEAST lm_least
#else
#define LM_GREATEST max
#define LM_LEAST min
#endif
#define LM_NAN __builtin_nanf("")
LM_INLINE f32 lm_bits_f32(u32 x) { f32 y; __builtin_memcpy(&y, &x, 4); return y; }
LM_INLINE u32 lm_bits_u32(f32 x) { u32 y; __builtin_memcpy(&y, &x, 4); return y; }
LM_INLINE f64 lm_bits_f64(u64 x) { f64 y; __builtin_memcpy(&y, &x, 8); return y; }
LM_INLINE u64 lm_bits_u64(f64 x) { u64 y; __builtin_memcpy(&y, &x, 8); return y; }

///@ f16
// Converted by arithmetic on the bits, because GCC 12 does not vectorise conversions of _Float16: a half's exponent and
// mantissa, moved into a float, are the value times 2^-112, subnormals included.
typedef struct { u16 bits; } f16;
LM_INLINE f32 lm_from_f16(f16 x) {
    u32 magnitude = (u32)(x.bits & 0x7fffu) << 13;
    u32 v = lm_bits_u32(lm_bits_f32(magnitude) * 0x1p112f);
    v |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
    return lm_bits_f32(v | (u32)(x.bits & 0x8000u) << 16);
}
LM_INLINE f16 lm_to_f16(f32 x) {
    u32 b = lm_bits_u32(x), sign = (b >> 16) & 0x8000u;
    b &= 0x7fffffffu;
    u32 normal = ((b + 0xfffu + ((b >> 13) & 1u)) >> 13) - (112u << 10);
    u32 tiny = lm_bits_u32(lm_bits_f32(b) + 0.5f) - 0x3f000000u;
    u32 m = b < 0x38800000u ? tiny : normal;
    m = b >= 0x477ff000u ? 0x7c00u : m;
    m = b > 0x7f800000u ? 0x7e00u : m;
    return {(u16)(m | sign)};
}

///@ bf16
// A bfloat16 is the upper half of a float; rounding is to nearest even, and a NaN stays one (quiet).
typedef struct { u16 bits; } bf16;
LM_INLINE f32 lm_from_bf16(bf16 x) { return lm_bits_f32((u32)x.bits << 16); }
LM_INLINE bf16 lm_to_bf16(f32 x) {
    u32 b = lm_bits_u32(x);
    u32 rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    return {(u16)(x != x ? (b >> 16) | 0x40u : rounded)};
}

///@ f8
// Decoded by scaling in float, encoded by rounding at the target's precision: exact, branch-free, no table.
typedef u8 f8e4m3;
typedef u8 f8e5m2;
LM_INLINE f32 lm_from_f8e4m3(f8e4m3 x) {
    u32 sign = (u32)(x & 0x80u) << 24, low = x & 0x7fu;
    f32 v = lm_bits_f32(low << 20) * 0x1p120f;
    v = low == 0x7fu ? LM_NAN : v;
    return lm_bits_f32(lm_bits_u32(v) | sign);
}
LM_INLINE f32 lm_from_f8e5m2(f8e5m2 x) { return lm_from_f16(f16{(u16)((u16)x << 8)}); }
LM_INLINE u8 lm_f8_round(f32 x, int mantissa, int min_exponent) {
    // The magnitude as an integer count of target steps: normals drop 23-m bits, subnormals go through a magic addition.
    u32 b = lm_bits_u32(x) & 0x7fffffffu;
    int shift = 23 - mantissa;
    u32 odd = (b >> shift) & 1u;
    u32 normal = ((b + (1u << (shift - 1)) - 1u + odd) >> shift) - ((u32)(min_exponent - 1 + 127) << mantissa);
    f32 magic = lm_bits_f32((u32)(min_exponent + 23 - mantissa + 127) << 23);
    u32 tiny = lm_bits_u32(lm_bits_f32(b) + magic) - lm_bits_u32(magic);
    return (u8)(lm_bits_f32(b) < lm_bits_f32((u32)(min_exponent + 127) << 23) ? tiny : (normal > 255u ? 255u : normal));
}
LM_INLINE f8e4m3 lm_to_f8e4m3(f32 x) {
    u8 m = lm_f8_round(x, 3, -6);
    u8 magnitude = x != x ? 0x7fu : (m > 0x7eu || __builtin_fabsf(x) > 464.0f ? 0x7eu : m); // no infinity: the largest
    return (u8)(magnitude | ((lm_bits_u32(x) >> 24) & 0x80u));
}
LM_INLINE f8e5m2 lm_to_f8e5m2(f32 x) {
    u8 m = lm_f8_round(x, 2, -14);
    u8 magnitude = x != x ? 0x7eu : (m > 0x7bu || __builtin_fabsf(x) >= 61440.0f ? 0x7cu : m);
    return (u8)(magnitude | ((lm_bits_u32(x) >> 24) & 0x80u));
}

///@ minmax
// A NaN on either side is the result, as in NumPy's maximum and minimum; GCC's reduction(max:) would lose it.
template <typename T> LM_INLINE T lm_max(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> LM_INLINE T lm_min(T a, T b) { return a < b || a != a ? a : b; }

///@ fminmax
// The other one when one is NaN, as in NumPy's fmax and fmin.
template <typename T> LM_INLINE T lm_fmax(T a, T b) { return a > b || b != b ? a : b; }
template <typename T> LM_INLINE T lm_fmin(T a, T b) { return a < b || b != b ? a : b; }

///@ sign
template <typename T> LM_INLINE T lm_sign(T x) { return (T)((x > (T)0) - (x < (T)0)); }

///@ wrap
// Signed overflow wraps, as in NumPy: the arithmetic is done on the unsigned type.
template <typename T> struct lm_unsigned { typedef T type; };
template <> struct lm_unsigned<i8> { typedef u32 type; };
template <> struct lm_unsigned<i16> { typedef u32 type; };
template <> struct lm_unsigned<u8> { typedef u32 type; };
template <> struct lm_unsigned<u16> { typedef u32 type; };
template <> struct lm_unsigned<i32> { typedef u32 type; };
template <> struct lm_unsigned<i64> { typedef u64 type; };
template <typename T> LM_INLINE T lm_iadd(T a, T b) { typedef typename lm_unsigned<T>::type U; return (T)((U)a + (U)b); }
template <typename T> LM_INLINE T lm_isub(T a, T b) { typedef typename lm_unsigned<T>::type U; return (T)((U)a - (U)b); }
template <typename T> LM_INLINE T lm_imul(T a, T b) { typedef typename lm_unsigned<T>::type U; return (T)((U)a * (U)b); }
template <typename T> LM_INLINE T lm_ineg(T a) { typedef typename lm_unsigned<T>::type U; return (T)((U)0 - (U)a); }
template <typename T> LM_INLINE T lm_iabs(T a) { return a < (T)0 ? lm_ineg(a) : a; }

///@ intdiv
// Division by zero gives 0 and the smallest number over -1 wraps, as in NumPy; the processor would trap on both.
template <typename T> LM_INLINE T lm_tdiv(T a, T b) {
    bool whole = b == (T)0, minus = (T)-1 < (T)0 && b == (T)-1;
    T q = (T)(a / (whole || minus ? (T)1 : b));
    return whole ? (T)0 : minus ? lm_ineg(a) : q;
}
template <typename T> LM_INLINE T lm_tmod(T a, T b) {
    bool safe = b != (T)0 && !((T)-1 < (T)0 && b == (T)-1);
    T r = (T)(a % (safe ? b : (T)1));
    return safe ? r : (T)0;
}
// 32 bits and fewer go through double, which is exact and vectorises.
template <> LM_SPECIAL i32 lm_tdiv(i32 a, i32 b) {
    i64 q = (i64)((f64)a / (f64)(b == 0 ? 1 : b));
    return b == 0 ? 0 : (i32)q;
}
template <> LM_SPECIAL u32 lm_tdiv(u32 a, u32 b) {
    i64 q = (i64)((f64)a / (f64)(b == 0 ? 1 : b));
    return b == 0 ? 0 : (u32)q;
}
template <> LM_SPECIAL i32 lm_tmod(i32 a, i32 b) { return b == 0 ? 0 : lm_isub(a, lm_imul(lm_tdiv(a, b), b)); }
template <> LM_SPECIAL u32 lm_tmod(u32 a, u32 b) { return b == 0 ? 0 : a - lm_tdiv(a, b) * b; }
// Floor division and modulus, as in Python: the remainder has the divisor's sign.
template <typename T> LM_INLINE T lm_ifloordiv(T a, T b) {
    T q = lm_tdiv(a, b), r = lm_isub(a, lm_imul(q, b));
    bool lower = b != (T)0 && r != (T)0 && ((r < (T)0) != (b < (T)0));
    return (T)(q - (T)lower);
}
template <typename T> LM_INLINE T lm_imod(T a, T b) {
    T r = lm_tmod(a, b);
    return r != (T)0 && ((r < (T)0) != (b < (T)0)) ? (T)(r + b) : r;
}
///@ shift
// A shift by the width or more gives 0 (or all sign bits), as in NumPy; a negative amount counts as too large.
template <typename T> LM_INLINE T lm_shl(T a, T n) {
    typedef typename lm_unsigned<T>::type U;
    u64 bits = sizeof(T) * 8;
    return (u64)n < bits ? (T)((U)a << (u64)n) : (T)0;
}
template <typename T> LM_INLINE T lm_shr(T a, T n) {
    u64 bits = sizeof(T) * 8;
    return (u64)n < bits ? (T)(a >> (u64)n) : (T)(a < (T)0 ? -1 : 0);
}

///@ ipow
// A negative exponent gives 0 unless the base is 1 or -1.
template <typename T> LM_INLINE T lm_ipow(T base, T exponent) {
    T result = 1, b = base;
    if (exponent < (T)0) return base == (T)1 ? (T)1 : (T)-1 < (T)0 && base == (T)-1 ? (exponent % 2 ? base : (T)1) : (T)0;
    for (T e = exponent; e; e = (T)(e >> 1)) { if (e & 1) result = lm_imul(result, b); b = lm_imul(b, b); }
    return result;
}

///@ tofloat
// Float to integer. Out of range and NaN are not defined by the language; here they give the smallest number, as on x86.
template <typename T> LM_INLINE T lm_to_int(f64 x) { return (T)(i64)x; }
LM_INLINE u64 lm_to_u64(f64 x) { return x >= 0x1p63 ? (u64)(i64)(x - 0x1p63) ^ 0x8000000000000000ul : (u64)(i64)x; }

///@ bitcast
template <typename T, typename U> LM_INLINE T lm_bitcast(U x) { T y; __builtin_memcpy(&y, &x, sizeof(T)); return y; }

///@ sizes
// What lamina_fx.symbolic.to_c writes for divisions whose operands may be negative, and for extrema.
LM_INLINE i64 lamina_floor_div(i64 a, i64 b) { i64 q = a / b; return q - ((a % b != 0) & ((a < 0) != (b < 0))); }
LM_INLINE i64 lamina_floor_mod(i64 a, i64 b) { i64 r = a % b; return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0); }
LM_INLINE i64 lamina_min(i64 a, i64 b) { return a < b ? a : b; }
LM_INLINE i64 lamina_max(i64 a, i64 b) { return a > b ? a : b; }

///@ atomic
// Combining stores that may meet at one address from several threads: compare and swap on the bits.
template <typename T> struct lm_atom { typedef u32 type; };
template <> struct lm_atom<f64> { typedef u64 type; };
template <> struct lm_atom<i64> { typedef u64 type; };
template <> struct lm_atom<u64> { typedef u64 type; };
template <> struct lm_atom<u16> { typedef u16 type; };
template <> struct lm_atom<i16> { typedef u16 type; };
template <> struct lm_atom<u8> { typedef u8 type; };
template <> struct lm_atom<i8> { typedef u8 type; };
template <typename T, typename F> LM_INLINE void lm_atomic(T *at, F combine) {
    typedef typename lm_atom<T>::type U;
    U old = __atomic_load_n((U *)at, __ATOMIC_RELAXED), now;
    do {
        T value, result;
        __builtin_memcpy(&value, &old, sizeof(T));
        result = combine(value);
        __builtin_memcpy(&now, &result, sizeof(T));
    } while (!__atomic_compare_exchange_n((U *)at, &old, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
