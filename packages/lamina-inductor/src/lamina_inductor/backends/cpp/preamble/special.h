// Special functions of generated kernels: scalar code in double, whatever the type; a float's result is the rounded one.

///@ logaddexp
template <typename T> LM_INLINE T lm_logaddexp(T a, T b) {
    T d = a - b;
    T smaller = d > 0 ? b - a : d;
    T sum = (d > 0 ? a : b) + lm_log1p(lm_exp(smaller));
    return a == b ? a + (T)0.69314718055994530942 : d != d ? d : sum; // equal infinities would differ by NaN
}

///@ erfcx
// exp(x * x) erfc(x). Below 5 from erfc, with the square split so that its rounding error does not count; above by the
// continued fraction of Laplace (Abramowitz and Stegun 7.1.14), whose 40 terms are exact from 5 on.
LM_NOINLINE f64 lm_erfcx(f64 x) {
    if (x < 5) {
        f64 square = x * x, rest = __builtin_fma(x, x, -square);
        if (x < -26.7) return x != x ? x : (f64)LM_INF;
        f64 grown = lm_exp(square);
        return (grown + grown * rest) * lm_erfc(x);
    }
    if (x != x) return x;
    f64 tail = x;
    for (int k = 40; k > 0; --k) tail = x + 0.5 * k / tail;
    return 0.56418958354775628695 / tail;
}
LM_INLINE f32 lm_erfcx(f32 x) { return (f32)lm_erfcx((f64)x); }

///@ ndtri
// The quantile of the normal distribution: y with erfc(y) = q for the smaller tail q / 2, by Halley's method from an
// asymptotic start (tails) or Winitzki's approximation.
LM_NOINLINE f64 lm_erfc_inverse(f64 q) {
    if (!(q < 1)) return 0;
    f64 l = lm_log(q * (2 - q)), h = 4.330746750799873 + l * 0.5;
    f64 y = __builtin_sqrt(__builtin_sqrt(h * h - l * 6.802721088435374) - h);
    if (q < 1e-3) {
        f64 w = -lm_log(q * 1.7724538509055159);
        y = __builtin_sqrt(w - 0.5 * lm_log(w));
    }
    for (int i = 0; i < 4; ++i) {
        f64 square = y * y, rest = __builtin_fma(y, y, -square), slope = 1.1283791670955126 * lm_exp(-square) * (1 - rest);
        f64 step = slope > 0 ? (lm_erfc(y) - q) / slope : 0;
        y += step / (1 - y * step);
    }
    return y;
}
LM_NOINLINE f64 lm_ndtri(f64 p) {
    f64 tail = p < 0.5 ? p : 1 - p;
    if (!(tail > 0)) return p == 0 ? -(f64)LM_INF : p == 1 ? (f64)LM_INF : (f64)LM_NAN;
    f64 y = 1.4142135623730951 * lm_erfc_inverse(2 * tail);
    return p < 0.5 ? -y : y;
}
LM_INLINE f32 lm_ndtri(f32 p) { return (f32)lm_ndtri((f64)p); }

///@ bessel
// exp(-|x|) I_n(x), n = 0 or 1: the power series up to 30 (all terms are positive), above Hankel's asymptotic series
// (Abramowitz and Stegun 9.6.10 and 9.7.1).
LM_NOINLINE f64 lm_scaled_bessel(f64 x, f64 order) {
    f64 size = __builtin_fabs(x), term = 1, sum = 1;
    if (size != size) return x;
    if (size <= 30) {
        f64 quarter = 0.25 * size * size;
        for (f64 k = 1; k < 200 && term > 1e-18 * sum; k += 1) { term *= quarter / (k * (k + order)); sum += term; }
        return sum * lm_exp(-size) * (order > 0 ? 0.5 * size : 1.0);
    }
    for (f64 k = 1; k < 20; k += 1) {
        term *= ((2 * k - 1) * (2 * k - 1) - 4 * order * order) / (8 * k * size);
        sum += term;
    }
    return size == (f64)LM_INF ? 0.0 : sum / __builtin_sqrt(6.28318530717958647693 * size);
}
LM_INLINE f64 lm_i0e(f64 x) { return lm_scaled_bessel(x, 0.0); }
LM_INLINE f32 lm_i0e(f32 x) { return (f32)lm_scaled_bessel((f64)x, 0.0); }
LM_INLINE f64 lm_i1e(f64 x) { return x != x ? x : __builtin_copysign(lm_scaled_bessel(x, 1.0), x); }
LM_INLINE f32 lm_i1e(f32 x) { return (f32)lm_i1e((f64)x); }

///@ zeta
// Hurwitz' zeta function: ten terms, then Euler's and Maclaurin's sum (Abramowitz and Stegun 23.2). Terms with a negative
// base come first, one by one.
LM_NOINLINE f64 lm_zeta(f64 s, f64 q) {
    if (!(s > 1)) return s == 1 ? (f64)LM_INF : (f64)LM_NAN;
    if (q <= 0 && q == __builtin_floor(q)) return (f64)LM_INF;
    f64 total = 0, factorial = 2;
    for (int k = 0; k < 1000 && q < 0; ++k, q += 1) total += lm_pow(q, -s);
    for (int k = 0; k < 10; ++k, q += 1) total += lm_pow(q, -s);
    f64 tail = lm_pow(q, -s), factor = s * tail / q;
    total += tail * q / (s - 1) + 0.5 * tail;
    const f64 bernoulli[9] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798};
    for (int k = 1; k <= 9; ++k) {
        total += factor * (bernoulli[k - 1] / factorial);
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (q * q);
        factorial *= (2 * k + 1) * (2 * k + 2);
    }
    return total;
}
LM_INLINE f32 lm_zeta(f32 s, f32 q) { return (f32)lm_zeta((f64)s, (f64)q); }
