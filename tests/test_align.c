/* test_align.c: from attention between pieces to pairs of words. */
#include "small_transformer.h"

#include "spm_model.h"
#include "temp_folder.h"
#include "translate/align.h"

enum { FIRST = HEED_PLACEHOLDER + HEED_PLACEHOLDERS };

static heed_arena *arena;
static heed_vocab *pieces, *joined; /* SentencePiece; words of which some go on in the next */

/* Their pieces, in order from FIRST. */
static const char *const spm[] = {"▁the", "▁hou", "se", "▁is", "▁", "good", "好", "人"};
static const char *const words[] = {"das", "Hau@@", "s", "ist", "gut"};
enum { THE, HOU, SE, IS, SPACE, GOOD, HAO, REN };
enum { DAS, HAU, S, IST, GUT };
#define SPM(i) (FIRST + (i))

static int set_up(void **state)
{
    heed_error err = {0};
    static struct bytes model;
    if (make_folder(state))
        return -1;
    put_specials(&model);
    for (size_t i = 0; i < sizeof spm / sizeof *spm; i++)
        put_piece(&model, spm[i], -1, NORMAL);
    put_specs(&model, 1, NULL, 0);
    write_plain(in_folder("v.spm"), model.at, model.size);
    FILE *f = fopen(in_folder("v"), "w");
    fputs("<unk>\n<s>\n</s>\n", f);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++)
        fprintf(f, "<ph%d>\n", i);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(f, "%s\n", words[i]);
    fclose(f);
    pieces = heed_vocab_open(in_folder("v.spm"), NULL, NULL, &err);
    joined = pieces ? heed_vocab_open(in_folder("v"), "@@", NULL, &err) : NULL;
    arena = heed_arena_new(NULL, &err);
    if (err.status)
        print_error("%s\n", err.text);
    return err.status;
}

static int tear_down(void **state)
{
    heed_arena_free(arena);
    heed_vocab_free(joined);
    heed_vocab_free(pieces);
    return remove_folder(state);
}

static const char *aligned(heed__side source, heed__side target, const heed_real *weight,
                           int64_t ld)
{
    heed__alignment a;
    heed_error err = {0};
    if (heed__align(&source, &target, weight, ld, arena, &a, &err))
        fail_msg("%s", err.text);
    const char *text = heed__pharaoh(&a, 1, arena, &err);
    assert_non_null(text);
    return text;
}

#define SIDE(v, ...)                                                                               \
    ((heed__side){.vocab = v,                                                                      \
                  .tokens = {(const int32_t[]){__VA_ARGS__},                                       \
                             (int64_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))}})

/* Catches pieces taken for words, weights of a word's pieces that are not added up, EOS that takes
 * part, on either side, and a leading dimension that is ignored. */
static void test_words(void **state)
{
    (void)state;
    /* the house is </s>  ->  das Haus ist </s> */
    heed__side source = SIDE(pieces, SPM(THE), SPM(HOU), SPM(SE), SPM(IS), HEED_EOS);
    heed__side target = SIDE(joined, SPM(DAS), SPM(HAU), SPM(S), SPM(IST), HEED_EOS);
    static const heed_real weight[5][6] = {
        {0.4f, 0.1f, 0.1f, 0.1f, 0.3f, 9}, /* das: the */
        {0.4f, 0.2f, 0.3f, 0.1f, 0, 9},    /* Haus: no piece of house alone, but both together */
        {0.35f, 0.3f, 0.05f, 0.3f, 0, 9},  /* would be `the` */
        {0.05f, 0, 0, 0.1f, 0.85f, 9},     /* ist: EOS, and of the words `is` */
        {1, 0, 0, 0, 0, 9},                /* EOS is no word */
    };
    assert_string_equal(aligned(source, target, weight[0], 6), "0-0 1-1 2-2");
    source.tokens.count = target.tokens.count = 4; /* without EOS */
    assert_string_equal(aligned(source, target, weight[0], 6), "0-0 1-1 2-2");
}

/* Catches a space that is a piece of its own, scripts without spaces, and equals that do not go to
 * the first. */
static void test_where_words_begin(void **state)
{
    (void)state;
    heed__side source = SIDE(pieces, SPM(SPACE), SPM(GOOD), SPM(HAO), SPM(REN));
    heed__side target = SIDE(joined, SPM(GUT), SPM(GUT), SPM(IST));
    static const heed_real weight[3][4] = {
        {0.3f, 0.3f, 0.4f, 0}, {0, 0.1f, 0.4f, 0.5f}, {0.25f, 0, 0.25f, 0.25f}};
    assert_string_equal(aligned(source, target, weight[0], 4), "0-0 2-1 0-2");
}

/* Catches numbers that are those of the text with placeholders: tags belong to the word that they
 * are glued to, and a span may have several words. */
static void test_spans(void **state)
{
    (void)state;
    enum { PH = HEED_PLACEHOLDER };
    static const heed__protected span[] = {{"<b>", 3, "<b>", 3, false, true},
                                           {"</b>", 4, "</b>", 4, true, false},
                                           {"3.5 km", 6, "3.5 km", 6, false, false}};
    /* 3.5 km the <b>house</b> is  ->  das 3.5 km ist */
    heed__side source = SIDE(pieces, SPM(SPACE), PH + 2, SPM(THE), SPM(SPACE), PH, SPM(HOU),
                             SPM(SE), SPM(SPACE), PH + 1, SPM(IS));
    heed__side target = SIDE(joined, SPM(DAS), PH + 2, SPM(IST));
    source.span = target.span = span;
    source.spans = target.spans = 3;
    static const heed_real weight[3][10] = {
        {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {[9] = 1}};
    assert_string_equal(aligned(source, target, weight[0], 10), "2-0 0-1 4-3");
    static const heed_real tag[3][10] = {{[8] = 1}, {[6] = 1}, {[4] = 1}};
    assert_string_equal(aligned(source, target, tag[0], 10), "3-0 3-1 3-3");
}

/* Catches sides with nothing in them, and parts of a line whose words are counted anew. */
static void test_parts(void **state)
{
    (void)state;
    heed__side source = SIDE(pieces, SPM(THE), SPM(IS)), target = SIDE(joined, SPM(DAS), SPM(IST));
    heed__side nothing = SIDE(pieces, HEED_EOS);
    static const heed_real weight[2][2] = {{0.1f, 0.9f}, {0.8f, 0.2f}};
    assert_string_equal(aligned(source, target, weight[0], 2), "1-0 0-1");
    assert_string_equal(aligned(nothing, target, weight[0], 1), "");
    assert_string_equal(aligned(source, nothing, weight[0], 2), "");
    heed__alignment part[3];
    heed_error err = {0};
    assert_int_equal(heed__align(&source, &target, weight[0], 2, arena, &part[0], &err), HEED_OK);
    assert_int_equal(heed__align(&nothing, &target, weight[0], 1, arena, &part[1], &err), HEED_OK);
    part[2] = part[0];
    assert_string_equal(heed__pharaoh(part, 3, arena, &err), "1-0 0-1 3-4 2-5");
    assert_string_equal(heed__pharaoh(part, 0, arena, &err), "");
}

/* ---- a translator's ---- */

/* A model of random numbers whose heads look somewhere all the same. */
static heed_model *new_translating_model(int decoder_layers)
{
    heed_model_config config = small_config();
    config.decoder_layers = decoder_layers;
    config.d = 64;
    config.tying = HEED_TIE_NONE;
    config.transformer.scale_scores = false;
    config.source_vocabulary = heed_vocab_size(pieces);
    config.target_vocabulary = heed_vocab_size(joined);
    return new_model(&config);
}

static heed_translator *new_translator(const heed_model *m)
{
    heed_error err = {0};
    heed_translator *tr = heed_translator_new(m, pieces, joined, 1, NULL, &err);
    if (!tr)
        fail_msg("%s", err.text);
    return tr;
}

/* What the model's own cross-attention says of a pair, in a head (from 1) or in all (0). */
static const char *aligned_by_model(const heed_model *m, heed__side source, heed__side target,
                                    int layer, int head)
{
    const int64_t ld = source.tokens.count + 1, size = ld * (target.tokens.count + 1);
    heed_tape *t = new_tape(1);
    heed_real *sum = calloc((size_t)size, sizeof *sum);
    const heed_attention_map *maps;
    heed_batch b;
    assert_int_equal(heed_batch_pack(arena, NULL, &source.tokens, &target.tokens, 1, &b, NULL),
                     HEED_OK);
    for (int64_t n = heed_model_attention(m, t, &b, &maps); n > 0; n--, maps++)
        for (int64_t k = 0; k < size; k++)
            if (maps->kind == HEED_CROSS && maps->layer == layer - 1 &&
                (!head || maps->head == head - 1))
                sum[k] += maps->weight[k];
    const char *text = aligned(source, target, sum, ld);
    free(sum);
    heed_tape_free(t);
    return text;
}

/* Catches alignments by another layer or head than the one that was asked for or is usual, and
 * weights of another row than the word's. */
static void test_translator(void **state)
{
    (void)state;
    enum { LAYERS = 3, HEADS = 4, LINES = 3 };
    static const char *const lines[LINES] = {"the house is good", "is the good good house", "the"};
    static const heed_search_options how = {.beam = 2, .n_best = 1, .extra_length = 6};
    heed_model *m = new_translating_model(LAYERS);
    heed_translator *tr = new_translator(m);
    const char *first = NULL;
    bool differ = false;
    for (int layer = 0; layer <= LAYERS; layer++)
        for (int head = 0; head <= HEADS; head++) {
            heed_translation out[LINES];
            assert_int_equal(heed_translator_align(tr, layer, head, NULL), HEED_OK);
            assert_int_equal(heed_translate(tr, &how, lines, LINES, arena, out, NULL), HEED_OK);
            for (int i = 0; i < LINES; i++) {
                const bool ended = out[i].id[out[i].tokens - 1] == HEED_EOS;
                heed__side source = {.vocab = pieces},
                           target = {.vocab = joined, .tokens = {out[i].id, out[i].tokens - ended}};
                assert_int_equal(heed_vocab_encode(pieces, lines[i], strlen(lines[i]), arena,
                                                   &source.tokens, NULL),
                                 HEED_OK);
                assert_string_equal(
                    out[i].alignment,
                    aligned_by_model(m, source, target, layer ? layer : LAYERS - 1, head));
            }
            first = first ? first : out[1].alignment;
            differ |= strcmp(first, out[1].alignment) != 0;
        }
    assert_true(differ);
    heed_translator_free(tr);
    heed_model_free(m);
}

/* Catches a layer or a head that does not exist and is noticed at the first sentence only, or not
 * at all. */
static void test_no_such_head(void **state)
{
    (void)state;
    static const struct {
        int layer, head;
        const char *text;
    } wrong[] = {
        {3, 1, "there is no layer 3: the decoder has 2"},
        {-1, 1, "there is no layer -1: the decoder has 2"},
        {1, 5, "there is no layer 1, head 5: the number of heads is 4"},
        {0, 5, "there is no layer 2, head 5: the number of heads is 4"},
        {1, -1, "there is no layer 1, head -1: the number of heads is 4"},
    };
    heed_model *m = new_translating_model(2);
    heed_translator *tr = new_translator(m);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        heed_error err = {0};
        assert_int_equal(heed_translator_align(tr, wrong[i].layer, wrong[i].head, &err),
                         HEED_ARGUMENT);
        assert_string_equal(err.text, wrong[i].text);
    }
    heed_translation out;
    assert_int_equal(heed_translate(tr, &(heed_search_options){.beam = 1, .n_best = 1},
                                    (const char *const[]){"the"}, 1, arena, &out, NULL),
                     HEED_OK);
    assert_null(out.alignment);
    heed_translator_free(tr);
    heed_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),      cmocka_unit_test(test_where_words_begin),
        cmocka_unit_test(test_spans),      cmocka_unit_test(test_parts),
        cmocka_unit_test(test_translator), cmocka_unit_test(test_no_such_head),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
