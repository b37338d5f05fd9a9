// Matrix products: blocks for the BLAS (one thread a call), which the pool's threads take; an epilogue runs on a block of rows
// while that is in cache.
#include "steps.h"

namespace {

// Tasks are blocks of rows (of columns where there are few rows) of all matrices of the batch.
template <typename T> struct lm_gemm_job {
    const lm_host *h;
    lm_matrix<T> a, b, c;
    i64 outer[3], inner; // steps of a, b and c to the next group of `inner` matrices
    i64 m, n, k, row_block, row_blocks, column_block, column_blocks;
    bool accumulate;
    lm_body epilogue;
    void *context;
};
template <typename T> void lm_gemm_tasks(void *context, i64 begin, i64 end) {
    const lm_gemm_job<T> *j = (const lm_gemm_job<T> *)context;
    for (i64 t = begin; t < end; ++t) {
        i64 cb = t % j->column_blocks, rb = t / j->column_blocks % j->row_blocks, b = t / (j->column_blocks * j->row_blocks);
        i64 r = rb * j->row_block, q = cb * j->column_block;
        i64 m = j->m - r < j->row_block ? j->m - r : j->row_block, n = j->n - q < j->column_block ? j->n - q : j->column_block;
        i64 o = b / j->inner, i = b % j->inner;
        lm_matrix<T> x = lm_at(j->a, i, r, 0), y = lm_at(j->b, i, 0, q), z = lm_at(j->c, i, r, q);
        x.p += o * j->outer[0], y.p += o * j->outer[1], z.p += o * j->outer[2];
        char *space = (char *)j->h->scratch(lm_gemm_space<T>(m, n, j->k));
        lm_gemm_block(j->h, x, y, z, m, n, j->k, j->accumulate, space);
        if (j->epilogue && j->column_blocks == 1) j->epilogue(j->context, b * j->m + r, b * j->m + r + m);
    }
}
template <typename T> void lm_gemm(const lm_host *h, lm_matrix<T> a, lm_matrix<T> b, lm_matrix<T> c, const i64 (&outer)[3], i64 batch, i64 inner, i64 m, i64 n, i64 k, bool accumulate, lm_body epilogue, void *context) {
    if (batch <= 0 || m <= 0 || n <= 0) return;
    if (batch > 1 && inner == batch && b.sb == 0 && a.sb == m * a.sr && c.sb == m * c.sr) { m *= batch; batch = inner = 1; } // one tall product
    f64 flops = 2.0 * (f64)m * (f64)n * (f64)(k + 1);
    i64 threads = h->threads, rows = m, columns = n;
    if (batch < 2 * threads && threads > 1 && flops * (f64)batch > 4e5) {
        i64 shares = lm_ceil_div(threads, batch);
        // A block packs its part of `b` anew, which costs as much as some 36 rows of work: columns are divided before rows.
        if (n >= 64 * shares || n >= m) columns = (lm_ceil_div(n, shares) + 15) / 16 * 16;
        else rows = (lm_ceil_div(m, shares) + 15) / 16 * 16;
    }
    if (epilogue && columns == n) { // keep a block of the result within half of a 2 MB cache, but not so low that packing shows
        i64 fit = (1 << 20) / ((i64)sizeof(T) * n);
        fit = (fit < 256 ? 256 : fit) / 16 * 16;
        rows = rows > fit ? fit : rows;
    }
    lm_gemm_job<T> job = {h, a, b, c, {outer[0], outer[1], outer[2]}, inner, m, n, k, rows, lm_ceil_div(m, rows), columns, lm_ceil_div(n, columns), accumulate, epilogue, context};
    i64 tasks = batch * job.row_blocks * job.column_blocks;
    i64 grain = (i64)(4e5 / (flops * (f64)batch / (f64)tasks + 1)) + 1;
    h->parallel(lm_gemm_tasks<T>, &job, tasks, grain);
    if (epilogue && job.column_blocks > 1) h->parallel(epilogue, context, batch * m, 1 + 16384 / n);
}

template <typename T> void run(const lm_host *h, const lm_gemm_call *g) {
    const int64_t *s = g->strides;
    lm_matrix<T> a = {(T *)g->a, s[1], s[2], s[3]}, b = {(T *)g->b, s[5], s[6], s[7]}, c = {(T *)g->c, s[9], s[10], s[11]};
    lm_gemm(h, a, b, c, {s[0], s[4], s[8]}, g->batch, g->inner, g->m, g->n, g->k, g->accumulate != 0, g->epilogue, g->context);
}

} // namespace

extern "C" void lm_step_gemm(const lm_host *h, const lm_gemm_call *g) {
    switch (g->dtype) {
    case LM_F32: return run<f32>(h, g);
    case LM_F64: return run<f64>(h, g);
    case LM_C64: return run<c64>(h, g);
    case LM_C128: return run<c128>(h, g);
    case LM_F16: return run<f16>(h, g);
    case LM_BF16: return run<bf16>(h, g);
    case LM_I8: return run<i8>(h, g);
    case LM_I16: return run<i16>(h, g);
    case LM_I32: return run<i32>(h, g);
    case LM_I64: return run<i64>(h, g);
    }
}
