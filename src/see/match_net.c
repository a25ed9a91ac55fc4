/* match_net.c: a picture and a text that ask each other: Lee, Chen, Hua, Hu, He 2018, "Stacked
 * Cross Attention for Image-Text Matching" (arXiv 1803.08024), with places of a grid, trained
 * here, for its regions.  What differs: softmax over cosines alone, without the clipping and
 * normalising of its equation 1; both directions in one score; contrast with all of the batch in
 * place of the hardest negative.
 *
 * Every pair is scored with two calls of attention: segment b has the places of picture b as
 * keys and the words of all texts as queries; segment c the words of text c and the places of
 * all pictures. */
#include <heed/see.h>

#define EPS 1e-8

void heed_match_build(heed_match_net *m, heed_scope s, const heed_match_config *config)
{
    if (!m || !config)
        return;
    *m = (heed_match_net){.config = *config};
    heed_grid_build(&m->grid, heed_scope_enter(s, "grid"),
                    &(heed_grid_options){.height = config->side,
                                         .width = config->side,
                                         .channels = config->channels,
                                         .stages = config->stages,
                                         .filters = config->filters});
    heed_linear_build(&m->place, heed_scope_enter(s, "place"), m->grid.d, config->d, HEED_IDENTITY,
                      true);
    m->words = heed_param_with_role(s, "words", HEED_SHAPE(config->vocabulary, config->embedding),
                                    (heed_init){HEED_INIT_NORMAL, 0.3}, HEED_ROLE_TABLE);
    heed_rnn_build(&m->reader, heed_scope_enter(s, "reader"),
                   &(heed_rnn_options){.cell = HEED_CELL_GRU,
                                       .layers = 1,
                                       .bidirectional = true,
                                       .in = config->embedding,
                                       .d = config->d / 2});
}

heed_tensor *heed_match_places(heed_tape *t, const heed_match_net *m, const heed_real *pixels,
                               int64_t pictures)
{
    if (!t || !m)
        return NULL;
    const heed_grid_options *g = &m->grid.options;
    heed_tensor *x =
        heed_input(t, HEED_SHAPE(pictures * g->height * g->width, g->channels), pixels);
    heed_tensor *a = heed_grid_apply(t, &m->grid, x);
    return heed_unit(t, heed_linear_apply(t, &m->place, heed_dropout(t, a, m->config.dropout)), 1,
                     EPS);
}

heed_tensor *heed_match_words(heed_tape *t, const heed_match_net *m, const int32_t *ids,
                              const heed_segments *rows)
{
    if (!t || !m || !rows)
        return NULL;
    heed_tensor *x = heed_embedding(t, m->words, ids, rows->rows,
                                    &(heed_embedding_options){.dropout = m->config.dropout});
    return heed_unit(t, heed_rnn_apply(t, &m->reader, x, rows, NULL, NULL), 1, EPS);
}

/* count segments of `each` rows. */
static const heed_segments *equal_segments(heed_tape *t, int64_t count, int64_t each)
{
    int64_t *lengths = heed_arena_allocate(heed_tape_arena(t), (size_t)count * sizeof *lengths);
    for (int64_t i = 0; lengths && i < count; i++)
        lengths[i] = each;
    return lengths ? heed_segments_new(heed_tape_arena(t), count, lengths) : NULL;
}

/* x, `times` times one below the other. */
static heed_tensor *repeat(heed_tape *t, heed_tensor *x, int64_t times)
{
    const int64_t n = heed_tensor_rows(x);
    int32_t *row = heed_arena_allocate(heed_tape_arena(t), (size_t)(n * times) * sizeof *row);
    for (int64_t i = 0; row && i < n * times; i++)
        row[i] = (int32_t)(i % n);
    return row ? heed_gather_rows(t, x, row, n * times)
               : heed_tape_fail(t, HEED_MEMORY, "out of memory for pairs of pictures and texts");
}

/* What each query, of each segment of keys, gets of them: its cosine with the keys' mean, weighed
 * by how near they are. */
static heed_tensor *ask(heed_tape *t, const heed_match_net *m, heed_tensor *queries,
                        heed_tensor *keys, const heed_segments *key_rows, heed_tensor **looks)
{
    const double sharpness = m->config.sharpness > 0 ? m->config.sharpness : 9;
    heed_tensor *asked = repeat(t, queries, key_rows->count);
    const heed_segments *rows = equal_segments(t, key_rows->count, heed_tensor_rows(queries));
    if (!rows)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for pairs of pictures and texts");
    const heed_attention_options o = {.heads = 1, .scale = sharpness, .probabilities = looks};
    heed_tensor *found = heed_attention(t, asked, keys, keys, rows, key_rows, &o);
    return heed_cosine(t, asked, found, EPS);
}

heed_tensor *heed_match_scores(heed_tape *t, const heed_match_net *m, heed_tensor *places,
                               int64_t pictures, heed_tensor *words, const heed_segments *rows)
{
    if (!t || !m || !rows || heed_tape_error(t)->status)
        return NULL;
    heed_arena *arena = heed_tape_arena(t);
    const int64_t each = m->grid.size.y * m->grid.size.x, texts = rows->count;
    int64_t *lengths = heed_arena_allocate(arena, (size_t)(pictures * texts) * sizeof *lengths);
    for (int64_t i = 0; lengths && i < pictures * texts; i++)
        lengths[i] = rows->offset[i % texts + 1] - rows->offset[i % texts];
    const heed_segments *grid = equal_segments(t, pictures, each),
                        *of_words =
                            lengths ? heed_segments_new(arena, pictures * texts, lengths) : NULL,
                        *of_places = equal_segments(t, texts * pictures, each);
    if (!grid || !of_words || !of_places)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for pairs of pictures and texts");
    heed_tensor *by_words = heed_segment_mean(t, ask(t, m, words, places, grid, NULL), of_words);
    heed_tensor *by_places = heed_segment_mean(t, ask(t, m, places, words, rows, NULL), of_places);
    heed_tensor *sum =
        heed_add(t, heed_reshape(t, by_words, HEED_SHAPE(pictures, texts)),
                 heed_transpose_last(t, heed_reshape(t, by_places, HEED_SHAPE(texts, pictures))));
    return heed_scale(t, sum, 0.5, 0);
}

heed_tensor *heed_match_loss(heed_tape *t, const heed_match_net *m, const heed_real *pixels,
                             const int32_t *ids, const heed_segments *rows, double weight)
{
    if (!t || !m || !rows)
        return NULL;
    const int64_t n = rows->count;
    int32_t *own = heed_arena_allocate(heed_tape_arena(t), (size_t)n * sizeof *own);
    if (!own)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < n; i++)
        own[i] = (int32_t)i;
    heed_tensor *scores = heed_match_scores(t, m, heed_match_places(t, m, pixels, n), n,
                                            heed_match_words(t, m, ids, rows), rows);
    scores = heed_scale(t, scores, m->config.contrast > 0 ? m->config.contrast : 20, 0);
    heed_tensor *loss = heed_add(t, heed_cross_entropy(t, scores, own, 0),
                                 heed_cross_entropy(t, heed_transpose_last(t, scores), own, 0));
    return heed_scale(t, loss, weight, 0);
}

bool heed_match_looks(heed_tape *t, const heed_match_net *m, heed_tensor *places,
                      heed_tensor *words, const heed_real **word_looks,
                      const heed_real **place_looks)
{
    if (!t || !m || !places || !words || !word_looks || !place_looks)
        return false;
    heed_tensor *p = NULL, *w = NULL;
    const heed_segments *grid = equal_segments(t, 1, heed_tensor_rows(places)),
                        *text = equal_segments(t, 1, heed_tensor_rows(words));
    if (!grid || !text || !ask(t, m, words, places, grid, &w) ||
        !ask(t, m, places, words, text, &p))
        return false;
    *word_looks = heed_tensor_data(w);
    *place_looks = heed_tensor_data(p);
    return true;
}
