/* What a generated program sees of its host: `lm_host`, version 1. Generated code repeats these declarations
 * (backends/cpp/preamble/host.h), because it includes no header.
 *
 * A program's library exports
 *   int lamina_run(const lm_host *host, void *const *buffers, const int64_t *sizes, char *workspace);
 *   void lamina_layout(const int64_t *sizes, int64_t *numbers);   -- only with symbolic sizes
 * `buffers` holds inputs (NULL for a non-tensor), then outputs, then constants. `lamina_run` returns 0, an error word
 * of the program (positive), or -1 when a host call raised a Python exception.
 */
#ifndef LAMINA_HOST_ABI_H
#define LAMINA_HOST_ABI_H
#include <stdint.h>

#define LAMINA_HOST_VERSION 1

typedef void (*lm_body)(void *context, int64_t begin, int64_t end);

typedef struct lm_host {
    int64_t version;
    int64_t threads; /* threads a parallel call may use now; 1 means everything is serial */
    /* Run `body` over pieces of [0, n), each at least `grain` long, on the pool's threads and the caller. */
    void (*parallel)(lm_body body, void *context, int64_t n, int64_t grain);
    void *(*scratch)(int64_t bytes); /* this thread's scratch memory, 64-byte aligned, valid until the next call */
    int (*call)(void *state, int64_t id, void *const *pointers, int64_t count); /* run host call `id` in Python */
    void *state;
    void (*const *blas)(void); /* sgemm, dgemm, cgemm, zgemm of CBLAS; NULL entries where there is none */
} lm_host;

#ifdef __cplusplus
extern "C" {
#endif
void lm_pool_parallel(lm_body body, void *context, int64_t n, int64_t grain);
void *lm_pool_scratch(int64_t bytes);
int64_t lm_pool_threads(void);
void lm_pool_set_threads(int64_t threads);
void lm_pool_install(void);
#ifdef __cplusplus
}
#endif
#endif
