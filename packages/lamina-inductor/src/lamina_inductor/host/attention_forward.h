// A block of queries against all keys with an online softmax (Milakov and Gimelshein 2018; Dao et al. 2022). Included as
// attention_vectors.h is, behind attention_tiles.h.

template <typename W> struct forward_room {
    W *rows, *turned, *tile, *out, *key, *value, *mask, *spare, *largest, *total, *factor;
    i64 wide; // queries of the block, rounded to whole vectors
};
template <typename W> LM_INLINE i64 forward_space(i64 width, i64 value_width) {
    const i64 wide = width > value_width ? width : value_width;
    return (LM_TILE * (wide + 2 * width + 2 * value_width + 3 * LM_TILE + 3) + 64) * (i64)sizeof(W);
}
template <typename W> LM_FAST forward_room<W> forward_rooms(char *space, i64 width, i64 value_width, i64 queries) {
    W *p = (W *)(((u64)space + 63) / 64 * 64);
    const i64 wide = width > value_width ? width : value_width, t = LM_TILE;
    forward_room<W> r;
    r.rows = p, p += t * wide, r.turned = p, p += t * width, r.key = p, p += t * width, r.value = p, p += t * value_width, r.out = p, p += t * value_width;
    r.tile = p, p += t * t, r.mask = p, p += t * t, r.spare = p, p += t * t, r.largest = p, p += t, r.total = p, p += t, r.factor = p, r.wide = lm_rounded(queries, lanes<W>::count);
    return r;
}

// Scores of the tile become exp(score - largest); `largest` and `total` of each query go on, `factor` is what rescales what was before.
template <typename W> LM_SLOW void softmax_tile(const forward_room<W> &room, i64 keys, bool diagonal, W unit) {
    constexpr i64 N = lanes<W>::count;
    typename lanes<W>::ints number;
    for (int i = 0; i < N; ++i) number[i] = i;
    for (i64 v = 0; v < room.wide; v += N) {
        const LM_VEC(W) before = load(room.largest + v), lowest = spread<W>(-INFINITY);
        const i64 whole = diagonal ? v < keys ? v : keys : keys; // keys that all queries of the vector see
        const i64 used = diagonal ? v + N < keys ? v + N : keys : keys;
        LM_VEC(W) top = before, sum = {};
        for (i64 s = 0; s < used; ++s) {
            W *at = room.tile + s * LM_TILE + v;
            LM_VEC(W) x = load(at);
            if (s >= whole) { x = number < spread_int<W>(s - v) ? lowest : x; store(at, x); }
            top = x > top ? x : top;
        }
        const LM_VEC(W) safe = top == lowest ? LM_VEC(W){} : top;
        for (i64 s = 0; s < used; ++s) {
            W *at = room.tile + s * LM_TILE + v;
            const LM_VEC(W) y = exp2<W>((load(at) - safe) * unit);
            sum += y;
            store(at, y);
        }
        const LM_VEC(W) factor = exp2<W>((before - safe) * unit);
        store(room.largest + v, top);
        store(room.factor + v, factor);
        store(room.total + v, load(room.total + v) * factor + sum);
    }
}
// out [value width][queries] = out * factor + values^T tile
template <typename W> LM_FAST void add_values(const forward_room<W> &room, const W *value, i64 ldv, i64 width, i64 keys, bool diagonal, bool first) {
    constexpr i64 N = lanes<W>::count;
    if (!diagonal) return product<W>(width, room.wide, keys, value, 1, ldv, room.tile, LM_TILE, room.out, LM_TILE, first ? 0 : 2, room.factor);
    for (i64 s = 0; s < keys; s += N)
        product<W>(width, room.wide - s, keys - s < N ? keys - s : N, value + s * ldv, 1, ldv, room.tile + s * LM_TILE + s, LM_TILE, room.out + s, LM_TILE,
                   s ? 1 : first ? 0 : 2, room.factor);
}
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW void finish_queries(const operands<T> &o, const forward_room<W> &room, i64 i0, i64 queries) {
    constexpr i64 N = lanes<W>::count;
    const lm_attention_call *j = o.j;
    for (i64 v = 0; v < room.wide; v += N) { // without a mask a row of nothing but -inf is NaN, as in eager; one of no keys is 0
        const LM_VEC(W) total = load(room.total + v), one = spread<W>(1);
        store(room.factor + v, one / (!j->mask_kind && j->keys ? total : total == LM_VEC(W){} ? one : total));
    }
    for (i64 e = 0; e < j->value_width; ++e)
        for (i64 v = 0; v < room.wide; v += N) store(room.out + e * LM_TILE + v, load(room.out + e * LM_TILE + v) * load(room.factor + v));
    turn<W>(room.rows, o.value_width, room.out, LM_TILE, o.value_width, room.wide, 1);
    lm_matrix<T> out = lm_lead<T>(&j->out, o.lead);
    out.p += i0 * out.sr;
    store_rows(out, room.rows, o.value_width, queries, j->value_width, false);
    if (!j->lse.p) return;
    lm_matrix<W> lse = lm_lead<W>(&j->lse, o.lead);
    const W base = o.unit == 1 ? (W)0.693147180559945309417 : (W)1;
    for (i64 l = 0; l < queries; ++l) {
        const W top = room.largest[l] == -INFINITY ? 0 : room.largest[l] * base;
        lse.p[(i0 + l) * lse.sr] = top + (W)log((f64)room.total[l]);
    }
}
// One block of queries.
template <typename T> LM_SLOW void forward_block(const lm_attention_call *j, i64 b, i64 h, i64 g, i64 i0, char *space) {
    typedef typename lm_blas_type<T>::wide W;
    const operands<T> o = operands_at<T>(j, b, h, g);
    const i64 queries = j->queries - i0 < LM_TILE ? j->queries - i0 : LM_TILE;
    const forward_room<W> room = forward_rooms<W>(space, o.width, o.value_width, queries);
    lm_matrix<T> query = o.query;
    query.p += i0 * query.sr;
    load_rows(room.rows, o.width, room.wide, query, queries, j->width);
    turn<W>(room.turned, LM_TILE, room.rows, o.width, room.wide, o.width, o.query_factor);
    for (i64 l = 0; l < room.wide; ++l) room.largest[l] = -INFINITY, room.total[l] = 0;
    for (i64 e = 0; e < o.value_width; ++e) for (i64 l = 0; l < room.wide; ++l) room.out[e * LM_TILE + l] = 0;
    const i64 last = j->causal && i0 + queries < j->keys ? i0 + queries : j->keys;
    bool first = true;
    for (i64 j0 = 0; j0 < last; j0 += LM_TILE) {
        const i64 keys = last - j0 < LM_TILE ? last - j0 : LM_TILE;
        const bool diagonal = j->causal && j0 == i0;
        i64 ldk, ldv;
        const W *key = rows_of(o.key, j0, keys, j->width, o.width, false, room.key, &ldk);
        const W *value = rows_of(o.value, j0, keys, j->value_width, o.value_width, false, room.value, &ldv);
        scores<W>(room.tile, room.turned, key, ldk, j->width, room.wide, keys, diagonal);
        if (j->mask_kind && !apply_mask(o, room.tile, room.mask, room.spare, i0, queries, j0, keys)) continue;
        softmax_tile(room, keys, diagonal, o.unit);
        if (j->state) {
            load_kept(room.mask, room.spare, j, random_index(o, i0, j0), queries, keys);
            multiply(room.tile, room.mask, room.wide, keys);
        }
        add_values<W>(room, value, ldv, j->value_width, keys, diagonal, first);
        first = false;
    }
    finish_queries(o, room, i0, queries);
}
template <typename T> void forward_tasks(void *context, i64 begin, i64 end) {
    typedef typename lm_blas_type<T>::wide W;
    const lm_attention_job *job = (const lm_attention_job *)context;
    const lm_attention_call *j = job->call;
    const i64 blocks = lm_ceil_div(j->queries, LM_TILE);
    char *space = (char *)job->host->scratch(forward_space<W>(lm_rounded(j->width, lanes<W>::count), lm_rounded(j->value_width, lanes<W>::count)));
    for (i64 t = begin; t < end; ++t) {
        const i64 n = t / blocks, i0 = t % blocks * LM_TILE;
        forward_block<T>(j, n / (j->lead[1] * j->lead[2]), n / j->lead[2] % j->lead[1], n % j->lead[2], i0, space);
    }
}
