// Steps that are not kernels; products and convolutions are the host's (host.h).

///@ copy
template <typename T, int R> LM_NOINLINE void lm_copy(const T *from, T *to, const i64 *shape, const i64 *sf, const i64 *st) {
    i64 at[R] = {}, inner = shape[R - 1];
    for (int d = 0; d < R; ++d) if (shape[d] <= 0) return;
    for (;;) {
        i64 f = 0, t = 0;
        for (int d = 0; d < R - 1; ++d) { f += at[d] * sf[d]; t += at[d] * st[d]; }
        for (i64 i = 0; i < inner; ++i) to[t + i * st[R - 1]] = from[f + i * sf[R - 1]];
        int d = R - 2;
        for (; d >= 0; --d) { if (++at[d] < shape[d]) break; at[d] = 0; }
        if (d < 0) return;
    }
}
