/* test_lstmn.c: the Long Short-Term Memory-Network of `heed lab lstmn`: its gradient, against the
 * formulas in plain loops, what a step may see, and what is read from files. */
#include "labs/lstmn.h"
#include "layer_check.h"

#include "temp_folder.h"

#ifdef HEED_DOUBLE
#define CLOSE 1e-11
#else
#define CLOSE 1e-5
#endif

enum { IN = 3, D = 4, B = 3 };

struct fixture {
    heed_params *params;
    heed_arena *arena;
    heed_tape *tape;
    lstmn_layer layer;
    heed_tensor *x, *h, *c; /* parameters, so that gradients reach them */
    const heed_segments *segments, *others;
};

static struct fixture fixture_new(lstmn_sizes sizes, const int64_t *lengths)
{
    static const int64_t other_lengths[B] = {2, 4, 1};
    struct fixture f = {.params = heed_params_new(NULL, NULL),
                        .arena = heed_arena_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL)};
    heed_scope s = heed_params_scope(f.params);
    const heed_init init = {HEED_INIT_NORMAL, 1};
    sizes.in = IN;
    sizes.d = D;
    f.segments = heed_segments_new(f.arena, B, lengths);
    f.others = heed_segments_new(f.arena, B, other_lengths);
    lstmn_build(&f.layer, heed_scope_enter(s, "layer"), &sizes);
    f.x = heed_param(s, "the.x", HEED_SHAPE(f.segments->rows, IN), init);
    if (sizes.fusion) {
        f.h = heed_param(s, "the.h", HEED_SHAPE(f.others->rows, D), init);
        f.c = heed_param(s, "the.c", HEED_SHAPE(f.others->rows, D), init);
    }
    assert_int_equal(heed_params_finish(f.params, 3, NULL), HEED_OK);
    for (int64_t i = 0; i < heed_params_size(f.params); i++)
        heed_params_values(f.params)[i] *= 2; /* far from uniform */
    return f;
}

static void fixture_free(struct fixture *f)
{
    heed_tape_free(f->tape);
    heed_arena_free(f->arena);
    heed_params_free(f->params);
}

static heed_tensor *apply(heed_tape *t, const struct fixture *f, lstmn_tape *made,
                          heed_tensor ***looked)
{
    const lstmn_tape source = {f->h, f->c, f->others};
    return lstmn_apply(t, &f->layer, f->x, f->segments, f->h ? &source : NULL, made, looked);
}

static int run_layer(heed_tape *t, void *context, heed_tensor **out)
{
    lstmn_tape made;
    out[0] = apply(t, context, &made, NULL);
    out[1] = made.c;
    return 2;
}

static const int64_t lengths[B] = {3, 1, 4};

/* Catches a wrong derivative anywhere, in every kind of the layer. */
static void gradient(void **state)
{
    static const lstmn_sizes kinds[] = {
        {.attention = true, .summary = true},
        {.attention = true, .window = 2},
        {.attention = true, .summary = true, .fusion = LSTMN_DEEP},
        {.attention = true, .fusion = LSTMN_SHALLOW},
        {.summary = true, .fusion = LSTMN_DEEP},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct fixture f = fixture_new(kinds[i], lengths);
        if (kinds[i].fusion == LSTMN_SHALLOW) /* alpha has no part in it */
            assert_int_equal(heed_params_freeze(f.params, "the.c", NULL), HEED_OK);
        layer_check(f.params, run_layer, &f);
        fixture_free(&f);
    }
}

/* ---- against plain loops ---- */

static double sigma(double x)
{
    return 1 / (1 + exp(-x));
}

/* y += x W, W (n,m) of the set. */
static void add_product(double *y, const double *x, const heed_tensor *w, int n, int m)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            y[j] += x[i] * (double)heed__row(w, i)[j];
}

/* Section 3 of the paper for the sequence b, word by word. */
static void by_loops(const struct fixture *f, int64_t b, double h[][D], double weights[][8])
{
    const lstmn_look *look = &f->layer.intra;
    const heed_rnn_cell *cell = &f->layer.lstm.cell[0][0];
    double c[8][D], read[D] = {0};
    const int64_t first = f->segments->offset[b], n = f->segments->offset[b + 1] - first;
    for (int64_t t = 0; t < n; t++) {
        double x[IN], hs[D] = {0}, cs[D] = {0}, a[8] = {0}, sum = 0, gates[4 * D] = {0};
        for (int i = 0; i < IN; i++)
            x[i] = (double)heed__row(f->x, first + t)[i];
        for (int64_t i = 0; i < t; i++) {
            double inside[D];
            for (int k = 0; k < D; k++)
                inside[k] = (double)look->x.bias->data[k];
            add_product(inside, h[i], look->key.weight, D, D);
            add_product(inside, x, look->x.weight, IN, D);
            add_product(inside, read, look->summary.weight, D, D);
            for (int k = 0; k < D; k++)
                a[i] += (double)look->v->data[k] * tanh(inside[k]);
            sum += exp(a[i]);
        }
        for (int64_t i = 0; i < t; i++) {
            weights[t][i] = exp(a[i]) / sum;
            for (int k = 0; k < D; k++) {
                hs[k] += weights[t][i] * h[i][k];
                cs[k] += weights[t][i] * c[i][k];
            }
        }
        for (int k = 0; k < 4 * D; k++)
            gates[k] = (double)cell->input.bias->data[k];
        add_product(gates, x, cell->input.weight, IN, 4 * D);
        add_product(gates, hs, cell->recurrent, D, 4 * D);
        for (int k = 0; k < D; k++) {
            c[t][k] = sigma(gates[D + k]) * cs[k] + sigma(gates[k]) * tanh(gates[2 * D + k]);
            h[t][k] = sigma(gates[3 * D + k]) * tanh(c[t][k]);
            read[k] = hs[k];
        }
    }
}

/* Catches attention to oneself or to the future, over h but not over c, another h~ in the query, a
 * slot of zeros that stays. */
static void formulas(void **state)
{
    (void)state;
    struct fixture f = fixture_new((lstmn_sizes){.attention = true, .summary = true}, lengths);
    heed_tensor **looked = NULL, *y = apply(f.tape, &f, NULL, &looked);
    assert_string_equal(heed_tape_error(f.tape)->text, "");
    for (int64_t b = 0; b < B; b++) {
        double h[8][D], weights[8][8];
        by_loops(&f, b, h, weights);
        for (int64_t t = 0; t < lengths[b]; t++) {
            for (int k = 0; k < D; k++)
                assert_true(fabs((double)heed__row(y, f.segments->offset[b] + t)[k] - h[t][k]) <
                            CLOSE);
            for (int64_t i = 0; i < t; i++)
                assert_true(fabs((double)heed__row(looked[t], f.segments->slot[b])[i] -
                                 weights[t][i]) < CLOSE);
        }
    }
    assert_null(looked[0]);
    fixture_free(&f);
}

static void bits_of(struct fixture *f, heed_tensor *(*make)(heed_tape *, const struct fixture *),
                    heed_real *out, heed_real *grad)
{
    heed_params_zero_grads(f->params);
    heed_tape_reset(f->tape);
    heed_tensor *y = make(f->tape, f);
    assert_int_equal(heed_backward(f->tape, heed_sum(f->tape, heed_square(f->tape, y), HEED_ALL)),
                     HEED_OK);
    memcpy(out, heed_tensor_data(y), (size_t)heed_tensor_count(y) * sizeof *out);
    heed_tensor *u = f->layer.lstm.cell[0][0].recurrent;
    memcpy(grad, heed_tensor_grad(u), (size_t)heed_tensor_count(u) * sizeof *grad);
}

static heed_tensor *by_layer(heed_tape *t, const struct fixture *f)
{
    return apply(t, f, NULL, NULL);
}

static heed_tensor *by_lstm(heed_tape *t, const struct fixture *f)
{
    return heed_rnn_apply(t, &f->layer.lstm, f->x, f->segments, NULL, NULL);
}

/* Catches an LSTM inside that is not one: where each step looks at the one before alone, one-hot at
 * t-1, the bits are those of a plain LSTM, and so are those without attention. */
static void one_step_is_an_lstm(void **state)
{
    (void)state;
    for (int attention = 0; attention < 2; attention++) {
        struct fixture f = fixture_new(
            (lstmn_sizes){.attention = attention, .summary = true, .window = attention}, lengths);
        heed_real y[2][8 * D], grad[2][4 * D * D];
        bits_of(&f, by_layer, y[0], grad[0]);
        bits_of(&f, by_lstm, y[1], grad[1]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
        fixture_free(&f);
    }
}

/* Catches a sequence that sees its neighbours, or another one's source. */
static void alone_as_packed(void **state)
{
    (void)state;
    for (int fusion = LSTMN_ALONE; fusion <= LSTMN_DEEP; fusion++) {
        struct fixture f = fixture_new(
            (lstmn_sizes){.attention = true, .summary = true, .fusion = (lstmn_fusion)fusion},
            lengths);
        heed_real all[8 * D];
        heed_tensor *y = apply(f.tape, &f, NULL, NULL);
        memcpy(all, heed_tensor_data(y), sizeof all);
        for (int64_t b = 0; b < B; b++) {
            const int64_t from = f.segments->offset[b], to = f.segments->offset[b + 1],
                          source = f.others->offset[b], end = f.others->offset[b + 1],
                          n = to - from, m = end - source;
            heed_tape_reset(f.tape);
            lstmn_tape own = {.segments = heed_segments_new(f.arena, 1, &m)};
            if (fusion) {
                own.h = heed_slice_rows(f.tape, f.h, source, end);
                own.c = heed_slice_rows(f.tape, f.c, source, end);
            }
            y = lstmn_apply(f.tape, &f.layer, heed_slice_rows(f.tape, f.x, from, to),
                            heed_segments_new(f.arena, 1, &n), fusion ? &own : NULL, NULL, NULL);
            assert_string_equal(heed_tape_error(f.tape)->text, "");
            for (int64_t i = 0; i < n * D; i++)
                assert_true(fabs((double)heed_tensor_data(y)[i] - (double)all[from * D + i]) <
                            CLOSE);
        }
        fixture_free(&f);
    }
}

/* ---- tasks ---- */

/* Catches a key that comes twice, an answer that is not its key's, fewer pairs than there should
 * be, a test that is part of the training. */
static void recall(void **state)
{
    enum { PAIRS = 5, COUNT = 50 };
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 4});
    lstmn_data d;
    lstmn_batch b;
    int64_t shortest = 99;
    assert_int_equal(lstmn_data_open(&d, LSTMN_RECALL, NULL, 7, PAIRS, 0, 0, arena, NULL), HEED_OK);
    for (int part = 0; part < 2; part++) {
        assert_true(lstmn_draw(&d, LSTMN_TEST, 0, COUNT, part ? NULL : &rng, arena, &b));
        int64_t term = 0;
        for (int64_t e = 0; e < COUNT; e++) {
            const int32_t *ids = b.ids[0] + b.rows[0]->offset[e];
            const int64_t tokens = b.rows[0]->offset[e + 1] - b.rows[0]->offset[e],
                          n = part ? tokens / 2 - 1 : tokens / 4;
            for (; term < b.terms && b.row[term] < b.rows[0]->offset[e + 1]; term++) {
                const int32_t *asked = b.ids[0] + b.row[term];
                int found = 0;
                for (int64_t i = 0; i < n; i++)
                    if (ids[2 * i] == *asked) {
                        assert_int_equal(ids[2 * i + 1] - 32, b.wanted[term]);
                        found++;
                    }
                assert_int_equal(found, 1);
                assert_string_equal(lstmn_recall_word(asked[-1], arena), "?");
            }
            shortest = n < shortest ? n : shortest;
            if (part)
                assert_int_equal(n, PAIRS);
        }
        assert_int_equal(term, b.terms);
    }
    assert_int_equal(shortest, 1);
    heed_arena_free(arena);
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void words_of(const lstmn_data *d, const int32_t *ids, int64_t n, const char *expected)
{
    char text[256] = "";
    for (int64_t i = 0; i < n; i++)
        sprintf(text + strlen(text), i ? " %s" : "%s", word_list_word(d->words, ids[i]));
    assert_string_equal(text, expected);
}

/* Catches a next word that is not the next, words that are lost where a line is cut, and the order
 * of words by how often they occur. */
static void text(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    lstmn_data d;
    lstmn_batch b;
    heed_error err = {0};
    write_file("train.txt", " a b a\n\n c a b <unk> d \n");
    write_file("valid.txt", " b e d\n");
    write_file("test.txt", " a a a a\n a\n");
    assert_int_equal(lstmn_data_open(&d, LSTMN_TEXT, folder, 0, 0, 5, 3, arena, &err), HEED_OK);
    words_of(&d, (const int32_t[]){0, 1, 2, 3, 4}, 5, "<unk> </s> a b c"); /* d is one too many */
    assert_int_equal(lstmn_count(&d, LSTMN_TRAIN), 4);
    assert_true(lstmn_draw(&d, LSTMN_TRAIN, 0, 4, NULL, arena, &b));
    assert_int_equal(b.terms, 10);
    words_of(&d, b.ids[0], 10, "</s> a b a </s> c a b <unk> <unk>");
    words_of(&d, b.wanted, 10, "a b a </s> c a b <unk> <unk> </s>");
    assert_int_equal(b.rows[0]->offset[1], 3);
    assert_int_equal(b.rows[0]->offset[2], 4);
    assert_int_equal(b.rows[0]->offset[3], 7);
    assert_true(lstmn_draw(&d, LSTMN_VALID, 0, 2, NULL, arena, &b));
    words_of(&d, b.wanted, 4, "b <unk> <unk> </s>");
    heed_arena_free(arena);
}

/* Catches labels that go to other sentences, and mistakes in files that pass. */
static void sentences(void **state)
{
    static const struct {
        lstmn_task task;
        const char *line, *says;
    } wrong[] = {
        {LSTMN_SENTIMENT, "positive\tgood\ngood film\n",
         "train.tsv', line 2: expected 'positive' or 'negative' and a tab"},
        {LSTMN_SENTIMENT, "positive\t \n", "line 1: a sentence is empty or missing"},
        {LSTMN_ENTAIL, "neutral\ta b\n", "line 1: a sentence is empty or missing"},
        {LSTMN_ENTAIL, "maybe\ta\tb\n", "line 1: expected 'entailment', 'neutral' or"},
        {LSTMN_SENTIMENT, "\n", "train.tsv': there is nothing in it"},
        {LSTMN_SENTIMENT, "positive\t\xff\xfe\x01\t\nx", "line 2: expected"},
    };
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    lstmn_data d;
    lstmn_batch b;
    heed_error err = {0};
    write_file("train.tsv", "neutral\ta b\tc\t3\ncontradiction\tc\td d d\nentailment\ta\ta\n");
    write_file("valid.tsv", "neutral\tx\ta\n");
    write_file("test.tsv", "neutral\tx\ta\n");
    assert_int_equal(lstmn_data_open(&d, LSTMN_ENTAIL, folder, 0, 0, 99, 0, arena, &err), HEED_OK);
    assert_true(lstmn_draw(&d, LSTMN_TRAIN, 0, 3, NULL, arena, &b));
    assert_int_equal(b.terms, 3);
    words_of(&d, b.ids[0], 4, "a b c a");
    words_of(&d, b.ids[1], 5, "c d d d a");
    assert_true(b.wanted[0] == 1 && b.wanted[1] == 2 && b.wanted[2] == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file("train.tsv", wrong[i].line);
        err = (heed_error){0};
        assert_int_equal(lstmn_data_open(&d, wrong[i].task, folder, 0, 0, 99, 0, arena, &err),
                         HEED_FORMAT);
        if (!strstr(err.text, wrong[i].says))
            fail_msg("'%s', expected '%s'", err.text, wrong[i].says);
    }
    unlink(in_folder("train.tsv"));
    err = (heed_error){0};
    assert_int_not_equal(lstmn_data_open(&d, LSTMN_ENTAIL, folder, 0, 0, 99, 0, arena, &err),
                         HEED_OK);
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient),
        cmocka_unit_test(formulas),
        cmocka_unit_test(one_step_is_an_lstm),
        cmocka_unit_test(alone_as_packed),
        cmocka_unit_test(recall),
        cmocka_unit_test_setup_teardown(text, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(sentences, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
