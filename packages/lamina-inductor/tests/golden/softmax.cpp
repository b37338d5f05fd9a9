static __attribute__((noinline)) void k0_softmax_p0(void *context, i64 begin, i64 end) {
    const lm_call *call = (const lm_call *)context;
    const f32 *__restrict arg0 = (const f32 *)call->p[0];
    f32 *__restrict out0 = (f32 *)call->p[1];
    for (i64 r = begin; r < end; ++r) {
        alignas(64) f32 t[4096];
        f32 m = -LM_INF;
        i32 m_nan = m != m;
        #pragma omp simd reduction(LM_GREATEST:m) reduction(|:m_nan)
        for (i64 c = 0; c < 53; ++c) {
            const f32 x = arg0[c + 53*r];
            m = x > m ? x : m;
            m_nan |= x != x;
        }
        m = m_nan ? LM_NAN : m;
        f32 s = 0.0f;
        #pragma omp simd reduction(+:s)
        for (i64 c1 = 0; c1 < 53; ++c1) {
            const f32 y = arg0[c1 + 53*r];
            const f32 d = y - m;
            const f32 e = lm_exp(d);
            t[c1] = e;
            s = s + e;
        }
        #pragma omp simd
        for (i64 c2 = 0; c2 < 53; ++c2) {
            const f32 z = t[c2];
            const f32 q = z / s;
            out0[c2 + 53*r] = q;
        }
    }
}
