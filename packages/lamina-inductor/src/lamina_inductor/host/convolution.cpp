// Convolutions: columns of the input's windows, packed for a block of positions that stays in cache, times the weight:
// [co, ci * window] x [ci * window, positions]. Up to three spatial dimensions; missing ones are of size 1.
#include "steps.h"

namespace {

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
template <typename T> LM_CLONES void lm_conv_columns(const lm_conv_job<T> *j, T *to, const T *x, i64 begin, i64 count) {
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
template <typename T> void lm_conv_weight(const lm_conv_job<T> *j, T *to, i64 group) {
    i64 first = group * (j->transposed ? j->ci : j->co);
    for (i64 o = 0; o < j->co; ++o) for (i64 c = 0; c < j->ci; ++c) {
        const T *from = j->w + (j->transposed ? (first + c) * j->ws[0] + o * j->ws[1] : (first + o) * j->ws[0] + c * j->ws[1]);
        for (i64 a = 0; a < j->win[0]; ++a) for (i64 b = 0; b < j->win[1]; ++b) for (i64 d = 0; d < j->win[2]; ++d)
            *to++ = from[a * j->ws[2] + b * j->ws[3] + d * j->ws[4]];
    }
}
// A window of one element on whole planes: the input is the columns already.
template <typename T> bool lm_conv_is_pointwise(const lm_conv_job<T> *j) {
    bool same = !j->transposed && (j->in[2] == 1 || j->xs[4] == 1) && (j->in[1] == 1 || j->xs[3] == j->in[2]) && (j->in[0] == 1 || j->xs[2] == j->in[2] * j->in[1]);
    for (int d = 0; d < 3; ++d) same = same && j->win[d] == 1 && j->stride[d] == 1 && j->low[d] == 0 && j->input_dilation[d] == 1 && j->in[d] == j->out[d];
    return same;
}
// Stride 1 in single precision: the image is padded once, every output row is a product whose right-hand rows lie in it, and no
// columns are made. Worth it where a row fills its vectors.
template <typename T> LM_INLINE bool lm_conv_is_direct(const lm_conv_job<T> *) { return false; }
LM_INLINE i64 lm_conv_padded(const lm_conv_job<f32> *j, int d) { return j->out[d] + (j->win[d] - 1) * j->dilation[d]; }
// Rows of the result lie behind one another: vectors run over the ends of the padded rows, if those are not much longer.
LM_INLINE bool lm_conv_is_dense(const lm_conv_job<f32> *j) {
    return !j->bias && j->ys[4] == 1 && j->ys[3] == j->out[2] && j->out[2] * 10 >= lm_conv_padded(j, 2) * 8;
}
LM_INLINE bool lm_conv_is_direct(const lm_conv_job<f32> *j) {
    i64 n = j->out[2], lanes = (n + 15) / 16 * 16;
    bool plain = !j->transposed && j->ys[4] == 1 && (n * 10 >= lanes * 7 || lm_conv_is_dense(j));
    for (int d = 0; d < 3; ++d) plain = plain && j->stride[d] == 1 && j->input_dilation[d] == 1;
    return plain && lm_has_direct();
}
template <typename T> LM_INLINE void lm_conv_direct(const lm_conv_job<T> *, const T *, const T *, T *, const T *, i64, i64) {}
void lm_conv_direct(const lm_conv_job<f32> *j, const f32 *x, const f32 *w, f32 *y, const f32 *bias, i64 first, i64 last) {
    i64 p0 = lm_conv_padded(j, 0), p1 = lm_conv_padded(j, 1), p2 = lm_conv_padded(j, 2), k = j->ci * j->win[0] * j->win[1] * j->win[2];
    i64 plane = p0 * p1 * p2;
    f32 *padded = (f32 *)j->h->scratch((j->ci * plane + 64) * 4 + k * 8 + 64);
    i64 *at = (i64 *)(((u64)(padded + j->ci * plane + 64) + 7) / 8 * 8), l = 0;
    memset(padded, 0, (size_t)(j->ci * plane) * 4);
    for (i64 c = 0; c < j->ci; ++c) for (i64 a = 0; a < j->in[0]; ++a) for (i64 b = 0; b < j->in[1]; ++b) {
        i64 q0 = a + j->low[0], q1 = b + j->low[1], q2 = j->low[2], from = q2 < 0 ? -q2 : 0;
        if (q0 < 0 || q0 >= p0 || q1 < 0 || q1 >= p1) continue;
        i64 stop = j->in[2] < p2 - q2 ? j->in[2] : p2 - q2;
        f32 *to = padded + c * plane + (q0 * p1 + q1) * p2 + q2;
        const f32 *row = x + c * j->xs[1] + a * j->xs[2] + b * j->xs[3];
        for (i64 i = from; i < stop; ++i) to[i] = row[i * j->xs[4]];
    }
    for (i64 c = 0; c < j->ci; ++c) for (i64 a = 0; a < j->win[0]; ++a) for (i64 b = 0; b < j->win[1]; ++b) for (i64 d = 0; d < j->win[2]; ++d)
        at[l++] = c * plane + (a * j->dilation[0] * p1 + b * j->dilation[1]) * p2 + d * j->dilation[2];
    if (lm_conv_is_dense(j)) {
        for (i64 r = first, stop; r < last; r = stop) {
            i64 o0 = r / j->out[1], o1 = r % j->out[1];
            stop = (o0 + 1) * j->out[1] < last ? (o0 + 1) * j->out[1] : last;
            lm_direct_plane(j->co, k, w, padded + (o0 * p1 + o1) * p2, at, y + o0 * j->ys[2] + o1 * j->ys[3], j->ys[1], stop - r, j->out[2], p2);
        }
        return;
    }
    for (i64 r = first; r < last; ++r) {
        i64 o0 = r / j->out[1], o1 = r % j->out[1];
        f32 *to = y + o0 * j->ys[2] + o1 * j->ys[3];
        if (bias) for (i64 o = 0; o < j->co; ++o) for (i64 i = 0; i < j->out[2]; ++i) to[o * j->ys[1] + i] = bias[o * j->sbias];
        lm_direct(j->co, j->out[2], k, w, k, padded + (o0 * p1 + o1) * p2, at, to, j->ys[1], bias != nullptr);
    }
}
template <typename T> void lm_conv_tasks(void *context, i64 begin, i64 end) {
    const lm_conv_job<T> *j = (const lm_conv_job<T> *)context;
    i64 window = j->win[0] * j->win[1] * j->win[2], k = j->ci * window, positions = j->out[0] * j->out[1] * j->out[2];
    i64 step = (1 << 18) / (k * (i64)sizeof(T)) / 48 * 48; // a block of columns within a quarter of a megabyte
    step = step < 48 ? 48 : step;
    bool ready = !j->transposed && (j->win[2] == 1 || j->ws[4] == 1) && (j->win[1] == 1 || j->ws[3] == j->win[2]) &&
                 (j->win[0] == 1 || j->ws[2] == j->win[2] * j->win[1]) && (j->ci == 1 || j->ws[1] == window) && (j->co == 1 || j->ws[0] == k);
    bool plane = (j->out[2] == 1 || j->ys[4] == 1) && (j->out[1] == 1 || j->ys[3] == j->out[2]) &&
                 (j->out[0] == 1 || j->ys[2] == j->out[2] * j->out[1]);
    char *room = (char *)j->h->scratch((k * step + j->co * k + j->co * step + 64) * (i64)sizeof(T) + lm_gemm_space<T>(j->co, step, k));
    T *columns = (T *)room, *packed = columns + k * step, *result = packed + j->co * k;
    char *space = (char *)(result + j->co * step);
    for (i64 t = begin; t < end; ++t) {
        i64 part = t % j->blocks, group = t / j->blocks % j->groups, image = t / (j->blocks * j->groups);
        const T *x = j->x + image * j->xs[0] + group * j->ci * j->xs[1], *w = j->w + group * j->co * j->ws[0];
        T *y = j->y + image * j->ys[0] + group * j->co * j->ys[1];
        if (!ready) { lm_conv_weight(j, packed, group); w = packed; }
        if (ready && plane && lm_conv_is_pointwise(j)) {
            i64 at = part * j->block, count = (at + j->block < positions ? at + j->block : positions) - at;
            lm_matrix<T> c = {y + at, 0, j->ys[1], 1};
            if (j->bias) for (i64 o = 0; o < j->co; ++o) for (i64 q = 0; q < count; ++q) c.p[o * c.sr + q] = j->bias[(group * j->co + o) * j->sbias];
            lm_gemm_block(j->h, lm_matrix<T>{(T *)w, 0, k, 1}, lm_matrix<T>{(T *)x + at, 0, j->xs[1], 1}, c, j->co, count, k, j->bias != nullptr,
                          (char *)j->h->scratch(lm_gemm_space<T>(j->co, count, k)));
            i64 done = (image * j->groups + group) * j->co;
            if (j->epilogue && j->blocks == 1) j->epilogue(j->context, done, done + j->co);
            continue;
        }
        if (ready && lm_conv_is_direct(j)) {
            i64 rows = j->out[0] * j->out[1], share = lm_ceil_div(rows, j->blocks), end_row = (part + 1) * share < rows ? (part + 1) * share : rows;
            lm_conv_direct(j, x, w, y, j->bias ? j->bias + group * j->co * j->sbias : nullptr, part * share, end_row);
            i64 done = (image * j->groups + group) * j->co;
            if (j->epilogue && j->blocks == 1) j->epilogue(j->context, done, done + j->co);
            continue;
        }
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

template <typename T> void run(const lm_host *h, const lm_convolution_call *v) {
    lm_conv_job<T> j = {};
    j.h = h, j.x = (const T *)v->x, j.w = (const T *)v->w, j.y = (T *)v->y, j.bias = (const T *)v->bias, j.sbias = v->bias_stride;
    j.images = v->images, j.groups = v->groups, j.transposed = v->transposed != 0, j.epilogue = v->epilogue, j.context = v->context;
    j.ci = v->channels_in / v->groups, j.co = v->channels_out / v->groups;
    for (int d = 0; d < 3; ++d) {
        j.in[d] = v->in[d], j.out[d] = v->out[d], j.win[d] = v->window[d];
        j.stride[d] = v->stride[d], j.low[d] = v->low[d], j.dilation[d] = v->dilation[d], j.input_dilation[d] = v->input_dilation[d];
    }
    for (int d = 0; d < 5; ++d) j.xs[d] = v->x_strides[d], j.ws[d] = v->w_strides[d], j.ys[d] = v->y_strides[d];
    i64 positions = j.out[0] * j.out[1] * j.out[2];
    if (positions <= 0 || j.images <= 0 || j.co <= 0) return;
    i64 images = j.images * j.groups, shares = images >= 2 * h->threads ? 1 : lm_ceil_div(h->threads, images);
    f64 flops = 2.0 * (f64)positions * (f64)j.co * (f64)(j.ci * j.win[0] * j.win[1] * j.win[2]);
    if (flops < 4e5) shares = 1;
    j.block = shares == 1 ? positions : (lm_ceil_div(positions, shares) + 15) / 16 * 16;
    j.blocks = lm_ceil_div(positions, j.block);
    h->parallel(lm_conv_tasks<T>, &j, images * j.blocks, (i64)(4e5 * (f64)j.blocks / (flops + 1)) + 1);
    if (j.epilogue && j.blocks > 1) h->parallel(j.epilogue, j.context, j.images * v->channels_out, 1 + 16384 / positions);
}

} // namespace

extern "C" void lm_step_convolution(const lm_host *h, const lm_convolution_call *v) {
    switch (v->dtype) {
    case LM_F32: return run<f32>(h, v);
    case LM_F64: return run<f64>(h, v);
    case LM_C64: return run<c64>(h, v);
    case LM_C128: return run<c128>(h, v);
    case LM_F16: return run<f16>(h, v);
    case LM_BF16: return run<bf16>(h, v);
    case LM_I8: return run<i8>(h, v);
    case LM_I16: return run<i16>(h, v);
    case LM_I32: return run<i32>(h, v);
    case LM_I64: return run<i64>(h, v);
    }
}
