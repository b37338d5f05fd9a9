// Complex numbers of generated kernels: pairs, without the rescaling of C's Annex G, as NumPy multiplies.

///@ complex
typedef struct { f32 re, im; } c64;
typedef struct { f64 re, im; } c128;

///@ complex_arithmetic
template <typename C> LM_INLINE C lm_cadd(C a, C b) { return {a.re + b.re, a.im + b.im}; }
template <typename C> LM_INLINE C lm_csub(C a, C b) { return {a.re - b.re, a.im - b.im}; }
template <typename C> LM_INLINE C lm_cmul(C a, C b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
template <typename C> LM_INLINE C lm_cneg(C a) { return {-a.re, -a.im}; }
template <typename C> LM_INLINE C lm_cconj(C a) { return {a.re, -a.im}; }
template <typename C> LM_INLINE bool lm_ceq(C a, C b) { return (a.re == b.re) & (a.im == b.im); }
template <typename C> LM_INLINE bool lm_ctrue(C a) { return (a.re != 0) | (a.im != 0); }
template <typename C> LM_INLINE bool lm_cfinite(C a) { return (a.re - a.re == 0) & (a.im - a.im == 0); }
template <typename C> LM_INLINE bool lm_cinf(C a) { return (a.re == LM_INF) | (a.re == -LM_INF) | (a.im == LM_INF) | (a.im == -LM_INF); }

///@ complex_division
// Smith's method: no overflow where the result does not.
template <typename C> LM_INLINE C lm_cdiv(C a, C b) {
    bool wide = (b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im);
    auto big = wide ? b.re : b.im;
    auto small = wide ? b.im : b.re;
    auto ratio = big == 0 ? big : small / big;
    auto scale = 1 / (big + small * ratio);
    auto re = wide ? a.re + a.im * ratio : a.re * ratio + a.im;
    auto im = wide ? a.im - a.re * ratio : a.im * ratio - a.re;
    return {re * scale, im * scale};
}

///@ complex_convert
template <typename C> LM_INLINE c64 lm_c64(C a) { return {(f32)a.re, (f32)a.im}; }
template <typename C> LM_INLINE c128 lm_c128(C a) { return {(f64)a.re, (f64)a.im}; }

///@ complex_abs
LM_INLINE f32 lm_cabs(c64 a) { return lm_hypot(a.re, a.im); }
LM_INLINE f64 lm_cabs(c128 a) { return lm_hypot(a.re, a.im); }

///@ complex_sign
template <typename C> LM_INLINE C lm_csign(C a) {
    auto r = lm_cabs(a);
    return r == 0 ? C{0, 0} : C{a.re / r, a.im / r};
}

///@ complex_exp
template <typename C> LM_INLINE C lm_cexp(C a) {
    auto r = lm_exp(a.re);
    return a.im == 0 ? C{r, a.im} : C{r * lm_cos(a.im), r * lm_sin(a.im)};
}

///@ complex_log
template <typename C> LM_INLINE C lm_clog(C a) { return {lm_log(lm_cabs(a)), lm_atan2(a.im, a.re)}; }

///@ complex_sqrt
LM_INLINE c128 lm_csqrt(c128 a) {
    f64 r = lm_hypot(a.re, a.im), t = __builtin_sqrt(0.5 * (r + __builtin_fabs(a.re)));
    f64 other = t == 0 ? 0.0 : __builtin_fabs(a.im) / (2 * t);
    return a.re >= 0 ? c128{t, __builtin_copysign(other, a.im)} : c128{other, __builtin_copysign(t, a.im)};
}
LM_INLINE c64 lm_csqrt(c64 a) { c128 r = lm_csqrt(c128{a.re, a.im}); return {(f32)r.re, (f32)r.im}; }

///@ complex_trigonometry
template <typename C> LM_INLINE C lm_csin(C a) { return {lm_sin(a.re) * lm_cosh(a.im), lm_cos(a.re) * lm_sinh(a.im)}; }
template <typename C> LM_INLINE C lm_ccos(C a) { return {lm_cos(a.re) * lm_cosh(a.im), -lm_sin(a.re) * lm_sinh(a.im)}; }
template <typename C> LM_INLINE C lm_ctanh(C a) {
    auto t = lm_tan(a.im);
    auto th = lm_tanh(a.re);
    return lm_cdiv(C{th, t}, C{1, th * t});
}
template <typename C> LM_INLINE C lm_csigmoid(C a) {
    C e = lm_cexp(lm_cneg(a));
    return lm_cdiv(C{1, 0}, C{1 + e.re, e.im});
}

///@ complex_pow
template <typename C> LM_INLINE C lm_cpow(C a, C b) {
    if (a.re == 0 && a.im == 0) return b.re == 0 && b.im == 0 ? C{1, 0} : C{0, 0};
    return lm_cexp(lm_cmul(b, lm_clog(a)));
}
