// Vectors, products and moves of tiles. attention.cpp includes this once per level of the processor, within a namespace, with
// LM_AT (the level as a target attribute), LM_VECTOR (bytes of a vector), LM_ROWS and LM_VECTORS (of a product's registers).

template <typename W> struct lanes;
template <> struct lanes<f32> {
    typedef f32 vec __attribute__((vector_size(LM_VECTOR)));
    typedef f32 loose __attribute__((vector_size(LM_VECTOR), aligned(4), may_alias));
    typedef i32 ints __attribute__((vector_size(LM_VECTOR)));
    static constexpr i64 count = LM_VECTOR / 4;
    static constexpr int bias = 127, shift = 23;
    static constexpr f32 magic = 0x1.8p23f, lowest = -126.0f, highest = 128.0f;
};
template <> struct lanes<f64> {
    typedef f64 vec __attribute__((vector_size(LM_VECTOR)));
    typedef f64 loose __attribute__((vector_size(LM_VECTOR), aligned(8), may_alias));
    typedef i64 ints __attribute__((vector_size(LM_VECTOR)));
    static constexpr i64 count = LM_VECTOR / 8;
    static constexpr int bias = 1023, shift = 52;
    static constexpr f64 magic = 0x1.8p52, lowest = -1022.0, highest = 1024.0;
};
#define LM_VEC(W) typename lanes<W>::vec
#define LM_FAST static inline __attribute__((always_inline)) LM_AT
#define LM_SLOW static __attribute__((noinline)) LM_AT

template <typename W> LM_FAST LM_VEC(W) load(const W *p) { return *(const typename lanes<W>::loose *)p; }
template <typename W> LM_FAST void store(W *p, LM_VEC(W) x) { *(typename lanes<W>::loose *)p = x; }
template <typename W> LM_FAST LM_VEC(W) spread(W x) { return x - LM_VEC(W){}; }

template <typename W> LM_FAST typename lanes<W>::ints spread_int(i64 n) {
    typedef typename lanes<W>::ints ints;
    return ints{} + (decltype(ints{}[0] + 0))n;
}

// e^y for |y| <= ln(2) / 2.
LM_FAST lanes<f32>::vec small_exp(lanes<f32>::vec y) {
    lanes<f32>::vec p = 0.0013813142431899905f * y + 0.008369418792426586f;
    p = p * y + 0.04166845604777336f;
    p = p * y + 0.16666515171527863f;
    p = p * y + 0.4999999403953552f;
    return p * y * y + y + 1.0f;
}
LM_FAST lanes<f64>::vec small_exp(lanes<f64>::vec y) {
    const f64 inverse[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5};
    lanes<f64>::vec p = spread(inverse[0]);
#pragma GCC unroll 12
    for (int i = 1; i < 12; ++i) p = p * y + inverse[i];
    return p * y * y + y + 1.0;
}
// 2^t; 0 below the normal numbers, NaN stays.
template <typename W> LM_FAST LM_VEC(W) exp2(LM_VEC(W) t) {
    typedef typename lanes<W>::ints ints;
    const LM_VEC(W) low = spread<W>(lanes<W>::lowest), high = spread<W>(lanes<W>::highest);
    LM_VEC(W) c = t < low ? low : t;
    c = c > high ? high : c;
    const LM_VEC(W) shifted = c + lanes<W>::magic, r = c - (shifted - lanes<W>::magic);
    const ints scale = ((ints)shifted - (ints)spread<W>(lanes<W>::magic) + lanes<W>::bias) << lanes<W>::shift;
    const LM_VEC(W) y = small_exp(r * (W)0.693147180559945309417) * (LM_VEC(W))scale;
    return t < low ? LM_VEC(W){} : y;
}

// c[R, V vectors] = a[R, k] b[k, V vectors], plus c * factor (mode 2), plus c (mode 1). a's element (i, l) is a[i * row + l * step].
template <typename W, int R, int V>
LM_SLOW void product_block(i64 k, const W *a, i64 row, i64 step, const W *b, i64 ldb, W *c, i64 ldc, int mode, const W *factor) {
    constexpr i64 N = lanes<W>::count;
    LM_VEC(W) sum[R][V];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
            sum[i][v] = mode ? load(c + i * ldc + v * N) : LM_VEC(W){};
            if (mode == 2) sum[i][v] *= load(factor + v * N);
        }
    for (i64 l = 0; l < k; ++l) {
        LM_VEC(W) right[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) right[v] = load(b + l * ldb + v * N);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            const LM_VEC(W) left = spread(a[i * row + l * step]);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) sum[i][v] += left * right[v];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) store(c + i * ldc + v * N, sum[i][v]);
}
template <typename W, int V>
LM_SLOW void product_panel(i64 m, i64 k, const W *a, i64 row, i64 step, const W *b, i64 ldb, W *c, i64 ldc, int mode, const W *factor) {
    i64 i = 0;
    for (; i + LM_ROWS <= m; i += LM_ROWS) product_block<W, LM_ROWS, V>(k, a + i * row, row, step, b, ldb, c + i * ldc, ldc, mode, factor);
    for (; i + 4 <= m; i += 4) product_block<W, 4, V>(k, a + i * row, row, step, b, ldb, c + i * ldc, ldc, mode, factor);
    for (; i < m; ++i) product_block<W, 1, V>(k, a + i * row, row, step, b, ldb, c + i * ldc, ldc, mode, factor);
}
// n is a multiple of the lanes.
template <typename W>
LM_SLOW void product(i64 m, i64 n, i64 k, const W *a, i64 row, i64 step, const W *b, i64 ldb, W *c, i64 ldc, int mode, const W *factor = nullptr) {
    constexpr i64 N = lanes<W>::count;
    for (i64 j = 0; j < n; j += LM_VECTORS * N) {
        const i64 vectors = (n - j) / N;
        const W *f = factor ? factor + j : nullptr;
        if (vectors >= LM_VECTORS) product_panel<W, LM_VECTORS>(m, k, a, row, step, b + j, ldb, c + j, ldc, mode, f);
        else if (vectors == 3) product_panel<W, LM_VECTORS < 3 ? 1 : 3>(m, k, a, row, step, b + j, ldb, c + j, ldc, mode, f);
        else if (vectors == 2) product_panel<W, LM_VECTORS < 2 ? 1 : 2>(m, k, a, row, step, b + j, ldb, c + j, ldc, mode, f);
        else product_panel<W, 1>(m, k, a, row, step, b + j, ldb, c + j, ldc, mode, f);
    }
}

// Rows of an operand as wide numbers with zeros behind them, up to `ld` columns and `all` rows.
template <typename T, typename W> LM_SLOW void load_rows(W *to, i64 ld, i64 all, lm_matrix<T> from, i64 rows, i64 cols) {
    for (i64 r = 0; r < rows; ++r) {
        const T *p = from.p + r * from.sr;
        W *row = to + r * ld;
        i64 c = 0;
        if (from.sc == 1) {
#pragma omp simd
            for (i64 q = 0; q < cols; ++q) row[q] = lm_widen(p[q]);
            c = cols;
        }
        for (; c < cols; ++c) row[c] = lm_widen(p[c * from.sc]);
        for (; c < ld; ++c) row[c] = 0;
    }
    for (i64 i = rows * ld; i < all * ld; ++i) to[i] = 0;
}
template <typename T, typename W> LM_SLOW void store_rows(lm_matrix<T> to, const W *from, i64 ld, i64 rows, i64 cols, bool add) {
    for (i64 r = 0; r < rows; ++r) {
        T *p = to.p + r * to.sr;
        const W *row = from + r * ld;
        if (add) for (i64 c = 0; c < cols; ++c) lm_narrow(p + c * to.sc, (W)(lm_widen(p[c * to.sc]) + row[c]));
        else if (to.sc == 1) {
#pragma omp simd
            for (i64 c = 0; c < cols; ++c) lm_narrow(p + c, row[c]);
        } else for (i64 c = 0; c < cols; ++c) lm_narrow(p + c * to.sc, row[c]);
    }
}
// to[c][r] = from[r][c] * factor; rows and columns are multiples of the lanes.
template <typename W> LM_SLOW void turn(W *to, i64 ldto, const W *from, i64 ldfrom, i64 rows, i64 cols, W factor) {
    constexpr i64 N = lanes<W>::count;
#ifdef __clang__
    for (i64 r = 0; r < rows; ++r) for (i64 c = 0; c < cols; ++c) to[c * ldto + r] = from[r * ldfrom + c] * factor;
#else
    typedef typename lanes<W>::ints ints;
    ints number;
    for (int i = 0; i < N; ++i) number[i] = i;
    for (i64 r = 0; r < rows; r += N) for (i64 c = 0; c < cols; c += N) {
        LM_VEC(W) x[N];
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) x[i] = load(from + (r + i) * ldfrom + c) * factor;
#pragma GCC unroll 4
        for (int d = 1; d < N; d *= 2) { // the bit d of the row and that of the column change places
            const ints upper = (number & d) != 0, other = number + spread_int<W>(N), low = upper ? other - d : number, high = upper ? other : number + d;
#pragma GCC unroll 16
            for (int i = 0; i < N; ++i)
                if (!(i & d)) {
                    const LM_VEC(W) a = x[i], b = x[i + d];
                    x[i] = __builtin_shuffle(a, b, low), x[i + d] = __builtin_shuffle(a, b, high);
                }
        }
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) store(to + (c + i) * ldto + r, x[i]);
    }
#endif
}

// Philox 4x32-10 as in backends/cpp/preamble/math.h: four words of each of `blocks` counters from offset + first on. A vector of
// counters at once, in 64-bit lanes whose upper halves do not matter; `out` has room for whole vectors.
typedef u64 counters __attribute__((vector_size(LM_VECTOR)));
typedef u64 loose_counters __attribute__((vector_size(LM_VECTOR), aligned(4), may_alias));
LM_FAST counters wide_product(counters a, u64 b) {
#if LM_VECTOR == 64 && !defined(__clang__)
    typedef int half __attribute__((vector_size(64)));
    typedef long long whole __attribute__((vector_size(64)));
    return (counters)__builtin_ia32_pmuludq512_mask((half)a, (half)(counters{} + b), (whole){}, (unsigned char)-1);
#elif LM_VECTOR == 32 && !defined(__clang__)
    typedef int half __attribute__((vector_size(32)));
    return (counters)__builtin_ia32_pmuludq256((half)a, (half)(counters{} + b));
#else
    return (a & 0xfffffffful) * b;
#endif
}
LM_SLOW void random_words(u32 *out, u64 seed, u64 offset, u64 first, i64 blocks) {
    constexpr i64 N = LM_VECTOR / 8;
    counters number;
    for (int i = 0; i < N; ++i) number[i] = (u64)i;
    for (i64 b = 0; b < blocks; b += N) {
        counters c0 = number + (offset + first + (u64)b), c1 = c0 >> 32, c2 = (counters)(c0 < counters{} + offset) & 1ul, c3 = {};
        u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma GCC unroll 10
        for (int round = 0; round < 10; ++round) {
            const counters p0 = wide_product(c0, 0xD2511F53u), p1 = wide_product(c2, 0xCD9E8D57u);
            c0 = (p1 >> 32) ^ c1 ^ (u64)k0, c2 = (p0 >> 32) ^ c3 ^ (u64)k1, c1 = p1, c3 = p0;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        const counters low = (c0 & 0xfffffffful) | (c1 << 32), high = (c2 & 0xfffffffful) | (c3 << 32);
        for (int i = 0; i < N; ++i) {
            const u64 pair[2] = {low[i], high[i]};
            memcpy(out + 4 * (b + i), pair, 16);
        }
    }
}
