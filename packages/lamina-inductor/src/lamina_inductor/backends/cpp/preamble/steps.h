// Matrix products, convolutions and copies of generated programs. Products go to the BLAS (one thread per call), on blocks that the
// pool's threads take; an epilogue runs on a block of rows while that is in cache.

///@ matrix
template <typename T> struct lm_matrix { T *p; i64 sb, sr, sc; };
template <typename T> LM_INLINE lm_matrix<T> lm_at(lm_matrix<T> m, i64 b, i64 r, i64 c) { return {m.p + b * m.sb + r * m.sr + c * m.sc, m.sb, m.sr, m.sc}; }
template <typename T> LM_INLINE lm_matrix<T> lm_turned(lm_matrix<T> m) { return {m.p, m.sb, m.sc, m.sr}; }

///@ blas
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

///@ narrow
template <> struct lm_blas_type<f16> { typedef f32 wide; enum { index = 0 }; };
template <> struct lm_blas_type<bf16> { typedef f32 wide; enum { index = 0 }; };
template <typename T> LM_INLINE T lm_widen(T x) { return x; }
LM_INLINE f32 lm_widen(f16 x) { return lm_from_f16(x); }
LM_INLINE f32 lm_widen(bf16 x) { return lm_from_bf16(x); }
template <typename T> LM_INLINE void lm_narrow(T *to, T x) { *to = x; }
LM_INLINE void lm_narrow(f16 *to, f32 x) { *to = lm_to_f16(x); }
LM_INLINE void lm_narrow(bf16 *to, f32 x) { *to = lm_to_bf16(x); }

///@ multiply_add
template <typename T> LM_INLINE T lm_mul_add(T a, T b, T c) { return (T)(a * b + c); }
LM_INLINE i32 lm_mul_add(i32 a, i32 b, i32 c) { return (i32)((u32)a * (u32)b + (u32)c); }
LM_INLINE i64 lm_mul_add(i64 a, i64 b, i64 c) { return (i64)((u64)a * (u64)b + (u64)c); }

LM_INLINE c64 lm_mul_add(c64 a, c64 b, c64 c) { return {a.re * b.re - a.im * b.im + c.re, a.re * b.im + a.im * b.re + c.im}; }
LM_INLINE c128 lm_mul_add(c128 a, c128 b, c128 c) { return {a.re * b.re - a.im * b.im + c.re, a.re * b.im + a.im * b.re + c.im}; }

///@ gemm_block
// One product on the calling thread. Operands of other types or layouts than the BLAS takes are packed into `space`.
template <typename T> LM_INLINE bool lm_layout_of(lm_matrix<T> m, i64 rows, i64 cols, int *trans, i64 *ld) {
    if ((cols == 1 || m.sc == 1) && (rows == 1 || m.sr >= cols)) { *trans = 111; *ld = rows == 1 ? (cols > 0 ? cols : 1) : m.sr; return true; }
    if ((rows == 1 || m.sr == 1) && (cols == 1 || m.sc >= rows)) { *trans = 112; *ld = cols == 1 ? (rows > 0 ? rows : 1) : m.sc; return true; }
    return false;
}
template <typename W, typename T> LM_NOINLINE void lm_pack(W *__restrict to, lm_matrix<T> m, i64 rows, i64 cols) {
    for (i64 r = 0; r < rows; ++r) {
        const T *__restrict from = m.p + r * m.sr;
        if (m.sc == 1) {
#pragma omp simd
            for (i64 c = 0; c < cols; ++c) to[r * cols + c] = lm_widen(from[c]);
        } else for (i64 c = 0; c < cols; ++c) to[r * cols + c] = lm_widen(from[c * m.sc]);
    }
}
template <typename T> LM_INLINE i64 lm_gemm_space(i64 m, i64 n, i64 k) { return (m * k + k * n + m * n + 96) * (i64)sizeof(typename lm_blas_type<T>::wide); }
template <typename W> LM_NOINLINE void lm_gemm_plain(const W *a, i64 ra, i64 ca, const W *b, i64 rb, i64 cb, W *c, i64 ldc, i64 m, i64 n, i64 k, bool accumulate) {
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
template <typename T> LM_NOINLINE void lm_gemm_block(const lm_host *h, lm_matrix<T> a, lm_matrix<T> b, lm_matrix<T> c, i64 m, i64 n, i64 k, bool accumulate, char *space) {
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
    if (f && tc == 111) lm_blas_call(f, ta, tb, m, n, k, pa, lda, pb, ldb, accumulate ? (W){1} : W{}, pc, ldc);
    else if (f) lm_blas_call(f, tb == 111 ? 112 : 111, ta == 111 ? 112 : 111, n, m, k, pb, ldb, pa, lda, accumulate ? (W){1} : W{}, pc, ldc);
    else if (tc == 111) lm_gemm_plain(pa, ta == 111 ? lda : 1, ta == 111 ? 1 : lda, pb, tb == 111 ? ldb : 1, tb == 111 ? 1 : ldb, pc, ldc, m, n, k, accumulate);
    else lm_gemm_plain(pb, tb == 111 ? 1 : ldb, tb == 111 ? ldb : 1, pa, ta == 111 ? 1 : lda, ta == 111 ? lda : 1, pc, ldc, n, m, k, accumulate);
    if (copy) for (i64 r = 0; r < m; ++r) for (i64 j = 0; j < n; ++j) lm_narrow(c.p + r * c.sr + j * c.sc, pc[r * n + j]);
}

///@ gemm
// Tasks are blocks of rows (of columns where there are few rows) of all matrices of the batch.
template <typename T> struct lm_gemm_job {
    const lm_host *h;
    lm_matrix<T> a, b, c;
    i64 m, n, k, row_block, row_blocks, column_block, column_blocks;
    bool accumulate;
    lm_body epilogue;
    void *context;
};
template <typename T> LM_NOINLINE void lm_gemm_tasks(void *context, i64 begin, i64 end) {
    const lm_gemm_job<T> *j = (const lm_gemm_job<T> *)context;
    for (i64 t = begin; t < end; ++t) {
        i64 cb = t % j->column_blocks, rb = t / j->column_blocks % j->row_blocks, b = t / (j->column_blocks * j->row_blocks);
        i64 r = rb * j->row_block, q = cb * j->column_block;
        i64 m = j->m - r < j->row_block ? j->m - r : j->row_block, n = j->n - q < j->column_block ? j->n - q : j->column_block;
        char *space = (char *)j->h->scratch(lm_gemm_space<T>(m, n, j->k));
        lm_gemm_block(j->h, lm_at(j->a, b, r, 0), lm_at(j->b, b, 0, q), lm_at(j->c, b, r, q), m, n, j->k, j->accumulate, space);
        if (j->epilogue && j->column_blocks == 1) j->epilogue(j->context, b * j->m + r, b * j->m + r + m);
    }
}
LM_INLINE i64 lm_ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
template <typename T> LM_NOINLINE void lm_gemm(const lm_host *h, lm_matrix<T> a, lm_matrix<T> b, lm_matrix<T> c, i64 batch, i64 m, i64 n, i64 k, bool accumulate, lm_body epilogue, void *context) {
    if (batch <= 0 || m <= 0 || n <= 0) return;
    if (batch > 1 && b.sb == 0 && a.sb == m * a.sr && c.sb == m * c.sr) { m *= batch; batch = 1; } // one tall product
    f64 flops = 2.0 * (f64)m * (f64)n * (f64)(k + 1);
    i64 threads = h->threads, rows = m, columns = n;
    if (batch < 2 * threads && threads > 1 && flops * (f64)batch > 4e5) {
        i64 shares = lm_ceil_div(threads, batch);
        if (m >= 16 * shares || m >= n) rows = (lm_ceil_div(m, shares) + 15) / 16 * 16;
        else columns = (lm_ceil_div(n, shares) + 15) / 16 * 16;
    }
    if (epilogue && columns == n) { // keep a block of the result within half of a 2 MB cache, but not so low that packing shows
        i64 fit = (1 << 20) / ((i64)sizeof(T) * n);
        fit = (fit < 96 ? 96 : fit) / 16 * 16;
        rows = rows > fit ? fit : rows;
    }
    lm_gemm_job<T> job = {h, a, b, c, m, n, k, rows, lm_ceil_div(m, rows), columns, lm_ceil_div(n, columns), accumulate, epilogue, context};
    i64 tasks = batch * job.row_blocks * job.column_blocks;
    i64 grain = (i64)(4e5 / (flops * (f64)batch / (f64)tasks + 1)) + 1;
    h->parallel(lm_gemm_tasks<T>, &job, tasks, grain);
    if (epilogue && job.column_blocks > 1) h->parallel(epilogue, context, batch * m, 1 + 16384 / n);
}

///@ copy
template <typename T, int R> LM_NOINLINE void lm_copy(const T *from, T *to, const i64 *shape, const i64 *sf, const i64 *st) {
    i64 at[R] = {}, inner = shape[R - 1];
    for (int d = 0; d < R; ++d) if (shape[d] <= 0) return;
    for (;;) {
        i64 f = 0, t = 0;
        for (int d = 0; d < R - 1; ++d) { f += at[d] * sf[d]; t += at[d] * st[d]; }
        for (i64 i = 0; i < inner; ++i) to[t + i * st[R - 1]] = from[f + i * sf[R - 1]];
        int d = R - 2;
        for (; d >= 0; --d) { if (++at[d] < shape[d]) break; at[d] = 0; }
        if (d < 0) return;
    }
}

///@ convolution
// Columns of the input's windows, packed for a block of positions, times the weight: [co, ci k] x [ci k, positions].
template <typename T, int R> struct lm_tensor { T *p; i64 n[R + 2], s[R + 2]; };
template <int R> struct lm_window { i64 stride[R], low[R], high[R], dilation[R], input_dilation[R]; i64 groups; bool transposed; };
template <typename T> struct lm_conv_job {
    const lm_host *h;
    const T *x, *w;
    T *y;
    const T *bias;
    i64 sbias, images, ci, co, groups;            // ci, co: of one group
    i64 in[3], out[3], win[3], xs[5], ws[5], ys[5]; // spatial sizes padded to three; strides of n, c, spatial
    i64 stride[3], low[3], dilation[3], input_dilation[3];
    bool transposed;
    i64 block, blocks;                             // positions of a task
    lm_body epilogue;
    void *context;
};
// Where output position o meets window position k along a dimension; -1: in the padding.
template <typename J> LM_INLINE i64 lm_conv_position(const J *j, int d, i64 o, i64 k) {
    i64 p, step;
    if (j->transposed) { p = o + j->low[d] - k * j->dilation[d]; step = j->stride[d]; }
    else { p = o * j->stride[d] + k * j->dilation[d] - j->low[d]; step = j->input_dilation[d]; }
    if (p < 0) return -1;
    if (step != 1) { if (p % step) return -1; p /= step; }
    return p < j->in[d] ? p : -1;
}
template <typename T> LM_INLINE void lm_conv_row(const lm_conv_job<T> *j, T *__restrict to, const T *__restrict from, i64 k, i64 o, i64 count) {
    // `count` positions of one output row from o on; `from` is the input row, or null when that is in the padding
    i64 i = 0, step = j->transposed ? 1 : j->stride[2], xs = j->xs[4];
    bool regular = j->transposed ? j->stride[2] == 1 : j->input_dilation[2] == 1;
    if (!from) { for (; i < count; ++i) to[i] = T{}; return; }
    if (!regular) {
        for (; i < count; ++i) { i64 p = lm_conv_position(j, 2, o + i, k); to[i] = p < 0 ? T{} : from[p * xs]; }
        return;
    }
    i64 first = j->transposed ? o + j->low[2] - k * j->dilation[2] : o * step + k * j->dilation[2] - j->low[2];
    for (; i < count && first + i * step < 0; ++i) to[i] = T{};
    i64 last = j->in[2] - first <= 0 ? i : lm_ceil_div(j->in[2] - first, step);
    last = last < i ? i : last > count ? count : last;
    if (step == 1 && xs == 1) {
#pragma omp simd
        for (i64 q = i; q < last; ++q) to[q] = from[first + q];
    } else for (i64 q = i; q < last; ++q) to[q] = from[(first + q * step) * xs];
    for (i = last; i < count; ++i) to[i] = T{};
}
template <typename T> LM_NOINLINE void lm_conv_columns(const lm_conv_job<T> *j, T *to, const T *x, i64 begin, i64 count) {
    for (i64 c = 0; c < j->ci; ++c) for (i64 k0 = 0; k0 < j->win[0]; ++k0) for (i64 k1 = 0; k1 < j->win[1]; ++k1) for (i64 k2 = 0; k2 < j->win[2]; ++k2) {
        for (i64 at = 0; at < count;) {
            i64 o = begin + at, o2 = o % j->out[2], o1 = o / j->out[2] % j->out[1], o0 = o / (j->out[2] * j->out[1]);
            i64 here = j->out[2] - o2 < count - at ? j->out[2] - o2 : count - at;
            i64 p0 = lm_conv_position(j, 0, o0, k0), p1 = lm_conv_position(j, 1, o1, k1);
            const T *row = p0 < 0 || p1 < 0 ? nullptr : x + c * j->xs[1] + p0 * j->xs[2] + p1 * j->xs[3];
            lm_conv_row(j, to + at, row, k2, o2, here);
            at += here;
        }
        to += count;
    }
}
template <typename T> LM_NOINLINE void lm_conv_weight(const lm_conv_job<T> *j, T *to, i64 group) {
    i64 first = group * (j->transposed ? j->ci : j->co);
    for (i64 o = 0; o < j->co; ++o) for (i64 c = 0; c < j->ci; ++c) {
        const T *from = j->w + (j->transposed ? (first + c) * j->ws[0] + o * j->ws[1] : (first + o) * j->ws[0] + c * j->ws[1]);
        for (i64 a = 0; a < j->win[0]; ++a) for (i64 b = 0; b < j->win[1]; ++b) for (i64 d = 0; d < j->win[2]; ++d)
            *to++ = from[a * j->ws[2] + b * j->ws[3] + d * j->ws[4]];
    }
}
template <typename T> LM_NOINLINE void lm_conv_tasks(void *context, i64 begin, i64 end) {
    const lm_conv_job<T> *j = (const lm_conv_job<T> *)context;
    i64 window = j->win[0] * j->win[1] * j->win[2], k = j->ci * window, positions = j->out[0] * j->out[1] * j->out[2];
    i64 step = (1 << 18) / (k * (i64)sizeof(T)) / 16 * 16; // a block of columns within a quarter of a megabyte
    step = step < 64 ? 64 : step;
    bool ready = !j->transposed && j->ws[4] == 1 && j->ws[3] == j->win[2] && j->ws[2] == j->win[2] * j->win[1] && j->ws[1] == window && j->ws[0] == k;
    bool plane = j->ys[4] == 1 && (j->out[1] == 1 || j->ys[3] == j->out[2]) && (j->out[0] == 1 || j->ys[2] == j->out[2] * j->out[1]);
    char *room = (char *)j->h->scratch((k * step + j->co * k + j->co * step + 64) * (i64)sizeof(T) + lm_gemm_space<T>(j->co, step, k));
    T *columns = (T *)room, *packed = columns + k * step, *result = packed + j->co * k;
    char *space = (char *)(result + j->co * step);
    for (i64 t = begin; t < end; ++t) {
        i64 part = t % j->blocks, group = t / j->blocks % j->groups, image = t / (j->blocks * j->groups);
        const T *x = j->x + image * j->xs[0] + group * j->ci * j->xs[1], *w = j->w + group * j->co * j->ws[0];
        T *y = j->y + image * j->ys[0] + group * j->co * j->ys[1];
        if (!ready) { lm_conv_weight(j, packed, group); w = packed; }
        i64 stop = (part + 1) * j->block < positions ? (part + 1) * j->block : positions;
        for (i64 at = part * j->block; at < stop; at += step) {
            i64 count = stop - at < step ? stop - at : step;
            lm_conv_columns(j, columns, x, at, count);
            lm_matrix<T> c = plane ? lm_matrix<T>{y + at, 0, j->ys[1], 1} : lm_matrix<T>{result, 0, count, 1};
            if (j->bias) for (i64 o = 0; o < j->co; ++o) for (i64 q = 0; q < count; ++q) c.p[o * c.sr + q] = j->bias[(group * j->co + o) * j->sbias];
            lm_gemm_block(j->h, lm_matrix<T>{(T *)w, 0, k, 1}, lm_matrix<T>{columns, 0, count, 1}, c, j->co, count, k, j->bias != nullptr, space);
            if (!plane) for (i64 o = 0; o < j->co; ++o) for (i64 q = 0; q < count; ++q) {
                i64 p = at + q, o2 = p % j->out[2], o1 = p / j->out[2] % j->out[1], o0 = p / (j->out[2] * j->out[1]);
                y[o * j->ys[1] + o0 * j->ys[2] + o1 * j->ys[3] + o2 * j->ys[4]] = result[o * count + q];
            }
        }
        i64 rows = (image * j->groups + group) * j->co;
        if (j->epilogue && j->blocks == 1) j->epilogue(j->context, rows, rows + j->co);
    }
}
template <typename T, int R> LM_NOINLINE void lm_convolution(const lm_host *h, lm_tensor<T, R> x, lm_tensor<T, R> w, const T *bias, i64 sbias, lm_tensor<T, R> y, lm_window<R> window, lm_body epilogue, void *context) {
    lm_conv_job<T> j = {};
    j.h = h, j.x = x.p, j.w = w.p, j.y = y.p, j.bias = bias, j.sbias = sbias, j.images = x.n[0], j.groups = window.groups;
    j.ci = x.n[1] / window.groups, j.co = y.n[1] / window.groups, j.transposed = window.transposed, j.epilogue = epilogue, j.context = context;
    for (int d = 0; d < 3; ++d) {
        int s = d - (3 - R);
        bool real = s >= 0;
        s = real ? s : 0;
        j.in[d] = real ? x.n[s + 2] : 1, j.out[d] = real ? y.n[s + 2] : 1, j.win[d] = real ? w.n[s + 2] : 1;
        j.xs[d + 2] = real ? x.s[s + 2] : 0, j.ws[d + 2] = real ? w.s[s + 2] : (d == 1 && R == 1 ? w.n[2] : 0), j.ys[d + 2] = real ? y.s[s + 2] : 0;
        j.stride[d] = real ? window.stride[s] : 1, j.low[d] = real ? window.low[s] : 0;
        j.dilation[d] = real ? window.dilation[s] : 1, j.input_dilation[d] = real ? window.input_dilation[s] : 1;
    }
    for (int d = 0; d < 2; ++d) j.xs[d] = x.s[d], j.ws[d] = w.s[d], j.ys[d] = y.s[d];
    if (R < 3) j.ws[2] = j.win[2] * j.win[1];
    i64 positions = j.out[0] * j.out[1] * j.out[2];
    if (positions <= 0 || j.images <= 0) return;
    i64 images = j.images * j.groups, shares = images >= 2 * h->threads ? 1 : lm_ceil_div(h->threads, images);
    f64 flops = 2.0 * (f64)positions * (f64)j.co * (f64)(j.ci * j.win[0] * j.win[1] * j.win[2]);
    if (flops < 4e5) shares = 1;
    j.block = shares == 1 ? positions : (lm_ceil_div(positions, shares) + 15) / 16 * 16;
    j.blocks = lm_ceil_div(positions, j.block);
    h->parallel(lm_conv_tasks<T>, &j, images * j.blocks, (i64)(4e5 * (f64)j.blocks / (flops + 1)) + 1);
    if (epilogue && j.blocks > 1) h->parallel(epilogue, context, j.images * y.n[1], 1 + 16384 / positions);
}
