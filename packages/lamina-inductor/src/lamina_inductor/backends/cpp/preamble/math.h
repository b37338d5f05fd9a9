// Elementary functions of generated kernels, for float and double, all free of branches where a loop over them should
// vectorise. With LM_LIBMVEC the C library's vector versions are used (at most 4 ULP); the attribute makes GCC call them
// without -ffast-math. Where libmvec is slow or absent the polynomials here take over; tests measure every one.

///@ libm
#ifdef LM_LIBMVEC
#define LM_SIMD __attribute__((simd("notinbranch"), const, nothrow, leaf))
#else
#define LM_SIMD __attribute__((const, nothrow, leaf))
#endif
#define LM_PROTO1(name) extern "C" { LM_SIMD f32 name##f(f32); LM_SIMD f64 name(f64); }
#define LM_PROTO2(name) extern "C" { LM_SIMD f32 name##f(f32, f32); LM_SIMD f64 name(f64, f64); }
#define LM_SCALAR1(name) extern "C" { __attribute__((const, nothrow, leaf)) f32 name##f(f32); __attribute__((const, nothrow, leaf)) f64 name(f64); }
#define LM_SCALAR2(name) extern "C" { __attribute__((const, nothrow, leaf)) f32 name##f(f32, f32); __attribute__((const, nothrow, leaf)) f64 name(f64, f64); }
#define LM_UNARY(proto, name) proto(name) LM_INLINE f32 lm_##name(f32 x) { return name##f(x); } LM_INLINE f64 lm_##name(f64 x) { return name(x); }
#define LM_BINARY(proto, name) proto(name) LM_INLINE f32 lm_##name(f32 x, f32 y) { return name##f(x, y); } LM_INLINE f64 lm_##name(f64 x, f64 y) { return name(x, y); }

///@ fast_exp
// exp on float: x = n ln2 + r, polynomial of degree 6 in r, scaled in two steps so that subnormal results are right.
// Inlined, so a loop keeps its values in registers across it; at most 1 ULP.
LM_INLINE f32 lm_exp_core(f32 x) {
    f32 n = __builtin_rintf(x * 1.44269504f);
    f32 r = __builtin_fmaf(n, -0.693359375f, x);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    f32 p = 0.0013813142431899905f;
    p = __builtin_fmaf(p, r, 0.008369418792426586f);
    p = __builtin_fmaf(p, r, 0.04166845604777336f);
    p = __builtin_fmaf(p, r, 0.16666515171527863f);
    p = __builtin_fmaf(p, r, 0.4999999403953552f);
    p = __builtin_fmaf(p * r, r, r) + 1.0f;
    i32 i = (i32)n, half = i >> 1;
    return p * lm_bits_f32((u32)(half + 127) << 23) * lm_bits_f32((u32)(i - half + 127) << 23);
}
LM_INLINE f32 lm_exp_small(f32 x) {
    // For x <= 0 (softmax, sigmoid): one scaling; below 2^-126 the result is flushed to zero.
    f32 c = x < -87.33f ? -87.33f : x;
    f32 n = __builtin_rintf(c * 1.44269504f);
    f32 r = __builtin_fmaf(n, -0.693359375f, c);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    f32 p = 0.0013813142431899905f;
    p = __builtin_fmaf(p, r, 0.008369418792426586f);
    p = __builtin_fmaf(p, r, 0.04166845604777336f);
    p = __builtin_fmaf(p, r, 0.16666515171527863f);
    p = __builtin_fmaf(p, r, 0.4999999403953552f);
    p = __builtin_fmaf(p * r, r, r) + 1.0f;
    return p * lm_bits_f32((u32)((i32)n + 127) << 23);
}
LM_INLINE f32 lm_exp_own(f32 x) {
    f32 c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    return lm_exp_core(c);
}

///@ exp
LM_PROTO1(exp)
LM_INLINE f64 lm_exp(f64 x) { return exp(x); }
LM_INLINE f32 lm_exp(f32 x) { return lm_exp_own(x); }

///@ erf
// Below 1 an odd polynomial, above 1 - exp(-t q(t)); at most 1 ULP. libmvec's erff takes twice the time.
LM_PROTO1(erf)
LM_INLINE f64 lm_erf(f64 x) { return erf(x); }
LM_INLINE f32 lm_erf(f32 x) {
    f32 t = __builtin_fabsf(x), s = x * x;
    f32 p = 7.853857823647559e-05f;
    p = __builtin_fmaf(p, s, -0.0008010192541405559f);
    p = __builtin_fmaf(p, s, 0.005188327748328447f);
    p = __builtin_fmaf(p, s, -0.026853810995817184f);
    p = __builtin_fmaf(p, s, 0.1128358542919159f);
    p = __builtin_fmaf(p, s, -0.3761262595653534f);
    p = __builtin_fmaf(p, s, 1.1283791065216064f) * x;
    f32 c = t > 4.0f ? 4.0f : t;
    f32 q = 1.2339525710558519e-05f;
    q = __builtin_fmaf(q, c, -0.0003339609829708934f);
    q = __builtin_fmaf(q, c, 0.003688111202791333f);
    q = __builtin_fmaf(q, c, -0.023859279230237007f);
    q = __builtin_fmaf(q, c, 0.10635057091712952f);
    q = __builtin_fmaf(q, c, 0.6350820064544678f);
    q = __builtin_fmaf(q, c, 1.1286656856536865f);
    f32 big = __builtin_copysignf(1.0f - lm_exp_small(-(c * q)), x);
    return t < 1.0f || x != x ? p : big;
}
