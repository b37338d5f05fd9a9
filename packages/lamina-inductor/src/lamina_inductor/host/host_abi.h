/* What a generated program sees of its host: `lm_host`. Generated code repeats these declarations
 * (backends/cpp/preamble/host.h), because it includes no header.
 *
 * A program's library exports
 *   int64_t lamina_run(const lm_host *host, void *const *buffers, const int64_t *sizes, char *workspace);
 *   void lamina_layout(const int64_t *sizes, int64_t *numbers);   -- only with symbolic sizes
 * `buffers` holds inputs (NULL for a non-tensor), then outputs, then constants. `lamina_run` returns 0, an error word
 * of the program (positive), or -1 when a host call raised a Python exception.
 */
#ifndef LAMINA_HOST_ABI_H
#define LAMINA_HOST_ABI_H
#include <stdint.h>

#define LAMINA_HOST_VERSION 4

typedef void (*lm_body)(void *context, int64_t begin, int64_t end);

/* Element types of products and convolutions: codes of tensor_abi.h. uint types go as the signed ones of their width. */
enum { LM_I8 = 5, LM_I16 = 6, LM_I32 = 7, LM_I64 = 8, LM_F16 = 9, LM_BF16 = 10, LM_F32 = 11, LM_F64 = 12, LM_C64 = 13, LM_C128 = 14 };

typedef struct {
    void *a, *b, *c;
    int64_t strides[12]; /* of a, b, c: outer batch, inner batch, row, column; in elements */
    int64_t batch, inner; /* matrices in all; how many of them share an outer index (batch b is outer b / inner, inner b % inner) */
    int64_t m, n, k, dtype, accumulate;
    lm_body epilogue; /* over rows, or NULL */
    void *context;
} lm_gemm_call;

typedef struct {
    void *x, *w, *y, *bias; /* bias may be NULL */
    int64_t bias_stride, dtype, images, channels_in, channels_out, groups, transposed;
    int64_t in[3], out[3], window[3], stride[3], low[3], dilation[3], input_dilation[3];
    int64_t x_strides[5], w_strides[5], y_strides[5];
    lm_body epilogue; /* over n * co, or NULL */
    void *context;
} lm_convolution_call;

/* One operand of attention: sizes of batch, head and group (1: gradients are summed over it) and strides in elements. */
typedef struct {
    void *p; /* NULL: there is none */
    int64_t lead[3], strides[5];
} lm_attention_operand;

typedef struct {
    lm_attention_operand query, key, value, mask, out, lse, grad_out, grad_lse, grad_query, grad_key, grad_value;
    int64_t lead[3], queries, keys, width, value_width, dtype;
    int64_t mask_kind; /* 0 none, 1 bool, 2 added */
    int64_t causal;
    double scale, dropout;
    const int64_t *state; /* NULL: no dropout */
} lm_attention_call;

typedef struct lm_host {
    int64_t version;
    int64_t threads; /* threads a parallel call may use now; 1 means everything is serial */
    /* Run `body` over pieces of [0, n), each at least `grain` long, on the pool's threads and the caller. */
    void (*parallel)(lm_body body, void *context, int64_t n, int64_t grain);
    void *(*scratch)(int64_t bytes); /* this thread's scratch memory, 64-byte aligned, valid until the next call */
    int (*call)(void *state, int64_t id, void *const *pointers, int64_t count); /* run host call `id` in Python */
    void *state;
    void (*gemm)(const struct lm_host *host, const lm_gemm_call *call);
    void (*convolution)(const struct lm_host *host, const lm_convolution_call *call);
    void (*const *blas)(void); /* sgemm, dgemm, cgemm, zgemm of CBLAS; NULL entries where there is none */
    void (*attention)(const struct lm_host *host, const lm_attention_call *call);
    void (*attention_backward)(const struct lm_host *host, const lm_attention_call *call);
} lm_host;

#ifdef __cplusplus
extern "C" {
#endif
void lm_pool_parallel(lm_body body, void *context, int64_t n, int64_t grain);
void *lm_pool_scratch(int64_t bytes);
int64_t lm_pool_threads(void);
void lm_pool_set_threads(int64_t threads);
void lm_pool_install(void);
void lm_step_gemm(const lm_host *host, const lm_gemm_call *call);
void lm_step_convolution(const lm_host *host, const lm_convolution_call *call);
void lm_step_attention(const lm_host *host, const lm_attention_call *call);
void lm_step_attention_backward(const lm_host *host, const lm_attention_call *call);
#ifdef __cplusplus
}
#endif
#endif
