// Gradients by query, key and value from the log-sum-exp (Dao et al. 2022, algorithm 4). Included as attention_vectors.h is, behind
// attention_tiles.h. A task has the keys [first, last) and looks at them with each block of its queries:
//
//   P = 2^(unit * (scores - lse)),  D = sum of grad_out * out - grad_lse,  dS = scale * P * (value . grad_out - D)
//   grad_value += P grad_out,  grad_key += dS query,  grad_query += dS^T key

// Scores beyond which find_sums is worth its product: a float's last digit is 5e-4 there.
#define LM_FAR(W) (sizeof(W) == 8 ? (W)1e9 : (W)4096)

template <typename W> struct backward_room {
    W *rows, *turned, *given, *given_turned, *out, *key, *value, *tile, *slope, *mask, *spare, *grad_query, *lse, *delta, *total, *grad_key, *grad_value;
    i64 wide; // queries of the block, rounded to whole vectors
    bool far; // are scores so large that their log-sum-exp has lost digits
};
template <typename W> LM_INLINE i64 backward_space(i64 width, i64 value_width, i64 keys) {
    return (LM_TILE * (4 * width + 4 * value_width + 4 * LM_TILE + 3) + keys * (width + value_width) + 64) * (i64)sizeof(W);
}
template <typename W> LM_FAST backward_room<W> backward_rooms(char *space, i64 width, i64 value_width, i64 keys) {
    W *p = (W *)(((u64)space + 63) / 64 * 64);
    const i64 t = LM_TILE;
    backward_room<W> r;
    r.rows = p, p += t * width, r.turned = p, p += t * width, r.key = p, p += t * width, r.grad_query = p, p += t * width;
    r.given = p, p += t * value_width, r.given_turned = p, p += t * value_width, r.out = p, p += t * value_width, r.value = p, p += t * value_width;
    r.tile = p, p += t * t, r.slope = p, p += t * t, r.mask = p, p += t * t, r.spare = p, p += t * t, r.lse = p, p += t, r.delta = p, p += t, r.total = p, p += t;
    r.grad_key = p, p += keys * width, r.grad_value = p, r.wide = 0, r.far = false;
    return r;
}
typedef struct { bool query, key, value; } backward_wants;

// The block of queries i0 ..: its rows, turned rows, log-sum-exp (in the base of the scores) and row sums.
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW void load_queries(const operands<T> &o, backward_room<W> &room, i64 i0, i64 queries) {
    const lm_attention_call *j = o.j;
    lm_matrix<T> query = o.query, given = lm_lead<T>(&j->grad_out, o.lead), out = lm_lead<T>(&j->out, o.lead);
    query.p += i0 * query.sr, given.p += i0 * given.sr, out.p += i0 * out.sr;
    load_rows(room.rows, o.width, room.wide, query, queries, j->width);
    load_rows(room.given, o.value_width, room.wide, given, queries, j->value_width);
    load_rows(room.out, o.value_width, room.wide, out, queries, j->value_width);
    turn<W>(room.turned, LM_TILE, room.rows, o.width, room.wide, o.width, o.query_factor);
    turn<W>(room.given_turned, LM_TILE, room.given, o.value_width, room.wide, o.value_width, 1);
    const lm_matrix<W> lse = lm_lead<W>(&j->lse, o.lead), grad_lse = lm_lead<W>(&j->grad_lse, o.lead);
    const W base = o.unit == 1 ? (W)1.44269504088896340736 : (W)1;
    room.far = false;
    for (i64 l = 0; l < room.wide; ++l) {
        W sum = 0;
#pragma omp simd reduction(+ : sum)
        for (i64 e = 0; e < o.value_width; ++e) sum += room.given[l * o.value_width + e] * room.out[l * o.value_width + e];
        if (j->grad_lse.p && l < queries) sum -= grad_lse.p[(i0 + l) * grad_lse.sr];
        room.delta[l] = sum;
        W x = l < queries ? lse.p[(i0 + l) * lse.sr] * base : (W)INFINITY; // behind the last query: 2^-inf
        room.lse[l] = j->mask_kind && x == -(W)INFINITY ? 0 : x;
        const W size = x < 0 ? -x : x;
        const bool far = l < queries && size > LM_FAR(W) && size < (W)INFINITY;
        room.far |= far, room.total[l] = far ? (W)0 : (W)-1;
        if (far) room.lse[l] = -(W)INFINITY;
    }
}
// In a row of large scores (all masked by the lowest number, say) the sum is lost in log-sum-exp = largest + log(sum), and a score
// may differ from the forward's by more than 1. There the maximum and the sum are found again, from the scores of this pass.
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW void find_sums(const operands<T> &o, const backward_room<W> &room, i64 i0, i64 queries) {
    const lm_attention_call *j = o.j;
    const i64 last = j->causal && i0 + queries < j->keys ? i0 + queries : j->keys;
    for (i64 j0 = 0; j0 < last; j0 += LM_TILE) {
        const i64 keys = last - j0 < LM_TILE ? last - j0 : LM_TILE;
        const bool diagonal = j->causal && j0 == i0;
        i64 ldk;
        const W *key = rows_of(o.key, j0, keys, j->width, o.width, true, room.key, &ldk);
        scores<W>(room.tile, room.turned, key, ldk, j->width, room.wide, keys, diagonal);
        if (j->mask_kind && !apply_mask(o, room.tile, room.mask, room.spare, i0, queries, j0, keys)) continue;
        for (i64 l = 0; l < queries; ++l) {
            if (room.total[l] < 0) continue; // not large
            const i64 used = diagonal && l < keys ? l + 1 : keys;
            W top = room.lse[l], sum = 0;
            for (i64 s = 0; s < used; ++s) top = room.tile[s * LM_TILE + l] > top ? room.tile[s * LM_TILE + l] : top;
            if (top == -(W)INFINITY) continue;
            for (i64 s = 0; s < used; ++s) sum += (W)__builtin_exp2((f64)((room.tile[s * LM_TILE + l] - top) * o.unit));
            room.total[l] = room.total[l] * (W)__builtin_exp2((f64)((room.lse[l] - top) * o.unit)) + sum;
            room.lse[l] = top;
        }
    }
    for (i64 l = 0; l < room.wide; ++l) room.total[l] = room.total[l] < 0 ? (W)1 : 1 / room.total[l];
}
// Scores become probabilities.
template <typename W> LM_SLOW void probabilities(const backward_room<W> &room, i64 keys, bool diagonal, W unit) {
    constexpr i64 N = lanes<W>::count;
    typename lanes<W>::ints number;
    for (int i = 0; i < N; ++i) number[i] = i;
    for (i64 v = 0; v < room.wide; v += N) {
        const LM_VEC(W) lse = load(room.lse + v);
        const i64 whole = diagonal ? v < keys ? v : keys : keys, used = diagonal ? v + N < keys ? v + N : keys : keys;
        for (i64 s = 0; s < used; ++s) {
            W *at = room.tile + s * LM_TILE + v;
            const LM_VEC(W) y = exp2<W>((load(at) - lse) * unit);
            store(at, s < whole ? y : number < spread_int<W>(s - v) ? LM_VEC(W){} : y);
        }
    }
}
// `slope` holds value . grad_out and becomes the scores' gradient.
template <typename W> LM_SLOW void slopes(const backward_room<W> &room, i64 keys, bool diagonal, const W *kept, W scale) {
    constexpr i64 N = lanes<W>::count;
    for (i64 v = 0; v < room.wide; v += N) {
        const LM_VEC(W) delta = load(room.delta + v);
        const i64 used = diagonal ? v + N < keys ? v + N : keys : keys;
        for (i64 s = 0; s < used; ++s) {
            const i64 at = s * LM_TILE + v;
            LM_VEC(W) p = load(room.tile + at), x = load(room.slope + at);
            if (kept) { const LM_VEC(W) k = load(kept + at); x *= k; store(room.tile + at, p * k); }
            store(room.slope + at, p * (x - delta) * scale);
        }
    }
}
// The three products behind a tile, of keys j0 .. that begin at row `at` of the accumulators.
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW void add_gradients(const operands<T> &o, const backward_room<W> &room, const W *key, i64 ldk, i64 at, i64 keys, bool diagonal, bool first, backward_wants wants) {
    constexpr i64 N = lanes<W>::count;
    const i64 slice = diagonal ? N : keys, w = o.width, wv = o.value_width;
    for (i64 s = 0; s < keys; s += slice) {
        const i64 n = keys - s < slice ? keys - s : slice, from = diagonal ? s : 0, k = room.wide - from, tile = s * LM_TILE + from;
        if (wants.value) product<W>(n, wv, k, room.tile + tile, LM_TILE, 1, room.given + from * wv, wv, room.grad_value + (at + s) * wv, wv, 1);
        if (wants.key) product<W>(n, w, k, room.slope + tile, LM_TILE, 1, room.rows + from * w, w, room.grad_key + (at + s) * w, w, 1);
        if (wants.query) product<W>(k, w, n, room.slope + tile, 1, LM_TILE, key + s * ldk, ldk, room.grad_query + from * w, w, first && !s ? 0 : 1);
    }
}
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW void backward_queries(const operands<T> &o, backward_room<W> room, i64 i0, i64 first, i64 last, bool add, backward_wants wants) {
    const lm_attention_call *j = o.j;
    const i64 queries = j->queries - i0 < LM_TILE ? j->queries - i0 : LM_TILE;
    if (j->causal && i0 + queries < last) last = i0 + queries;
    if (first >= last && !wants.query) return;
    room.wide = lm_rounded(queries, lanes<W>::count);
    load_queries(o, room, i0, queries);
    if (room.far) find_sums(o, room, i0, queries);
    for (i64 i = 0; i < room.wide * o.width; ++i) room.grad_query[i] = 0;
    bool begun = false;
    for (i64 j0 = first; j0 < last; j0 += LM_TILE) {
        const i64 keys = last - j0 < LM_TILE ? last - j0 : LM_TILE;
        const bool diagonal = j->causal && j0 == i0;
        i64 ldk, ldv;
        const W *key = rows_of(o.key, j0, keys, j->width, o.width, true, room.key, &ldk);
        const W *value = rows_of(o.value, j0, keys, j->value_width, o.value_width, false, room.value, &ldv);
        scores<W>(room.tile, room.turned, key, ldk, j->width, room.wide, keys, diagonal);
        if (j->mask_kind && !apply_mask(o, room.tile, room.mask, room.spare, i0, queries, j0, keys)) continue;
        probabilities(room, keys, diagonal, o.unit);
        if (room.far)
            for (i64 s = 0; s < keys; ++s) for (i64 l = 0; l < room.wide; ++l) room.tile[s * LM_TILE + l] *= room.total[l];
        scores<W>(room.slope, room.given_turned, value, ldv, j->value_width, room.wide, keys, diagonal);
        if (j->state) load_kept(room.mask, room.spare, j, random_index(o, i0, j0), queries, keys);
        slopes<W>(room, keys, diagonal, j->state ? room.mask : nullptr, (W)j->scale);
        add_gradients(o, room, key, ldk, j0 - first, keys, diagonal, !begun, wants);
        begun = true;
    }
    if (!wants.query) return;
    lm_matrix<T> target = lm_lead<T>(&j->grad_query, o.lead);
    target.p += i0 * target.sr;
    store_rows(target, room.grad_query, o.width, queries, j->width, add);
}

template <typename T> LM_SLOW void clear(const lm_attention_operand *target, const i64 *lead, i64 first, i64 last, i64 width) {
    lm_matrix<T> m = lm_lead<T>(target, lead);
    for (i64 r = first; r < last; ++r) for (i64 c = 0; c < width; ++c) lm_narrow(m.p + r * m.sr + c * m.sc, (typename lm_blas_type<T>::wide)0);
}
// What a task accumulated of keys goes to their gradients.
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW void store_keys(const operands<T> &o, const backward_room<W> &room, i64 first, i64 last, bool add, backward_wants wants) {
    const lm_attention_call *j = o.j;
    if (wants.key) {
        lm_matrix<T> m = lm_lead<T>(&j->grad_key, o.lead);
        m.p += first * m.sr;
        store_rows(m, room.grad_key, o.width, last - first, j->width, add);
    }
    if (wants.value) {
        lm_matrix<T> m = lm_lead<T>(&j->grad_value, o.lead);
        m.p += first * m.sr;
        store_rows(m, room.grad_value, o.value_width, last - first, j->value_width, add);
    }
}
// All matrices of a task (several where gradients are summed over them), queries [q0, q1), keys [k0, k1).
template <typename T> LM_SLOW void backward_task(const lm_attention_job *job, i64 n, i64 q0, i64 q1, i64 k0, i64 k1, backward_wants wants, char *space) {
    typedef typename lm_blas_type<T>::wide W;
    const lm_attention_call *j = job->call;
    const bool add = job->together > 1;
    i64 lead[3];
    for (i64 t = 0; add && t < job->together; ++t) {
        lm_attention_lead(job, n, t, lead);
        if (wants.query) clear<T>(&j->grad_query, lead, q0, q1, j->width);
        if (wants.key) clear<T>(&j->grad_key, lead, k0, k1, j->width);
        if (wants.value) clear<T>(&j->grad_value, lead, k0, k1, j->value_width);
    }
    backward_room<W> room;
    for (i64 t = 0; t < job->together; ++t) {
        lm_attention_lead(job, n, t, lead);
        const operands<T> o = operands_at<T>(j, lead[0], lead[1], lead[2]);
        if (t == 0 || !job->keys_stay) {
            room = backward_rooms<W>(space, o.width, o.value_width, k1 - k0);
            for (i64 i = 0; i < (k1 - k0) * (o.width + o.value_width); ++i) room.grad_key[i] = 0;
            room.grad_value = room.grad_key + (k1 - k0) * o.width;
        }
        const i64 start = j->causal && k0 > q0 ? k0 / LM_TILE * LM_TILE : q0;
        for (i64 i0 = wants.query ? q0 : start; i0 < q1; i0 += LM_TILE) backward_queries(o, room, i0, k0, k1, add, wants);
        if (t == job->together - 1 || !job->keys_stay) store_keys(o, room, k0, k1, add, wants);
    }
}
template <typename T> void backward_tasks(void *context, i64 begin, i64 end) {
    typedef typename lm_blas_type<T>::wide W;
    const lm_attention_job *job = (const lm_attention_job *)context;
    const lm_attention_call *j = job->call;
    const i64 n = lanes<W>::count, span = job->split == 1 ? LM_TILE : j->keys;
    char *space = (char *)job->host->scratch(backward_space<W>(lm_rounded(j->width, n), lm_rounded(j->value_width, n), span));
    const backward_wants wants = {j->grad_query.p && job->split != 1, j->grad_key.p && job->split != 2, j->grad_value.p && job->split != 2};
    for (i64 t = begin; t < end; ++t) {
        const i64 at = t / job->blocks, block = t % job->blocks * LM_TILE;
        const i64 q0 = job->split == 2 ? block : 0, q1 = job->split == 2 && block + LM_TILE < j->queries ? block + LM_TILE : j->queries;
        const i64 k0 = job->split == 1 ? block : 0, k1 = job->split == 1 && block + LM_TILE < j->keys ? block + LM_TILE : j->keys;
        backward_task<T>(job, at, q0, q1, k0, k1, wants, space);
    }
}
