/* llama2c.c: llama2.c's .bin, version 0: seven i32 (dim, hidden, layers, heads, key/value heads,
 * vocabulary, longest), then fp32 in a fixed order.  A negative vocabulary: the output matrix is
 * its own and stands at the end.  Tensors get the names they have in llama2.c, those of layers
 * with their number before them. */
#include "files/found.h"

#include <stdio.h>

struct sizes {
    int32_t dim, hidden, layers, heads, kv_heads, vocabulary, longest;
};
#define MOST (1 << 24) /* of any of them */

struct reading {
    heed__found *f;
    heed__byte_cursor c;
    heed_error *err;
    heed_status status;
};

static void take(struct reading *r, const char *name, int64_t rows, int64_t cols)
{
    heed__found_tensor t = {.name = name,
                            .type = HEED__FOUND_F32,
                            .rank = cols ? 2 : 1,
                            .dim = {rows, cols},
                            .bytes = (size_t)(rows * (cols ? cols : 1)) * 4};
    if (r->status)
        return;
    t.data = heed__read_bytes(&r->c, t.bytes);
    r->status = t.data ? heed__found_add(r->f, &t, r->err)
                       : heed__found_fail(r->f, r->err,
                                          "'%s' has %zu bytes, the file has %zu left: it is cut "
                                          "short, or not of llama2.c",
                                          name, t.bytes, (size_t)(r->c.end - r->c.at));
}

/* One matrix or vector of every layer, all of one kind behind each other. */
static void take_layers(struct reading *r, const char *name, int32_t layers, int64_t rows,
                        int64_t cols)
{
    char text[64];
    for (int32_t i = 0; !r->status && i < layers; i++) {
        snprintf(text, sizeof text, "%d.%s", i, name);
        take(r, text, rows, cols);
    }
}

static void take_all(struct reading *r, const struct sizes *s, bool tied)
{
    const int64_t d = s->dim, head = d / s->heads, kv = head * s->kv_heads;
    take(r, "token_embedding", s->vocabulary, d);
    take_layers(r, "rms_att", s->layers, d, 0);
    take_layers(r, "wq", s->layers, d, d);
    take_layers(r, "wk", s->layers, kv, d);
    take_layers(r, "wv", s->layers, kv, d);
    take_layers(r, "wo", s->layers, d, d);
    take_layers(r, "rms_ffn", s->layers, d, 0);
    take_layers(r, "w1", s->layers, s->hidden, d);
    take_layers(r, "w2", s->layers, d, s->hidden);
    take_layers(r, "w3", s->layers, s->hidden, d);
    take(r, "rms_final", d, 0);
    if (!r->status) /* two tables of frequencies, which are computed */
        heed__read_bytes(&r->c, (uint64_t)s->longest * (uint64_t)head * 4);
    if (!tied)
        take(r, "wcls", s->vocabulary, d);
    if (!r->status && (r->c.broken || heed__bytes_left(&r->c) > 0))
        r->status = heed__found_fail(r->f, r->err, "it has %zu bytes, other than its sizes need",
                                     (size_t)(r->c.end - r->c.begin));
}

heed_status heed__llama2c_read(heed__found *f, const void *bytes, size_t size, heed_error *err)
{
    static const char *const names[] = {"dim",      "hidden",     "layers", "heads",
                                        "kv_heads", "vocabulary", "longest"};
    struct reading r = {f, heed__bytes_over(bytes, size), err, HEED_OK};
    struct sizes s;
    int32_t *const field[] = {&s.dim,      &s.hidden,     &s.layers, &s.heads,
                              &s.kv_heads, &s.vocabulary, &s.longest};
    f->format = "llama2.c";
    for (int i = 0; i < 7; i++)
        *field[i] = (int32_t)heed__read_u32(&r.c);
    const bool tied = s.vocabulary > 0;
    if (!tied && s.vocabulary > -MOST)
        s.vocabulary = -s.vocabulary;
    for (int i = 0; i < 7; i++)
        if (r.c.broken || *field[i] < 1 || *field[i] > MOST)
            return heed__found_fail(f, err, "%s is %d, expected 1 to %d: it is not llama2.c's",
                                    names[i], r.c.broken ? 0 : *field[i], MOST);
    if (s.dim % s.heads || s.heads % s.kv_heads)
        return heed__found_fail(f, err,
                                "%d heads, %d for keys and values, do not divide a width of %d",
                                s.heads, s.kv_heads, s.dim);
    for (int i = 0; i < 7 && !r.status; i++)
        r.status = heed__found_say(f, names[i], json_integer(*field[i]), err);
    if (!r.status)
        r.status = heed__found_say(f, "tied", json_boolean(tied), err);
    if (!r.status)
        take_all(&r, &s, tied);
    return r.status;
}
