// Matrices and products on the calling thread, shared by gemm.cpp and convolution.cpp.
//
// They are in the launcher and not in generated code because nothing in them depends on a graph: compiling them again for every
// graph would cost 0.2 s.
#ifndef LAMINA_STEPS_H
#define LAMINA_STEPS_H
#include "host_abi.h"

#include <string.h>

#define LM_INLINE static inline __attribute__((always_inline))
// One binary for every processor: the loops that move data exist for the common levels, chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define LM_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LM_CLONES
#endif

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;
typedef struct { f32 re, im; } c64;
typedef struct { f64 re, im; } c128;
LM_INLINE f32 lm_bits_f32(u32 x) { f32 y; memcpy(&y, &x, 4); return y; }
LM_INLINE u32 lm_bits_u32(f32 x) { u32 y; memcpy(&y, &x, 4); return y; }

// The halves as in backends/cpp/preamble/scalar.h.
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
typedef struct { u16 bits; } bf16;
LM_INLINE f32 lm_from_bf16(bf16 x) { return lm_bits_f32((u32)x.bits << 16); }
LM_INLINE bf16 lm_to_bf16(f32 x) {
    u32 b = lm_bits_u32(x), rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    return {(u16)(x != x ? (b >> 16) | 0x40u : rounded)};
}

template <typename T> struct lm_matrix { T *p; i64 sb, sr, sc; };
template <typename T> LM_INLINE lm_matrix<T> lm_at(lm_matrix<T> m, i64 b, i64 r, i64 c) { return {m.p + b * m.sb + r * m.sr + c * m.sc, m.sb, m.sr, m.sc}; }
template <typename T> LM_INLINE lm_matrix<T> lm_turned(lm_matrix<T> m) { return {m.p, m.sb, m.sc, m.sr}; }

// CBLAS by number: row major 101, as is 111, transposed 112. Wide: what a type is computed in; Index: its place in lm_host.blas.
template <typename T> struct lm_blas_type { typedef T wide; enum { index = -1 }; };
template <> struct lm_blas_type<f32> { typedef f32 wide; enum { index = 0 }; };
template <> struct lm_blas_type<f64> { typedef f64 wide; enum { index = 1 }; };
LM_INLINE void lm_blas_call(void (*f)(void), int ta, int tb, i64 m, i64 n, i64 k, const f32 *a, i64 lda, const f32 *b, i64 ldb, f32 beta, f32 *c, i64 ldc) {
    typedef void (*gemm)(int, int, int, int, int, int, f32, const f32 *, int, const f32 *, int, f32, f32 *, int);
    ((gemm)f)(101, ta, tb, (int)m, (int)n, (int)k, 1.0f, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}
LM_INLINE void lm_blas_call(void (*f)(void), int ta, int tb, i64 m, i64 n, i64 k, const f64 *a, i64 lda, const f64 *b, i64 ldb, f64 beta, f64 *c, i64 ldc) {
    typedef void (*gemm)(int, int, int, int, int, int, f64, const f64 *, int, const f64 *, int, f64, f64 *, int);
    ((gemm)f)(101, ta, tb, (int)m, (int)n, (int)k, 1.0, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}
template <typename T> LM_INLINE void lm_blas_call(void (*)(void), int, int, i64, i64, i64, const T *, i64, const T *, i64, T, T *, i64) {}

template <> struct lm_blas_type<c64> { typedef c64 wide; enum { index = 2 }; };
template <> struct lm_blas_type<c128> { typedef c128 wide; enum { index = 3 }; };
LM_INLINE void lm_blas_call(void (*f)(void), int ta, int tb, i64 m, i64 n, i64 k, const c64 *a, i64 lda, const c64 *b, i64 ldb, c64 beta, c64 *c, i64 ldc) {
    typedef void (*gemm)(int, int, int, int, int, int, const c64 *, const c64 *, int, const c64 *, int, const c64 *, c64 *, int);
    const c64 one = {1, 0};
    ((gemm)f)(101, ta, tb, (int)m, (int)n, (int)k, &one, a, (int)lda, b, (int)ldb, &beta, c, (int)ldc);
}
LM_INLINE void lm_blas_call(void (*f)(void), int ta, int tb, i64 m, i64 n, i64 k, const c128 *a, i64 lda, const c128 *b, i64 ldb, c128 beta, c128 *c, i64 ldc) {
    typedef void (*gemm)(int, int, int, int, int, int, const c128 *, const c128 *, int, const c128 *, int, const c128 *, c128 *, int);
    const c128 one = {1, 0};
    ((gemm)f)(101, ta, tb, (int)m, (int)n, (int)k, &one, a, (int)lda, b, (int)ldb, &beta, c, (int)ldc);
}
template <> struct lm_blas_type<f16> { typedef f32 wide; enum { index = 0 }; };
template <> struct lm_blas_type<bf16> { typedef f32 wide; enum { index = 0 }; };
template <typename T> LM_INLINE T lm_widen(T x) { return x; }
LM_INLINE f32 lm_widen(f16 x) { return lm_from_f16(x); }
LM_INLINE f32 lm_widen(bf16 x) { return lm_from_bf16(x); }
template <typename T> LM_INLINE void lm_narrow(T *to, T x) { *to = x; }
LM_INLINE void lm_narrow(f16 *to, f32 x) { *to = lm_to_f16(x); }
LM_INLINE void lm_narrow(bf16 *to, f32 x) { *to = lm_to_bf16(x); }

template <typename T> LM_INLINE T lm_mul_add(T a, T b, T c) { return (T)(a * b + c); }
LM_INLINE i32 lm_mul_add(i32 a, i32 b, i32 c) { return (i32)((u32)a * (u32)b + (u32)c); }
LM_INLINE i64 lm_mul_add(i64 a, i64 b, i64 c) { return (i64)((u64)a * (u64)b + (u64)c); }
LM_INLINE c64 lm_mul_add(c64 a, c64 b, c64 c) { return {a.re * b.re - a.im * b.im + c.re, a.re * b.im + a.im * b.re + c.im}; }
LM_INLINE c128 lm_mul_add(c128 a, c128 b, c128 c) { return {a.re * b.re - a.im * b.im + c.re, a.re * b.im + a.im * b.re + c.im}; }
LM_INLINE i64 lm_ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

// One product on the calling thread. Operands of other types or layouts than the BLAS takes are packed into `space`.
template <typename T> LM_INLINE bool lm_layout_of(lm_matrix<T> m, i64 rows, i64 cols, int *trans, i64 *ld) {
    if ((cols == 1 || m.sc == 1) && (rows == 1 || m.sr >= cols)) { *trans = 111; *ld = rows == 1 ? (cols > 0 ? cols : 1) : m.sr; return true; }
    if ((rows == 1 || m.sr == 1) && (cols == 1 || m.sc >= rows)) { *trans = 112; *ld = cols == 1 ? (rows > 0 ? rows : 1) : m.sc; return true; }
    return false;
}
template <typename W, typename T> LM_CLONES void lm_pack(W *__restrict to, lm_matrix<T> m, i64 rows, i64 cols) {
    for (i64 r = 0; r < rows; ++r) {
        const T *__restrict from = m.p + r * m.sr;
        if (m.sc == 1) {
#pragma omp simd
            for (i64 c = 0; c < cols; ++c) to[r * cols + c] = lm_widen(from[c]);
        } else for (i64 c = 0; c < cols; ++c) to[r * cols + c] = lm_widen(from[c * m.sc]);
    }
}
template <typename T> LM_INLINE i64 lm_gemm_space(i64 m, i64 n, i64 k) { return (m * k + k * n + m * n + 96) * (i64)sizeof(typename lm_blas_type<T>::wide); }
template <typename W> LM_CLONES void lm_gemm_plain(const W *a, i64 ra, i64 ca, const W *b, i64 rb, i64 cb, W *c, i64 ldc, i64 m, i64 n, i64 k, bool accumulate) {
    for (i64 i = 0; i < m; ++i) {
        W *__restrict row = c + i * ldc;
        if (!accumulate) for (i64 j = 0; j < n; ++j) row[j] = W{};
        for (i64 l = 0; l < k; ++l) {
            W x = a[i * ra + l * ca];
            const W *__restrict from = b + l * rb;
            if (cb == 1) {
#pragma omp simd
                for (i64 j = 0; j < n; ++j) row[j] = lm_mul_add(x, from[j], row[j]);
            } else for (i64 j = 0; j < n; ++j) row[j] = lm_mul_add(x, from[j * cb], row[j]);
        }
    }
}
// Few rows on AVX-512 (microkernel.cpp); false: not here, or better with the BLAS.
bool lm_few_rows(i64 m, i64 n, i64 k, const f32 *a, i64 row, i64 step, const f32 *b, i64 ldb, f32 *c, i64 ldc, bool accumulate);
// c[m, n] (+)= a[m, k] times rows that begin at b + at[l]: a convolution that reads its windows where they lie. Only after lm_has_direct().
bool lm_has_direct(void);
void lm_direct(i64 m, i64 n, i64 k, const f32 *a, i64 row, const f32 *b, const i64 *at, f32 *c, i64 ldc, bool accumulate);
// The same for `rows` rows of `width` positions of a dense result at once; a row of the right-hand side is `pitch` long, and 64
// elements behind the last may be read.
void lm_direct_plane(i64 m, i64 k, const f32 *a, const f32 *b, const i64 *at, f32 *c, i64 ldc, i64 rows, i64 width, i64 pitch);
template <typename T> LM_INLINE bool lm_try_few_rows(i64, i64, i64, const T *, i64, i64, const T *, i64, T *, i64, bool) { return false; }
LM_INLINE bool lm_try_few_rows(i64 m, i64 n, i64 k, const f32 *a, i64 row, i64 step, const f32 *b, i64 ldb, f32 *c, i64 ldc, bool accumulate) {
    return lm_few_rows(m, n, k, a, row, step, b, ldb, c, ldc, accumulate);
}
template <typename T> void lm_gemm_block(const lm_host *h, lm_matrix<T> a, lm_matrix<T> b, lm_matrix<T> c, i64 m, i64 n, i64 k, bool accumulate, char *space) {
    typedef typename lm_blas_type<T>::wide W;
    if (m <= 0 || n <= 0) return;
    int ta = 111, tb = 111, tc = 111;
    i64 lda = 1, ldb = 1, ldc = 1;
    W *room = (W *)(((u64)space + 63) / 64 * 64), *pa = (W *)a.p, *pb = (W *)b.p, *pc = (W *)c.p;
    const bool same = sizeof(T) == sizeof(W);
    if (!same || !lm_layout_of(a, m, k, &ta, &lda)) { pa = room; lm_pack(pa, a, m, k); ta = 111; lda = k > 0 ? k : 1; room += m * k; }
    if (!same || !lm_layout_of(b, k, n, &tb, &ldb)) { pb = room; lm_pack(pb, b, k, n); tb = 111; ldb = n; room += k * n; }
    bool copy = !same || !lm_layout_of(c, m, n, &tc, &ldc);
    if (copy) { pc = room; tc = 111; ldc = n; if (accumulate) lm_pack(pc, c, m, n); }
    int index = lm_blas_type<T>::index;
    void (*f)(void) = index >= 0 ? h->blas[index < 0 ? 0 : index] : nullptr;
    if (tb == 111 && tc == 111 && lm_try_few_rows(m, n, k, pa, ta == 111 ? lda : 1, ta == 111 ? 1 : lda, pb, ldb, pc, ldc, accumulate)) {}
    else if (f && tc == 111) lm_blas_call(f, ta, tb, m, n, k, pa, lda, pb, ldb, accumulate ? (W){1} : W{}, pc, ldc);
    else if (f) lm_blas_call(f, tb == 111 ? 112 : 111, ta == 111 ? 112 : 111, n, m, k, pb, ldb, pa, lda, accumulate ? (W){1} : W{}, pc, ldc);
    else if (tc == 111) lm_gemm_plain(pa, ta == 111 ? lda : 1, ta == 111 ? 1 : lda, pb, tb == 111 ? ldb : 1, tb == 111 ? 1 : ldb, pc, ldc, m, n, k, accumulate);
    else lm_gemm_plain(pb, tb == 111 ? 1 : ldb, tb == 111 ? ldb : 1, pa, ta == 111 ? 1 : lda, ta == 111 ? lda : 1, pc, ldc, n, m, k, accumulate);
    if (copy) for (i64 r = 0; r < m; ++r) for (i64 j = 0; j < n; ++j) lm_narrow(c.p + r * c.sr + j * c.sc, pc[r * n + j]);
}
#endif
