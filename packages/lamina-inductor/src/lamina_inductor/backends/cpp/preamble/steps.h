// Steps that are not kernels; products and convolutions are the host's (host.h).

///@ transpose
// to[b * pitch + a] = from[a * stride + b] for a < rows, b < columns. Four-byte elements go through registers, 8 x 8 at a time.
template <typename T> LM_NOINLINE void lm_transpose(T *__restrict to, i64 pitch, const T *__restrict from, i64 stride, i64 rows, i64 columns) {
    i64 whole_rows = 0, whole_columns = 0;
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX2__)
    typedef int v8 __attribute__((vector_size(32)));
    typedef int v8m __attribute__((vector_size(32), aligned(4), may_alias));
    if (sizeof(T) == 4) {
        whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
        for (i64 a = 0; a < whole_rows; a += 8) for (i64 b = 0; b < whole_columns; b += 8) {
            v8 r[8], t[8], u[8];
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) r[i] = *(const v8m *)(from + (a + i) * stride + b);
#pragma GCC unroll 4
            for (int i = 0; i < 8; i += 2) {
                t[i] = __builtin_shuffle(r[i], r[i + 1], (v8){0, 8, 1, 9, 4, 12, 5, 13});
                t[i + 1] = __builtin_shuffle(r[i], r[i + 1], (v8){2, 10, 3, 11, 6, 14, 7, 15});
            }
#pragma GCC unroll 2
            for (int i = 0; i < 8; i += 4) {
                u[i] = __builtin_shuffle(t[i], t[i + 2], (v8){0, 1, 8, 9, 4, 5, 12, 13});
                u[i + 1] = __builtin_shuffle(t[i], t[i + 2], (v8){2, 3, 10, 11, 6, 7, 14, 15});
                u[i + 2] = __builtin_shuffle(t[i + 1], t[i + 3], (v8){0, 1, 8, 9, 4, 5, 12, 13});
                u[i + 3] = __builtin_shuffle(t[i + 1], t[i + 3], (v8){2, 3, 10, 11, 6, 7, 14, 15});
            }
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                *(v8m *)(to + (b + i) * pitch + a) = __builtin_shuffle(u[i], u[i + 4], (v8){0, 1, 2, 3, 8, 9, 10, 11});
                *(v8m *)(to + (b + i + 4) * pitch + a) = __builtin_shuffle(u[i], u[i + 4], (v8){4, 5, 6, 7, 12, 13, 14, 15});
            }
        }
    }
#endif
    for (i64 a = 0; a < rows; ++a) for (i64 b = a < whole_rows ? whole_columns : 0; b < columns; ++b) to[b * pitch + a] = from[a * stride + b];
}

///@ stream
// to[0 .. bytes) = from, past the caches where the processor can; whole lines only.
LM_INLINE void lm_stream(void *to, const void *from, i64 bytes) {
    char *t = (char *)to;
    const char *f = (const char *)from;
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
    typedef float v16 __attribute__((vector_size(64)));
    typedef float v16m __attribute__((vector_size(64), aligned(1), may_alias));
    i64 head = (i64)(-(u64)t & 63);
    head = head < bytes ? head : bytes;
    if (head) __builtin_memcpy(t, f, (u64)head);
    for (t += head, f += head, bytes -= head; bytes >= 64; t += 64, f += 64, bytes -= 64) __builtin_ia32_movntps512((float *)t, *(const v16m *)f);
#endif
    if (bytes) __builtin_memcpy(t, f, (u64)bytes);
}
LM_INLINE void lm_stream_end() {
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
    __builtin_ia32_sfence();
#endif
}

///@ copy
// Dimensions that lie behind one another in both are one run.
template <typename T, int R> LM_NOINLINE void lm_copy(const T *from, T *to, const i64 *shape, const i64 *sf, const i64 *st) {
    i64 at[R] = {}, inner = shape[R - 1], f1 = sf[R - 1], t1 = st[R - 1];
    int outer = R - 1;
    for (int d = 0; d < R; ++d) if (shape[d] <= 0) return;
    for (; outer > 0; --outer) {
        const i64 size = shape[outer - 1];
        if (inner == 1) { f1 = sf[outer - 1], t1 = st[outer - 1]; }
        else if (size != 1 && (sf[outer - 1] != inner * f1 || st[outer - 1] != inner * t1)) break;
        inner *= size;
    }
    for (;;) {
        i64 f = 0, t = 0;
        for (int d = 0; d < outer; ++d) { f += at[d] * sf[d]; t += at[d] * st[d]; }
        if (f1 == 1 && t1 == 1) __builtin_memcpy(to + t, from + f, (u64)inner * sizeof(T));
        else for (i64 i = 0; i < inner; ++i) to[t + i * t1] = from[f + i * f1];
        int d = outer - 1;
        for (; d >= 0; --d) { if (++at[d] < shape[d]) break; at[d] = 0; }
        if (d < 0) return;
    }
}
