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

// Philox 4x32-10 as in backends/cpp/preamble/math.h: words of elements first .. first + count - 1.
LM_INLINE u32 lm_random_word(u64 seed, u64 offset, u64 i) {
    u64 counter = offset + (i >> 2);
    u32 c[4] = {(u32)counter, (u32)(counter >> 32), counter < offset, 0}, k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        u64 p0 = (u64)c[0] * 0xD2511F53u, p1 = (u64)c[2] * 0xCD9E8D57u;
        u32 n0 = (u32)(p1 >> 32) ^ c[1] ^ k0, n2 = (u32)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = n0, c[1] = (u32)p1, c[2] = n2, c[3] = (u32)p0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return c[i & 3];
}
LM_CLONES void lm_random_words(u32 *out, u64 seed, u64 offset, u64 first, i64 count);
#endif
