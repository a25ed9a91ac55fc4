/* A decoder alone through the packed engine: rows without sources, prompts in one call, against the
 * tape's forward pass over everything and against single steps, bit by bit. */
#include "one_stack.h"

#include "engine_help.h"
#include "failing_allocator.h"
#include "temp_folder.h"
#include <heed/search.h>

enum { ROWS = 5, STEPS = 18 };

static int32_t token_of(int row, int i)
{
    return i ? 3 + (row * 5 + i * 7 + row * i * i) % (VOCABULARY - 3) : HEED_BOS;
}

static void fill_tokens(int32_t token[ROWS][STEPS])
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < STEPS; i++)
            token[r][i] = token_of(r, i);
}

static void add_rows(heed_session *s, int64_t count)
{
    heed_error err = {0};
    if (heed_session_add(s, NULL, count, &err))
        fail_msg("%s", err.text);
}

/* Logits behind every token of every row, (ROWS,STEPS,V), by the tape: all rows at once. */
static heed_real *tape_logits(const heed_model *m)
{
    heed_tape *t = new_tape(1);
    int32_t token[ROWS][STEPS];
    int64_t lengths[ROWS];
    fill_tokens(token);
    for (int r = 0; r < ROWS; r++)
        lengths[r] = STEPS;
    heed_batch b = {
        .examples = ROWS,
        .target = {.rows = heed_segments_new(heed_tape_arena(t), ROWS, lengths), .ids = token[0]}};
    heed_tensor *y = heed_model_logits(m, t, &b);
    if (!y)
        fail_msg("%s", heed_tape_error(t)->text);
    const size_t bytes = (size_t)heed_tensor_count(y) * sizeof(heed_real);
    heed_real *copy = memcpy(malloc(bytes), heed_tensor_data(y), bytes);
    heed_tape_free(t);
    return copy;
}

/* The same by single steps of the engine. */
static heed_real *step_logits(const heed_engine *e, int threads)
{
    heed_session *s = new_session(e, threads);
    heed_real *out = malloc(ROWS * STEPS * VOCABULARY * sizeof *out);
    add_rows(s, ROWS);
    for (int i = 0; i < STEPS; i++) {
        int32_t token[ROWS];
        heed_scores found;
        for (int r = 0; r < ROWS; r++)
            token[r] = token_of(r, i);
        assert_int_equal(heed_session_step(s, token, &found, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++)
            memcpy(out + (r * STEPS + i) * VOCABULARY, found.logit + r * VOCABULARY,
                   VOCABULARY * sizeof *out);
    }
    heed_session_free(s);
    return out;
}

static void check_same(const heed_real *found, const heed_real *wanted, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        assert_near((double)found[i], (double)wanted[i], 10 * SAME);
}

/* Prompts of different lengths in one call, then the rest of each in another. */
static void check_prompts(const heed_engine *e, const heed_real *wanted, int threads)
{
    heed_session *s = new_session(e, threads);
    int32_t token[ROWS][STEPS];
    heed_extension x[ROWS];
    heed_scores last;
    fill_tokens(token);
    add_rows(s, 2);
    add_rows(s, ROWS - 2); /* rows join */
    for (int part = 0; part < 2; part++) {
        for (int r = 0; r < ROWS; r++) {
            const int first = 1 + 3 * r % 7, begin = part ? first : 0;
            x[r] = (heed_extension){
                .row = r, .tokens = {token[r] + begin, part ? STEPS - first : first}, .last = true};
        }
        assert_int_equal(heed_session_extend(s, x, ROWS, &last, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++) {
            const int at = part ? STEPS - 1 : 3 * r % 7;
            assert_memory_equal(last.logit + r * VOCABULARY, wanted + (r * STEPS + at) * VOCABULARY,
                                VOCABULARY * sizeof *last.logit);
        }
    }
    heed_session_free(s);
}

/* A stack without cross-attention encodes what it decodes. */
static void check_encoding(const heed_engine *e, const heed_real *wanted)
{
    heed_session *s = new_session(e, 2);
    heed_arena *arena = heed_arena_new(NULL, NULL);
    int32_t token[ROWS][STEPS];
    int64_t lengths[ROWS];
    heed_encoding found;
    fill_tokens(token);
    for (int r = 0; r < ROWS; r++)
        lengths[r] = STEPS;
    const heed_batch_side side = {.rows = heed_segments_new(arena, ROWS, lengths), .ids = token[0]};
    assert_int_equal(heed_session_encode(s, &side,
                                         &(heed_encode_options){.kind = HEED_ENCODE_LOGITS}, &found,
                                         NULL),
                     HEED_OK);
    assert_int_equal(found.rows, ROWS * STEPS);
    assert_memory_equal(found.value, wanted, ROWS * STEPS * VOCABULARY * sizeof *wanted);
    heed_arena_free(arena);
    heed_session_free(s);
}

static void check_form(const heed_model_config *config)
{
    heed_model *m = new_rough_model(config);
    heed_real *full = tape_logits(m);
    for (int int8 = 0; int8 < 2; int8++) {
        heed_engine *e = int8 ? new_int8_engine(m) : new_engine(m);
        assert_non_null(e->weights);
        heed_real *steps = step_logits(e, 1);
        if (!int8)
            check_same(steps, full, ROWS * STEPS * VOCABULARY);
        for (int threads = 1; threads <= 3; threads++)
            check_prompts(e, steps, threads);
        check_encoding(e, steps);
        free(steps);
        heed_engine_free(e);
    }
    free(full);
    heed_model_free(m);
}

/* Catches: a packed sublayer, input or head that is not the trained one; a position, key or norm of
 * another row; tokens at once that are not single steps; bits that depend on threads. */
static void cached_is_full(void **state)
{
    (void)state;
    for_each_one_stack(HEED_ARCH_DECODER, check_form);
    for_each_attention(HEED_ARCH_DECODER, check_form);
}

/* ---- rows that share their beginnings, against rows that share nothing ---- */

static void check_reorder(const heed_model_config *config)
{
    enum { ROUNDS = 14 };
    heed_model *m = new_rough_model(config);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 2);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 4});
    int32_t history[ROWS][ROUNDS], parent[ROWS], before[ROWS][ROUNDS];
    heed_scores found, alone;
    add_rows(s, ROWS);
    for (int i = 0; i < ROUNDS; i++) {
        for (int r = 0; r < ROWS; r++)
            history[r][i] =
                i ? 3 + (int32_t)heed_rng_below(&rng, (uint64_t)(i * 64 + r), VOCABULARY - 3)
                  : HEED_BOS;
        heed_extension x[ROWS];
        for (int r = 0; r < ROWS; r++)
            x[r] = (heed_extension){.row = r, .tokens = {&history[r][i], 1}, .last = true};
        assert_int_equal(heed_session_extend(s, x, ROWS, &found, NULL), HEED_OK);
        for (int r = 0; r < ROWS; r++) { /* the oracle: everything anew, alone */
            heed_session *one = new_session(e, 1);
            add_rows(one, 1);
            assert_int_equal(
                heed_session_extend(one,
                                    &(heed_extension){.tokens = {history[r], i + 1}, .last = true},
                                    1, &alone, NULL),
                HEED_OK);
            assert_memory_equal(found.logit + r * VOCABULARY, alone.logit,
                                VOCABULARY * sizeof *alone.logit);
            heed_session_free(one);
        }
        memcpy(before, history, sizeof before);
        for (int r = 0; r < ROWS; r++) {
            parent[r] = (int32_t)heed_rng_below(&rng, (uint64_t)(i * 64 + 32 + r), ROWS);
            memcpy(history[r], before[parent[r]], sizeof history[r]);
        }
        assert_int_equal(heed_session_reorder(s, parent, ROWS, NULL), HEED_OK);
    }
    heed_session_free(s);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: what two rows share being changed by one of them. */
static void shared_beginnings_stay(void **state)
{
    (void)state;
    for_each_one_stack(HEED_ARCH_DECODER, check_reorder);
    for_each_attention(HEED_ARCH_DECODER, check_reorder);
}

/* ---- search ---- */

static void search(heed_session *s, const heed_tokens *prompt, bool sample, heed_arena *arena,
                   heed_hypothesis *out)
{
    heed_error err = {0};
    const heed_search_options o = {
        .beam = 3, .n_best = 2, .extra_length = 6, .sample = sample, .temperature = 1, .seed = 5};
    if (heed_search(s, &o, prompt, 2, arena, out, &err))
        fail_msg("%s", err.text);
}

/* Catches: a search that needs sources, prompts that are not what hypotheses begin with, limits
 * that forget the prompt; packed and not packed sessions that disagree. */
static void search_continues_prompts(void **state)
{
    (void)state;
    heed_model_config config = one_stack_config(HEED_ARCH_DECODER);
    heed_model *m = new_rough_model(&config);
    heed_engine *packed = new_engine(m);
    heed_engine plain = {
        .allocator = packed->allocator, .begin = heed__session_decoder, .model = m};
    heed_arena *arena = heed_arena_new(NULL, NULL);
    const int32_t id[] = {5, 9, 4, 12};
    const heed_tokens prompt[] = {{id, 3}, {id + 1, 1}};
    for (int sample = 0; sample < 2; sample++) {
        heed_hypothesis found[4], wanted[4];
        heed_session *a = new_session(packed, 1), *b = new_session(&plain, 1);
        search(a, prompt, sample, arena, found);
        search(b, prompt, sample, arena, wanted);
        for (int i = 0; i < 4; i++) {
            assert_true(found[i].count > prompt[i / 2].count);
            assert_true(found[i].count <= prompt[i / 2].count + 1 + 6);
            assert_memory_equal(found[i].id, prompt[i / 2].id,
                                (size_t)prompt[i / 2].count * sizeof *id);
            assert_int_equal(found[i].count, wanted[i].count);
            assert_memory_equal(found[i].id, wanted[i].id, (size_t)found[i].count * sizeof *id);
            assert_near(found[i].log_p, wanted[i].log_p, 10 * SAME);
        }
        heed_session_free(a);
        heed_session_free(b);
    }
    heed_arena_free(arena);
    heed_engine_free(packed);
    heed_model_free(m);
}

/* ---- sliding contexts ---- */

/* Catches: a full context that is not refused, or a refusal that leaves something behind; a row
 * that is not as new after what was taken back. */
static void a_full_context_slides(void **state)
{
    (void)state;
    heed_model_config config = one_stack_config(HEED_ARCH_DECODER);
    config.longest = STEPS;
    heed_model *m = new_rough_model(&config);
    heed_engine *e = new_engine(m);
    heed_session *s = new_session(e, 1), *fresh = new_session(e, 1);
    int32_t token[ROWS][STEPS], slid[STEPS];
    heed_scores found, wanted;
    heed_error err = {0};
    fill_tokens(token);
    add_rows(s, 1);
    add_rows(fresh, 1);
    const heed_extension all = {.tokens = {token[1], STEPS}}, more = {.tokens = {token[2] + 1, 1}};
    assert_int_equal(heed_session_extend(s, &all, 1, NULL, NULL), HEED_OK);
    assert_int_equal(heed_session_extend(s, &more, 1, NULL, &err), HEED_ARGUMENT);
    assert_string_equal(err.text,
                        "cannot decode token 19: expected at most 18, as '--longest' says");
    /* BOS and a token of the prompt stay, then the last seven and a new one */
    memcpy(slid, token[1], 2 * sizeof *slid);
    memcpy(slid + 2, token[1] + STEPS - 7, 7 * sizeof *slid);
    slid[9] = token[2][1];
    assert_int_equal(heed_session_rewind(s, 0, 2, NULL), HEED_OK);
    assert_int_equal(heed_session_extend(s,
                                         &(heed_extension){.tokens = {slid + 2, 8}, .last = true},
                                         1, &found, NULL),
                     HEED_OK);
    assert_int_equal(heed_session_extend(fresh,
                                         &(heed_extension){.tokens = {slid, 10}, .last = true}, 1,
                                         &wanted, NULL),
                     HEED_OK);
    assert_memory_equal(found.logit, wanted.logit, VOCABULARY * sizeof *found.logit);
    heed_session_free(s);
    heed_session_free(fresh);
    heed_engine_free(e);
    heed_model_free(m);
}

/* ---- refusals ---- */

/* Catches: sources given to a model that has none, and rows asked of one that writes nothing. */
static void wrong_calls_are_refused(void **state)
{
    (void)state;
    heed_model_config config = one_stack_config(HEED_ARCH_DECODER);
    heed_model *m = new_model(&config);
    heed_engine *e = new_engine(m);
    heed_engine plain = {.allocator = e->allocator, .begin = heed__session_decoder, .model = m};
    static const int32_t id[] = {3, 4};
    for (int i = 0; i < 2; i++) {
        heed_session *s = new_session(i ? &plain : e, 1);
        heed_error err = {0};
        assert_int_equal(heed_session_add(s, &(heed_tokens){id, 2}, 1, &err), HEED_ARGUMENT);
        assert_string_equal(err.text, "this model has no encoder: rows are added without sources");
        heed_session_free(s);
    }
    heed_engine_free(e);
    heed_model_free(m);
}

/* ---- memory ---- */

static heed_status use(heed_session *s, heed_error *err)
{
    int32_t token[ROWS][STEPS];
    heed_extension x[ROWS];
    heed_scores last;
    fill_tokens(token);
    for (int r = 0; r < ROWS; r++)
        x[r] = (heed_extension){.row = r, .tokens = {token[r], STEPS}, .last = true};
    heed_session_clear(s);
    heed_status status = heed_session_add(s, NULL, ROWS, err);
    if (!status)
        status = heed_session_extend(s, x, ROWS, &last, err);
    if (!status)
        status = heed_session_reorder(s, (const int32_t[]){0, 0, 1, 3}, 4, err);
    const int32_t next[] = {3, 4, 5, 6};
    return status ? status : heed_session_step(s, next, &last, err);
}

static void check_memory(const heed_model_config *config)
{
    heed_model *m = new_model(config);
    heed_engine *e = new_engine(m);
    int calls = 1;
    for (int n = 1; n <= calls; n++) {
        struct failing f = {.fail_at = n};
        heed_allocator a = failing_allocator(&f);
        heed_error err = {0};
        heed_session *s = heed_session_new(e, &(heed_session_options){.threads = 1}, &a, &err);
        if (s && !use(s, &err))
            calls = n - 1; /* none failed */
        f.fail_at = 0;
        if (s) { /* after a failure it is used again */
            assert_int_equal(use(s, NULL), HEED_OK);
            const int before = f.calls;
            assert_int_equal(use(s, NULL), HEED_OK);
            assert_int_equal(f.calls, before); /* warm */
        }
        calls += calls == n;
        heed_session_free(s);
        assert_int_equal(f.held, 0);
    }
    assert_true(calls > 5);
    heed_engine_free(e);
    heed_model_free(m);
}

/* Catches: memory that leaks or is used when any allocation fails, and a session that goes on
 * allocating. */
static void memory_fails_at_every_allocation(void **state)
{
    (void)state;
    for_each_one_stack(HEED_ARCH_DECODER, check_memory);
}

/* ---- model directories ---- */

static void check_directory(const heed_model_config *config)
{
    heed_model *m = new_rough_model(config);
    const heed_text_config text = {0};
    heed_error err = {0};
    if (heed_model_describe(folder, config, &text, &err) ||
        heed_params_save(heed_model_params(m), in_folder("model.safetensors"), &err))
        fail_msg("%s", err.text);
    FILE *f = fopen(in_folder("shared.vocab"), "w");
    assert_non_null(f);
    fputs("<unk>\n<s>\n</s>\n", f);
    for (int i = 0; i < HEED_PLACEHOLDERS; i++)
        fprintf(f, "<ph%d>\n", i);
    fputs("a\nb\n", f);
    assert_int_equal(fclose(f), 0);
    for (int kind = HEED_NUMBERS_FP32; kind <= HEED_NUMBERS_INT8; kind++) {
        char to[128];
        snprintf(to, sizeof to, "%s/kind%d", folder, kind);
        if (heed_convert(folder, to, (heed_number_kind)kind, &err))
            fail_msg("%s", err.text);
        heed_engine *found = heed_engine_open(to, NULL, &err);
        if (!found)
            fail_msg("%s", err.text);
        heed_vocab *source, *target;
        assert_int_equal(heed_vocabs_open(to, NULL, NULL, &source, &target, &err), HEED_OK);
        assert_ptr_equal(source, target);
        heed_vocabs_free(source, target);
        heed_engine *e = kind == HEED_NUMBERS_INT8 ? new_int8_engine(m) : new_engine(m);
        heed_real *a = step_logits(found, 1), *b = step_logits(e, 1);
        for (int i = 0; i < ROWS * STEPS * VOCABULARY; i++)
            assert_near((double)a[i], (double)b[i], kind == HEED_NUMBERS_FP16 ? 2e-2 : SAME);
        free(a);
        free(b);
        heed_engine_free(e);
        heed_engine_free(found);
        static const char *const files[] = {"config.json", "model.safetensors", "shared.vocab"};
        for (int i = 0; i < 3; i++) {
            char path[256];
            snprintf(path, sizeof path, "%s/%s", to, files[i]);
            assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(rmdir(to), 0);
    }
    heed_model_free(m);
}

/* Catches: a directory of one side that is not opened or converted, or whose weights are others. */
static void directories_of_one_side(void **state)
{
    (void)state;
    for_each_one_stack(HEED_ARCH_DECODER, check_directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_is_full),
        cmocka_unit_test(shared_beginnings_stay),
        cmocka_unit_test(search_continues_prompts),
        cmocka_unit_test(a_full_context_slides),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(memory_fails_at_every_allocation),
        cmocka_unit_test_setup_teardown(directories_of_one_side, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("decoder only", tests, NULL, NULL);
}
