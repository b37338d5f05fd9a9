// Attention without the matrix of scores: blocks of queries times blocks of keys that stay in cache, forward and backward.
//
// Products are own loops over registers and not the BLAS: a tile is 64 x 64 x 64, where packing and the call would take as long as
// the product. The code exists for three levels of the processor, chosen at the first call.
#include "attention.h"

#include <stdlib.h>

// Which matrices a call's tasks have: `tasks` independent ones, each with `together` whose gradients meet in one sum.
typedef struct {
    const lm_host *host;
    const lm_attention_call *call;
    i64 tasks, together;
    bool summed[3], keys_stay; // dimensions that a task has whole; whether its matrices share one key gradient
    int split;                 // backward: 0 whole matrices, 1 blocks of keys (no query gradient), 2 blocks of queries (only that)
    i64 blocks;
} lm_attention_job;
static inline void lm_attention_lead(const lm_attention_job *job, i64 n, i64 t, i64 *lead) {
    for (int d = 2; d >= 0; --d) {
        i64 size = job->call->lead[d], *from = job->summed[d] ? &t : &n;
        lead[d] = *from % size;
        *from /= size;
    }
}

namespace {

namespace plain {
#define LM_AT
#define LM_VECTOR 16
#define LM_ROWS 6
#define LM_VECTORS 2
#include "attention_vectors.h"
#include "attention_tiles.h"
#include "attention_forward.h"
#include "attention_backward.h"
#include "attention_level_end.h"
} // namespace plain

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define LM_LEVELS
namespace avx2 {
#define LM_AT __attribute__((target("arch=x86-64-v3")))
#define LM_VECTOR 32
#define LM_ROWS 6
#define LM_VECTORS 2
#include "attention_vectors.h"
#include "attention_tiles.h"
#include "attention_forward.h"
#include "attention_backward.h"
#include "attention_level_end.h"
} // namespace avx2
namespace avx512 {
#define LM_AT __attribute__((target("arch=x86-64-v4")))
#define LM_VECTOR 64
#define LM_ROWS 6
#define LM_VECTORS 4
#include "attention_vectors.h"
#include "attention_tiles.h"
#include "attention_forward.h"
#include "attention_backward.h"
#include "attention_level_end.h"
} // namespace avx512
#endif

// 2: AVX-512, 1: AVX2, 0: neither. LAMINA_CPU_LEVEL lowers it, for tests of what this processor would not take.
int found_level() {
    int level = 0;
#ifdef LM_LEVELS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) level = 1;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) level = 2;
#endif
    const char *limit = getenv("LAMINA_CPU_LEVEL");
    const int most = limit ? atoi(limit) : level;
    return most < level ? most : level;
}
int level() {
    static const int level = found_level();
    return level;
}

template <typename T> lm_body forward_body() {
#ifdef LM_LEVELS
    if (level() == 2) return avx512::forward_tasks<T>;
    if (level() == 1) return avx2::forward_tasks<T>;
#endif
    return plain::forward_tasks<T>;
}
template <typename T> lm_body backward_body() {
#ifdef LM_LEVELS
    if (level() == 2) return avx512::backward_tasks<T>;
    if (level() == 1) return avx2::backward_tasks<T>;
#endif
    return plain::backward_tasks<T>;
}
lm_body body_of(i64 dtype, bool backward) {
    switch (dtype) {
    case LM_F64: return backward ? backward_body<f64>() : forward_body<f64>();
    case LM_F16: return backward ? backward_body<f16>() : forward_body<f16>();
    case LM_BF16: return backward ? backward_body<bf16>() : forward_body<bf16>();
    default: return backward ? backward_body<f32>() : forward_body<f32>();
    }
}
// Tasks of work worth a thread.
i64 grain_of(const lm_attention_call *j, i64 matrices, i64 tasks, i64 products) {
    const f64 flops = (f64)products * (f64)matrices * (f64)j->queries * (f64)j->keys * (f64)(j->width + j->value_width + 16);
    return (i64)(4e5 / (flops / (f64)tasks + 1)) + 1;
}
void find_matrices(lm_attention_job *job) {
    const lm_attention_call *j = job->call;
    const lm_attention_operand *targets[] = {&j->grad_query, &j->grad_key, &j->grad_value};
    job->tasks = job->together = 1;
    job->keys_stay = true;
    for (int d = 0; d < 3; ++d) {
        bool keys = true;
        for (int k = 0; k < 3; ++k) {
            const bool one = targets[k]->p && targets[k]->lead[d] == 1 && j->lead[d] > 1;
            job->summed[d] |= one;
            if (k && targets[k]->p) keys = keys && one;
        }
        (job->summed[d] ? job->together : job->tasks) *= j->lead[d];
        if (job->summed[d] && !keys) job->keys_stay = false;
    }
}

} // namespace

extern "C" void lm_step_attention(const lm_host *h, const lm_attention_call *j) {
    const i64 matrices = j->lead[0] * j->lead[1] * j->lead[2], blocks = lm_ceil_div(j->queries, LM_TILE);
    if (matrices <= 0 || j->queries <= 0) return;
    lm_attention_job job = {h, j, matrices, 1, {false, false, false}, true, 0, blocks};
    h->parallel(body_of(j->dtype, false), &job, matrices * blocks, grain_of(j, matrices, matrices * blocks, 2));
}
extern "C" void lm_step_attention_backward(const lm_host *h, const lm_attention_call *j) {
    lm_attention_job job = {h, j, 1, 1, {false, false, false}, true, 0, 1};
    const i64 matrices = j->lead[0] * j->lead[1] * j->lead[2];
    if (matrices <= 0) return;
    find_matrices(&job);
    lm_body body = body_of(j->dtype, true);
    if (job.tasks >= h->threads || h->threads == 1) return h->parallel(body, &job, job.tasks, grain_of(j, matrices, job.tasks, 5));
    // Fewer matrices than threads: two passes over blocks, which compute the scores twice.
    job.split = 1, job.blocks = lm_ceil_div(j->keys, LM_TILE);
    if (j->grad_key.p || j->grad_value.p) h->parallel(body, &job, job.tasks * job.blocks, grain_of(j, matrices, job.tasks * job.blocks, 4));
    job.split = 2, job.blocks = lm_ceil_div(j->queries, LM_TILE);
    if (j->grad_query.p) h->parallel(body, &job, job.tasks * job.blocks, grain_of(j, matrices, job.tasks * job.blocks, 3));
}
