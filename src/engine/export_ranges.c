/* export_ranges.c: see export.h.  The model decodes a sample of its own training text, and each
 * matrix notes what it is multiplied with. */
#include "base/error.h"
#include "engine/export.h"
#include "engine/session_rows.h"

#include <heed/data.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE 500 /* pairs that are decoded */

struct range {
    const heed__panel_weights *w;
    const heed_tensor *of;
    double sum, squares, n;
};
struct ranges {
    struct range *item;
    int64_t count;
};

static void see(void *context, const heed__panel_weights *w, const heed_real *x, int64_t rows)
{
    const struct ranges *r = context;
    double most = 0;
    for (int64_t i = 0; i < rows * w->k; i++)
        most = fmax(most, fabs((double)x[i]));
    for (int64_t i = 0; i < r->count; i++)
        if (r->item[i].w == w) {
            r->item[i].sum += most;
            r->item[i].squares += most * most;
            r->item[i].n++;
        }
}

static void add(struct ranges *r, const heed__panel_weights *w, const heed_tensor *of)
{
    r->item[r->count++] = (struct range){.w = w, .of = of};
}

/* Packed and plain sublayers side by side. */
static void list_stack(struct ranges *r, const heed__packed_stack *p, const heed_stack *s)
{
    for (int i = 0; i < p->count; i++) {
        const heed__packed_sublayer *one = &p->sublayer[i];
        const heed_sublayer *of = &s->sublayer[i];
        if (one->kind == HEED__PACKED_FFN) {
            add(r, &one->as.ffn.in, of->as.ffn.in.weight);
            add(r, &one->as.ffn.out, of->as.ffn.out.weight);
        } else if (one->kind == HEED__PACKED_SSRU) {
            add(r, &one->as.ssru.in, of->as.ssru.in.weight);
            add(r, &one->as.ssru.forget, of->as.ssru.forget.weight);
        } else {
            const heed_mha_layer *l = &of->as.mha;
            const bool cross = one->kind == HEED__PACKED_CROSS;
            add(r, &one->as.attention.in, cross ? l->q.weight : l->qkv.weight);
            add(r, &one->as.attention.out, l->out.weight);
            if (cross)
                add(r, &one->as.attention.kv, l->kv.weight);
        }
    }
}

/* The first of several that read the same rows has noted them for all: the unit's two products, and
 * the memory's keys and values of all layers. */
static void share_notes(struct ranges *r, const heed__packed_stack *p)
{
    const struct range *memory = NULL;
    for (int64_t i = 0; i < r->count; i++)
        for (int k = 0; k < p->count; k++) {
            const heed__packed_sublayer *one = &p->sublayer[k];
            struct range *at = &r->item[i];
            if (one->kind == HEED__PACKED_CROSS && at->w == &one->as.attention.kv) {
                memory = at->n > 0 ? at : memory;
                if (memory)
                    *at = (struct range){at->w, at->of, memory->sum, memory->squares, memory->n};
            } else if (one->kind == HEED__PACKED_SSRU && at->w == &one->as.ssru.forget) {
                *at = (struct range){at->w, at->of, at[-1].sum, at[-1].squares, at[-1].n};
            }
        }
}

static heed_status decode(heed__rows *r, const heed_tokens *source, const heed_tokens *target,
                          heed_arena *arena, heed_error *err)
{
    const heed_special_ids *ids = &r->w->config.ids.target;
    int32_t *id = heed_arena_allocate(arena, ((size_t)target->count + 2) * sizeof *id);
    heed_real *log_p = heed_arena_allocate(arena, ((size_t)target->count + 2) * sizeof *log_p);
    if (!id || !log_p)
        return heed__fail(err, HEED_MEMORY, "out of memory for a sample");
    const int64_t n = target->count;
    id[0] = ids->start;
    memcpy(id + 1, target->id, (size_t)n * sizeof *id);
    id[n + 1] = ids->eos;
    const heed_extension all = {.tokens = {id, n + 1}, .wanted = id + 1, .log_p = log_p};
    heed_status status = heed__rows_add(r, source, NULL, 1, err);
    if (!status)
        status = heed__rows_extend(r, &all, 1, NULL, err);
    heed__stepper s = heed__rows_stepper(r);
    s.clear(r);
    return status;
}

static void run_sample(const heed__export *x, heed__rows *r, const char *tsv)
{
    heed_vocab *v[2] = {NULL, NULL};
    heed_arena *arena = heed_arena_new(NULL, x->err);
    const heed_corpus_files files = {.tsv = &tsv, .tsvs = 1};
    heed_corpus *c = arena ? heed_corpus_open(&files, NULL, NULL, x->err) : NULL;
    if (c && !heed_vocabs_open(x->from, x->text.bpe_joiner, NULL, &v[0], &v[1], x->err)) {
        const int64_t pairs = heed_corpus_describe(c).pairs, step = pairs / SAMPLE + 1;
        for (int64_t i = 0; i < pairs && !x->err->status; i += step) {
            const heed_pair pair = heed_corpus_pair(c, i);
            heed_tokens tokens[2];
            heed_arena_reset(arena);
            if (heed_vocab_encode(v[0], pair.source, pair.source_length, arena, &tokens[0],
                                  x->err) ||
                heed_vocab_encode(v[1], pair.target, pair.target_length, arena, &tokens[1], x->err))
                break;
            if (tokens[0].count && tokens[0].count < x->config.longest &&
                tokens[1].count < x->config.longest)
                decode(r, &tokens[0], &tokens[1], arena, x->err);
        }
    }
    heed_vocabs_free(v[0], v[1]);
    heed_corpus_free(c);
    heed_arena_free(arena);
}

static heed__export_range *results(const heed__export *x, const struct ranges *r, int64_t *count)
{
    heed__export_range *to = heed__export_take(x, r->count, sizeof *to);
    for (int64_t i = 0; to && i < r->count; i++) {
        const struct range *from = &r->item[i];
        const double mean = from->n > 0 ? from->sum / from->n : 0;
        const double variance = from->n > 0 ? from->squares / from->n - mean * mean : 0;
        const double most = mean + 1.1 * sqrt(fmax(0, variance));
        to[i] = (heed__export_range){from->of, most > 0 ? (float)(127 / most) : 0};
    }
    *count = r->count;
    return to;
}

heed__export_range *heed__export_ranges(const heed__export *x, const char *tsv, int64_t *count)
{
    heed__pathname own;
    if (!tsv && heed__pathname_in(own, x->from, "sample.tsv", x->err))
        return NULL;
    tsv = tsv ? tsv : own;
    if (access(tsv, F_OK) != 0) {
        heed__fail(x->err, HEED_ARGUMENT,
                   "there is no '%.255s', whose sentences tell how large activations get: give "
                   "--sample FILE with pairs as the model was trained on",
                   tsv);
        return NULL;
    }
    heed__weights *w = heed__weights_of(x->model, 0, NULL, x->err);
    heed__rows *r = w ? heed__rows_new(w, NULL, 1, NULL, x->err) : NULL;
    struct ranges all = {0};
    heed__export_range *made = NULL;
    if (r) {
        const heed_stack *encoder = heed__model_stack(x->model, HEED_SOURCE),
                         *decoder = heed__model_stack(x->model, HEED_TARGET);
        all.item =
            heed__export_take(x, 3 * (encoder->count + decoder->count) + 1, sizeof *all.item);
        const heed__pass_watch watch = {&all, see};
        if (all.item) {
            list_stack(&all, w->encoder, encoder);
            list_stack(&all, w->decoder, decoder);
            add(&all, &w->output, x->model->head.table);
            r->pass.watch = &watch;
            run_sample(x, r, tsv);
            share_notes(&all, w->decoder);
            made = x->err->status ? NULL : results(x, &all, count);
        }
    }
    heed__rows_free(r);
    heed__weights_free(w);
    return made;
}
