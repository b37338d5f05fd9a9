// What a tile of attention needs of its call; see attention.cpp.
#ifndef LAMINA_ATTENTION_H
#define LAMINA_ATTENTION_H
#include "steps.h"

#include <math.h>

// Queries and keys of a tile. Their scores, the queries' and the keys' tile (width 64) take 16 KB each.
static constexpr i64 LM_TILE = 64;
typedef uint8_t u8;

LM_INLINE i64 lm_rounded(i64 n, i64 unit) { return (n + unit - 1) / unit * unit; }

// A matrix of an operand: where the indices of batch, head and group lead.
template <typename T> LM_INLINE lm_matrix<T> lm_lead(const lm_attention_operand *o, const i64 *lead) {
    const i64 *s = o->strides;
    return {(T *)o->p + lead[0] * s[0] + lead[1] * s[1] + lead[2] * s[2], 0, s[3], s[4]};
}
#endif
