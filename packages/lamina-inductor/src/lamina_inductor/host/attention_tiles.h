// What forward and backward share: a tile's operands, mask and dropout. Included as attention_vectors.h is, behind it.
//
// Scores are kept turned, [keys][queries]: a query's maximum and sum are then lanes of a vector, keys and values are read
// where they lie, and only the queries of a task are turned.

// Rows of keys or values [0, n) of a tile: in place where they are wide already, else converted into `room`. `ld` is their distance.
template <typename T, typename W> LM_FAST const W *rows_of(lm_matrix<T> m, i64 first, i64 n, i64 cols, i64 padded, bool pad, W *room, i64 *ld) {
    m.p += first * m.sr;
    if (sizeof(T) == sizeof(W) && m.sc == 1 && !(pad && padded != cols)) { *ld = m.sr; return (const W *)m.p; }
    load_rows(room, padded, n, m, n, cols);
    *ld = padded;
    return room;
}
// The tile of a mask, turned; a bool's elements become 1 and 0. Returns whether a bool lets nothing (0), all (2) or some (1) take part.
template <typename M, typename W> LM_SLOW int load_mask(W *to, W *room, lm_matrix<M> m, i64 queries, i64 keys) {
    constexpr i64 N = lanes<W>::count;
    int some = 0, all = 1;
    const i64 rows = m.sr ? queries : 1, wide = lm_rounded(queries, N), padded = lm_rounded(keys, N);
    for (i64 l = 0; l < rows; ++l) {
        const M *row = m.p + l * m.sr;
        W *at = room + l * LM_TILE;
        if (m.sc == 1) {
#pragma omp simd reduction(| : some) reduction(& : all)
            for (i64 s = 0; s < keys; ++s) at[s] = (W)row[s], some |= row[s] != 0, all &= row[s] != 0;
        } else for (i64 s = 0; s < keys; ++s) at[s] = (W)row[s * m.sc], some |= at[s] != 0, all &= at[s] != 0;
        for (i64 s = keys; s < padded; ++s) at[s] = 0;
    }
    if (!m.sr) { // one row for all queries
        for (i64 s = 0; s < keys; ++s) for (i64 v = 0; v < wide; v += N) store(to + s * LM_TILE + v, spread(room[s]));
        return all ? 2 : some;
    }
    for (i64 l = queries; l < wide; ++l) for (i64 s = 0; s < padded; ++s) room[l * LM_TILE + s] = 1;
    turn<W>(to, LM_TILE, room, LM_TILE, wide, padded, 1);
    return all ? 2 : some;
}
// Dropout's factors of a tile, turned: 0, or 1 / (1 - p). `index`: of the element of the first query and key.
template <typename W> LM_SLOW void load_kept(W *to, W *room, const lm_attention_call *j, i64 index, i64 queries, i64 keys) {
    constexpr i64 N = lanes<W>::count;
    u32 words[LM_TILE + 64];
    const W factor = (W)(f32)(1.0 / (1.0 - j->dropout));
    const f64 limit = rint(j->dropout * 4294967296.0);
    const u32 least = limit >= 4294967296.0 ? 0xffffffffu : (u32)limit;
    const i64 wide = lm_rounded(queries, N), padded = lm_rounded(keys, N);
    for (i64 l = 0; l < wide; ++l) {
        W *at = room + l * LM_TILE;
        const u64 first = (u64)(index + l * j->keys);
        const bool drawn = l < queries && limit < 4294967296.0;
        if (drawn) random_words(words, (u64)j->state[0], (u64)j->state[1], first >> 2, (i64)((first & 3) + (u64)keys + 3) >> 2);
        const u32 *word = words + (first & 3);
        for (i64 s = 0; s < keys; ++s) at[s] = drawn && word[s] >= least ? factor : (W)0;
        for (i64 s = keys; s < padded; ++s) at[s] = 0;
    }
    turn<W>(to, LM_TILE, room, LM_TILE, wide, padded, 1);
}

template <typename T> struct operands {
    typedef typename lm_blas_type<T>::wide W;
    const lm_attention_call *j;
    i64 lead[3];
    lm_matrix<T> query, key, value;
    i64 width, value_width; // rounded to whole vectors
    W query_factor, unit;   // scores = query_factor * query . key; exp(score) = 2^(unit * score)
};
template <typename T> LM_FAST operands<T> operands_at(const lm_attention_call *j, i64 b, i64 h, i64 g) {
    typedef typename lm_blas_type<T>::wide W;
    constexpr i64 N = lanes<W>::count;
    operands<T> o = {j, {b, h, g}, {}, {}, {}, lm_rounded(j->width, N), lm_rounded(j->value_width, N), 0, 0};
    o.query = lm_lead<T>(&j->query, o.lead), o.key = lm_lead<T>(&j->key, o.lead), o.value = lm_lead<T>(&j->value, o.lead);
    // A mask that is added may hold the lowest number there is: the maximum is taken off before the change of base.
    const bool natural = j->mask_kind == 2;
    o.query_factor = (W)(natural ? j->scale : j->scale * 1.44269504088896340736);
    o.unit = natural ? (W)1.44269504088896340736 : (W)1;
    return o;
}
// Scores [keys j0 ..][queries i0 .., `wide` with their padding] from turned queries. On the diagonal, vectors of queries before the keys are left out.
template <typename W> LM_FAST void scores(W *to, const W *turned, const W *key, i64 ldk, i64 width, i64 wide, i64 keys, bool diagonal) {
    constexpr i64 N = lanes<W>::count;
    if (!diagonal) return product<W>(keys, wide, width, key, ldk, 1, turned, LM_TILE, to, LM_TILE, 0);
    for (i64 s = 0; s < keys; s += N)
        product<W>(keys - s < N ? keys - s : N, wide - s, width, key + s * ldk, ldk, 1, turned + s, LM_TILE, to + s * LM_TILE + s, LM_TILE, 0);
}
// What a mask does to a tile of scores. Returns false where no key takes part.
template <typename T, typename W = typename lm_blas_type<T>::wide>
LM_SLOW bool apply_mask(const operands<T> &o, W *tile, W *mask, W *room, i64 i0, i64 queries, i64 j0, i64 keys) {
    constexpr i64 N = lanes<W>::count;
    const lm_attention_call *j = o.j;
    const i64 wide = lm_rounded(queries, N);
    if (j->mask_kind == 1) {
        lm_matrix<u8> m = lm_lead<u8>(&j->mask, o.lead);
        m.p += i0 * m.sr + j0 * m.sc;
        const int part = load_mask(mask, room, m, queries, keys);
        if (part != 1) return part;
        for (i64 s = 0; s < keys; ++s) for (i64 i = s * LM_TILE; i < s * LM_TILE + wide; i += N)
            store(tile + i, load(mask + i) == spread<W>(0) ? spread<W>(-INFINITY) : load(tile + i));
    } else if (j->mask_kind == 2) {
        lm_matrix<W> m = lm_lead<W>(&j->mask, o.lead);
        m.p += i0 * m.sr + j0 * m.sc;
        load_mask(mask, room, m, queries, keys);
        for (i64 s = 0; s < keys; ++s) for (i64 i = s * LM_TILE; i < s * LM_TILE + wide; i += N) store(tile + i, load(tile + i) + load(mask + i));
    }
    return true;
}
template <typename W> LM_FAST void multiply(W *tile, const W *by, i64 wide, i64 keys) {
    for (i64 s = 0; s < keys; ++s)
        for (i64 i = s * LM_TILE; i < s * LM_TILE + wide; i += lanes<W>::count) store(tile + i, load(tile + i) * load(by + i));
}
template <typename T> LM_FAST i64 random_index(const operands<T> &o, i64 i0, i64 j0) {
    const lm_attention_call *j = o.j;
    return ((((o.lead[0] * j->lead[1] + o.lead[1]) * j->lead[2] + o.lead[2]) * j->queries) + i0) * j->keys + j0;
}
