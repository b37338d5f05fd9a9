// The host's side as a generated program sees it; the same declarations as host/host_abi.h.

///@ host
typedef void (*lm_body)(void *context, i64 begin, i64 end);
typedef struct {
    void *a, *b, *c;
    i64 strides[12];
    i64 batch, inner, m, n, k, dtype, accumulate;
    lm_body epilogue;
    void *context;
} lm_gemm_call;

typedef struct {
    void *x, *w, *y, *bias;
    i64 bias_stride, dtype, images, channels_in, channels_out, groups, transposed;
    i64 in[3], out[3], window[3], stride[3], low[3], dilation[3], input_dilation[3];
    i64 x_strides[5], w_strides[5], y_strides[5];
    lm_body epilogue;
    void *context;
} lm_convolution_call;
typedef struct { void *p; i64 lead[3], strides[5]; } lm_attention_operand;
typedef struct {
    lm_attention_operand query, key, value, mask, out, lse, grad_out, grad_lse, grad_query, grad_key, grad_value;
    i64 lead[3], queries, keys, width, value_width, dtype, mask_kind, causal;
    f64 scale, dropout;
    const i64 *state;
} lm_attention_call;
typedef struct lm_host {
    i64 version, threads;
    void (*parallel)(lm_body body, void *context, i64 n, i64 grain);
    void *(*scratch)(i64 bytes);
    int (*call)(void *state, i64 id, void *const *pointers, i64 count);
    void *state;
    void (*gemm)(const struct lm_host *host, const lm_gemm_call *call);
    void (*convolution)(const struct lm_host *host, const lm_convolution_call *call);
    void (*const *blas)(void);
    void (*attention)(const struct lm_host *host, const lm_attention_call *call);
    void (*attention_backward)(const struct lm_host *host, const lm_attention_call *call);
} lm_host;
// One call of a kernel: what every phase function gets as its context.
typedef struct { void *const *p; const i64 *s; i64 *error; } lm_call;

///@ checks
// An error word: the check's number, then the index. The largest word wins, which is that of the last check, and of its
// indices the largest, or, if none reaches above the end, the one furthest below 0.
static inline __attribute__((always_inline)) i64 lm_bad_index(i64 check, i64 index) {
    const i64 middle = (i64)1 << 47, most = middle - 1;
    const i64 above = middle + (index < most ? index : most), below = index > -most ? -index : most;
    return (check << 48) | (index >= 0 ? above : below);
}
LM_NOINLINE void lm_raise(i64 *place, i64 error) {
    i64 old = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (old < error && !__atomic_compare_exchange_n(place, &old, error, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

///@ parts
// Several calls in one parallel region: iterations of all parts in one row, weighted by their grains.
typedef struct { lm_body body; lm_call call; i64 n, grain; } lm_part;
typedef struct { const lm_part *parts; const i64 *starts; i64 count; } lm_parts;
LM_NOINLINE void lm_parts_body(void *context, i64 begin, i64 end) {
    const lm_parts *all = (const lm_parts *)context;
    i64 k = 0;
    while (all->starts[k + 1] <= begin) ++k;
    for (; k < all->count && all->starts[k] < end; ++k) {
        const lm_part *part = all->parts + k;
        i64 first = all->starts[k], units = all->starts[k + 1] - first;
        if (units <= 0) continue; // a part over an empty tensor
        i64 from = begin > first ? begin - first : 0, to = end - first < units ? end - first : units;
        i64 a = (i64)((__int128)part->n * from / units), b = (i64)((__int128)part->n * to / units);
        if (part->grain >= 64) { // as the pool does: remainders of vectorised loops do not depend on the threads
            a = a / 64 * 64;
            b = to == units ? part->n : b / 64 * 64;
        }
        if (a < b) part->body((void *)&part->call, a, b);
    }
}
LM_NOINLINE void lm_run_parts(const lm_host *h, const lm_part *parts, i64 *starts, i64 count) {
    // A unit is 1/16 of a grain, so that shares come out even; a part always has at least one.
    starts[0] = 0;
    f64 grains = 0; // many small parts are little work, though each is a unit; entering one costs about 1/256 of a grain
    for (i64 k = 0; k < count; ++k) {
        i64 units = (16 * parts[k].n + parts[k].grain - 1) / parts[k].grain;
        grains += (f64)parts[k].n / (f64)parts[k].grain + 1.0 / 256;
        starts[k + 1] = starts[k] + (parts[k].n <= 0 ? 0 : units < 1 ? 1 : units);
    }
    lm_parts all = {parts, starts, count};
    if (grains >= 2 && h->threads > 1) h->parallel(lm_parts_body, &all, starts[count], 16);
    else for (i64 k = 0; k < count; ++k) if (parts[k].n > 0) parts[k].body((void *)&parts[k].call, 0, parts[k].n);
}
