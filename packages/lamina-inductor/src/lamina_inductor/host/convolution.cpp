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
template <typename T> void lm_conv_tasks(void *context, i64 begin, i64 end) {
    const lm_conv_job<T> *j = (const lm_conv_job<T> *)context;
    i64 window = j->win[0] * j->win[1] * j->win[2], k = j->ci * window, positions = j->out[0] * j->out[1] * j->out[2];
    i64 step = (1 << 18) / (k * (i64)sizeof(T)) / 16 * 16; // a block of columns within a quarter of a megabyte
    step = step < 64 ? 64 : step;
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
