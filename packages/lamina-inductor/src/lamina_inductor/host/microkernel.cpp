// Single-precision products with few rows, for AVX-512: the right-hand side is read where it lies.
//
// A BLAS packs its operands first; with 64 rows (a convolution's channels, an attention head) that is half of the time. Here 8 rows times 48
// columns of the result stay in registers while both operands stream from the caches.
#include "steps.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

namespace {

// Row l of the right-hand side begins at b + l * ldb, or at b + at[l] when there is a table.
template <int Rows, int Vectors, bool Table>
__attribute__((target("avx512f"), noinline)) void block(i64 k, const f32 *a, i64 row, i64 step, const f32 *b, i64 ldb, const i64 *at,
                                                        f32 *c, i64 ldc, bool accumulate, __mmask16 last) {
    __m512 sum[Rows][Vectors];
    const __mmask16 all = 0xffff;
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < Vectors; ++v)
            sum[i][v] = accumulate ? _mm512_maskz_loadu_ps(v == Vectors - 1 ? last : all, c + i * ldc + 16 * v) : _mm512_setzero_ps();
    for (i64 l = 0; l < k; ++l) {
        __m512 right[Vectors];
        const f32 *from = b + (Table ? at[l] : l * ldb);
#pragma GCC unroll 3
        for (int v = 0; v < Vectors; ++v) right[v] = _mm512_maskz_loadu_ps(v == Vectors - 1 ? last : all, from + 16 * v);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
            const __m512 left = _mm512_set1_ps(a[i * row + l * step]);
#pragma GCC unroll 3
            for (int v = 0; v < Vectors; ++v) sum[i][v] = _mm512_fmadd_ps(left, right[v], sum[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < Vectors; ++v) _mm512_mask_storeu_ps(c + i * ldc + 16 * v, v == Vectors - 1 ? last : all, sum[i][v]);
}

template <int Vectors, bool Table>
void columns(i64 m, i64 k, const f32 *a, i64 row, i64 step, const f32 *b, i64 ldb, const i64 *at, f32 *c, i64 ldc, bool accumulate, __mmask16 last) {
    i64 i = 0;
    for (; i + 8 <= m; i += 8) block<8, Vectors, Table>(k, a + i * row, row, step, b, ldb, at, c + i * ldc, ldc, accumulate, last);
    for (; i + 4 <= m; i += 4) block<4, Vectors, Table>(k, a + i * row, row, step, b, ldb, at, c + i * ldc, ldc, accumulate, last);
    for (; i < m; ++i) block<1, Vectors, Table>(k, a + i * row, row, step, b, ldb, at, c + i * ldc, ldc, accumulate, last);
}

template <bool Table>
void panels(i64 m, i64 n, i64 k, const f32 *a, i64 row, i64 step, const f32 *b, i64 ldb, const i64 *at, f32 *c, i64 ldc, bool accumulate) {
    for (i64 j = 0; j < n; j += 48) {
        i64 left = n - j < 48 ? n - j : 48, vectors = (left + 15) / 16;
        __mmask16 last = (__mmask16)((1u << (left - 16 * (vectors - 1))) - 1u);
        if (vectors == 3) columns<3, Table>(m, k, a, row, step, b + j, ldb, at, c + j, ldc, accumulate, last);
        else if (vectors == 2) columns<2, Table>(m, k, a, row, step, b + j, ldb, at, c + j, ldc, accumulate, last);
        else columns<1, Table>(m, k, a, row, step, b + j, ldb, at, c + j, ldc, accumulate, last);
    }
}

// Where a vector of positions in the padded plane goes: the lanes that are positions of the result lie side by side there.
struct Place {
    i64 to;
    __mmask16 keep;
};

template <int Rows, int Vectors>
__attribute__((target("avx512f"), noinline)) void plane_block(i64 k, const f32 *a, i64 row, const f32 *b, const i64 *at, f32 *c, i64 ldc, const Place *place) {
    __m512 sum[Rows][Vectors];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < Vectors; ++v) sum[i][v] = _mm512_setzero_ps();
    for (i64 l = 0; l < k; ++l) {
        __m512 right[Vectors];
#pragma GCC unroll 3
        for (int v = 0; v < Vectors; ++v) right[v] = _mm512_loadu_ps(b + at[l] + 16 * v);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
            const __m512 left = _mm512_set1_ps(a[i * row + l]);
#pragma GCC unroll 3
            for (int v = 0; v < Vectors; ++v) sum[i][v] = _mm512_fmadd_ps(left, right[v], sum[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < Vectors; ++v) {
            const __m512 packed = _mm512_maskz_compress_ps(place[v].keep, sum[i][v]);
            const __mmask16 used = (__mmask16)((1u << __builtin_popcount(place[v].keep)) - 1u);
            _mm512_mask_storeu_ps(c + i * ldc + place[v].to, used, packed);
        }
}

template <int Vectors> void plane_columns(i64 m, i64 k, const f32 *a, const f32 *b, const i64 *at, f32 *c, i64 ldc, const Place *place) {
    i64 i = 0;
    for (; i + 8 <= m; i += 8) plane_block<8, Vectors>(k, a + i * k, k, b, at, c + i * ldc, ldc, place);
    for (; i + 4 <= m; i += 4) plane_block<4, Vectors>(k, a + i * k, k, b, at, c + i * ldc, ldc, place);
    for (; i < m; ++i) plane_block<1, Vectors>(k, a + i * k, k, b, at, c + i * ldc, ldc, place);
}

bool can_use_avx512() {
    static const bool can = __builtin_cpu_supports("avx512f");
    return can;
}

} // namespace

bool lm_few_rows(i64 m, i64 n, i64 k, const f32 *a, i64 row, i64 step, const f32 *b, i64 ldb, f32 *c, i64 ldc, bool accumulate) {
    // Where the right-hand side does not fit in the second-level cache, or is used often enough, packing pays.
    if (!can_use_avx512() || m > 96 || n < 8 || n * k > (m <= 24 ? 1 << 18 : 1 << 16)) return false;
    panels<false>(m, n, k, a, row, step, b, ldb, nullptr, c, ldc, accumulate);
    return true;
}

bool lm_has_direct(void) { return can_use_avx512(); }

void lm_direct(i64 m, i64 n, i64 k, const f32 *a, i64 row, const f32 *b, const i64 *at, f32 *c, i64 ldc, bool accumulate) {
    panels<true>(m, n, k, a, row, 1, b, 0, at, c, ldc, accumulate);
}

void lm_direct_plane(i64 m, i64 k, const f32 *a, const f32 *b, const i64 *at, f32 *c, i64 ldc, i64 rows, i64 width, i64 pitch) {
    const i64 total = (rows - 1) * pitch + width;
    for (i64 j = 0; j < total; j += 48) {
        const i64 left = total - j < 48 ? total - j : 48, vectors = (left + 15) / 16;
        Place place[3] = {};
        for (i64 p = j; p < j + left; ++p) {
            if (p % pitch >= width) continue;
            Place &mine = place[(p - j) / 16];
            if (!mine.keep) mine.to = p / pitch * width + p % pitch;
            mine.keep |= (__mmask16)(1u << (p - j) % 16);
        }
        if (vectors == 3) plane_columns<3>(m, k, a, b + j, at, c, ldc, place);
        else if (vectors == 2) plane_columns<2>(m, k, a, b + j, at, c, ldc, place);
        else plane_columns<1>(m, k, a, b + j, at, c, ldc, place);
    }
}
#else
bool lm_has_direct(void) { return false; }
void lm_direct_plane(i64, i64, const f32 *, const f32 *, const i64 *, f32 *, i64, i64, i64, i64) {}
void lm_direct(i64, i64, i64, const f32 *, i64, const f32 *, const i64 *, f32 *, i64, bool) {}
bool lm_few_rows(i64, i64, i64, const f32 *, i64, i64, const f32 *, i64, f32 *, i64, bool) { return false; }
#endif
