/* test_stream_lines.c: lines that come one by one: in order, at once where somebody waits, side by
 * side where they are many, in constant memory, whatever is in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <time.h>

#include "failing_allocator.h"
#include "made_up.h"
#include "temp_folder.h"
#include "toy_translator.h"
#include "translate/translator.h"

enum { LINES = 400, MOST = 20000, WORKERS = 4 };

static heed_model *toy;
static heed_vocab *vocab;
static struct failing memory;
static struct made_up prototype, copies[WORKERS + 1];
static const heed_search_options beam_3 = {
    .beam = 3, .length_penalty = 0.6, .n_best = 1, .extra_length = 2};

/* ---- a translator whose models are made up ---- */

static int opened;

static heed_status begin_made_up(const heed_engine *e, const heed_session_options *o,
                                 heed_session *s, heed_error *err)
{
    (void)e, (void)o, (void)err;
    assert_true(opened <= WORKERS);
    copies[opened] = prototype;
    s->stepper = made_up_stepper(&copies[opened++]);
    return HEED_OK;
}

static heed_translator *new_translator(int threads)
{
    heed_error err = {0};
    memory = (struct failing){0};
    heed_allocator a = failing_allocator(&memory);
    heed_translator *tr = heed_translator_new(toy, vocab, vocab, threads, &a, &err);
    if (!tr)
        fail_msg("%s", err.text);
    opened = 0;
    tr->engine->begin = begin_made_up;
    return tr;
}

static int set_up(void **state)
{
    heed_error err = {0};
    heed_model_config config = toy_config;
    config.longest = 128;
    if (make_folder(state))
        return -1;
    toy_write_vocabulary(in_folder("v"));
    vocab = heed_vocab_open(in_folder("v"), NULL, NULL, &err);
    toy = heed_model_new(&config, 1, NULL, &err);
    prototype = (struct made_up){.seed = 7,
                                 .vocabulary = toy_config.target_vocabulary,
                                 .longest = config.longest,
                                 .sharpness = 2,
                                 .eos_bias = 1,
                                 .grid = 0.25,
                                 .joins = true};
    if (err.status)
        print_error("%s\n", err.text);
    return err.status;
}

static int tear_down(void **state)
{
    heed_model_free(toy);
    heed_vocab_free(vocab);
    return remove_folder(state);
}

/* A line of n words drawn from the seed. */
static void draw_line(char *text, uint64_t seed, int64_t n)
{
    heed_rng_key key = {.seed = seed};
    heed_rng rng = heed_rng_stream(&key);
    for (int64_t i = 0; i < n; i++) {
        *text++ = (char)('a' + heed_rng_below(&rng, (uint64_t)i, TOY_WORDS));
        *text++ = ' ';
    }
    *text = '\0';
}

/* ---- a stream that watches ---- */

struct answer {
    char *text; /* the test's */
    double score, log_p;
};

struct stream {
    int64_t count, read, done;
    const int64_t *order;  /* (count) which line comes when; NULL: in order */
    struct answer *answer; /* (count) by line; NULL: not wanted */
    bool one_by_one;       /* the next line comes when the answer to the last one is there */
    bool told;             /* that none has come yet, since the last line */
    int64_t fail_read, fail_done;
    int calls_at, calls; /* allocator calls when so many lines were done */
    uint64_t first_number;
    const char *prefix;
};

static char line_text[1 << 10];

static int64_t line_of(const struct stream *s, int64_t i)
{
    return s->order ? s->order[i] : i;
}

static heed_status next_line(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct stream *s = context;
    assert_true(line->text == NULL);
    if (s->read + 1 == s->fail_read) {
        err->status = HEED_IO;
        strcpy(err->text, "no more");
        return HEED_IO;
    }
    if (s->read == s->count)
        return HEED_OK;
    if (s->one_by_one && !wait)
        return HEED_OK;
    assert_true(!s->one_by_one || s->done == s->read); /* nobody waits with an answer in hand */
    int64_t i = line_of(s, s->read++);
    draw_line(line_text, (uint64_t)i + 31, 1 + i * 13 % 120);
    *line = (heed_source_line){.text = line_text,
                               .prefix = s->prefix,
                               .number = s->first_number + (uint64_t)i,
                               .tag = (void *)(intptr_t)i};
    return HEED_OK;
}

static heed_status done_line(void *context, const heed_source_line *line, const heed_translation *t,
                             heed_error *err)
{
    struct stream *s = context;
    int64_t i = line_of(s, s->done++);
    assert_int_equal((intptr_t)line->tag, i);
    assert_int_equal(line->number, s->first_number + (uint64_t)i);
    assert_null(line->text);
    assert_non_null(t->text);
    if (s->done == s->fail_done) {
        err->status = HEED_STATE;
        strcpy(err->text, "enough");
        return HEED_STATE;
    }
    if (s->answer)
        s->answer[i] = (struct answer){strdup(t->text), t->score, t->log_p};
    if (s->done == s->calls_at)
        s->calls = memory.calls;
    return HEED_OK;
}

static heed_status translate(heed_translator *tr, const heed_search_options *o,
                             heed_stream_options so, struct stream *s, heed_error *err)
{
    heed_line_stream stream = {s, next_line, done_line};
    return heed_translate_stream(tr, o, &so, &stream, err);
}

static void free_answers(struct answer *a)
{
    for (int64_t i = 0; i < LINES; i++)
        free(a[i].text);
}

/* ---- the tests ---- */

/* Catches a text or a score, to the last bit, that depends on the batch, the order of the lines or
 * the number of workers. */
static void test_same_bits_everywhere(void **state)
{
    (void)state;
    static struct answer alone[LINES], answer[LINES];
    static int64_t order[LINES];
    static const int64_t batches[] = {1, 7, 64};
    struct stream s = {.count = LINES, .answer = alone};
    heed_error err = {0};
    for (int64_t i = 0; i < LINES; i++)
        order[i] = i * 177 % LINES;
    for (int way = 0; way < 19; way++) {
        heed_translator *tr = new_translator(1);
        heed_stream_options so = {.workers = way ? 1 << (way - 1) % 3 : 1,
                                  .batch = way ? batches[(way - 1) / 3 % 3] : 1};
        s.order = way > 9 ? order : NULL;
        s.read = s.done = 0;
        if (translate(tr, &beam_3, so, &s, &err))
            fail_msg("%s", err.text);
        assert_int_equal(s.done, LINES);
        heed_translator_free(tr);
        assert_int_equal(memory.held, 0);
        for (int64_t i = 0; way && i < LINES; i++) {
            assert_string_equal(answer[i].text, alone[i].text);
            assert_memory_equal(&answer[i].score, &alone[i].score, sizeof alone[i].score);
            assert_memory_equal(&answer[i].log_p, &alone[i].log_p, sizeof alone[i].log_p);
        }
        if (way)
            free_answers(answer);
        s.answer = answer;
    }
    free_answers(alone);
}

/* Catches a line that is kept until the next one comes, by any number of workers. */
static void test_answers_at_once(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 3; workers++) {
        heed_translator *tr = new_translator(1);
        struct stream s = {.count = 30, .one_by_one = true};
        heed_error err = {0};
        assert_int_equal(
            translate(tr, &beam_3, (heed_stream_options){.workers = workers}, &s, &err), HEED_OK);
        assert_int_equal(s.done, 30);
        heed_translator_free(tr);
    }
}

/* Catches threads that are started for a line or two, or not for many; threads inside of a model
 * that workers have too. */
static void test_chooses_workers(void **state)
{
    (void)state;
    for (int64_t count = 2; count <= 200; count += 198) {
        heed_translator *tr = new_translator(3);
        struct stream s = {.count = count};
        heed_error err = {0};
        assert_int_equal(translate(tr, &beam_3, (heed_stream_options){0}, &s, &err), HEED_OK);
        assert_int_equal(s.done, count);
        assert_int_equal(opened, count == 2 ? 1 : 3);
        assert_int_equal(tr->context[0].threads, count == 2 ? 3 : 0);
        assert_int_equal(tr->context[1].threads, count == 2 ? 0 : 1);
        assert_true(count == 2 || copies[2].steps > 0);
        heed_translator_free(tr);
    }
}

/* Catches a worker that takes all there is and leaves nothing for the others. */
static void test_every_worker_gets_some(void **state)
{
    (void)state;
    prototype.joins = false;
    heed_translator *tr = new_translator(1);
    struct stream s = {.count = 24};
    heed_search_options o = beam_3;
    heed_error err = {0};
    o.beam = 1;
    assert_int_equal(translate(tr, &o, (heed_stream_options){.workers = 3}, &s, &err), HEED_OK);
    for (int i = 0; i < 3; i++)
        assert_true(copies[i].most_rows <= 24 / (2 * 3));
    heed_translator_free(tr);
    prototype.joins = true;
}

static _Atomic int64_t lines_read;

static bool three_are_read(void)
{
    return lines_read >= 3;
}

static heed_status next_late(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    static int asked;
    struct stream *s = context;
    if (!wait && ++asked % 3)
        return HEED_OK;
    heed_status status = next_line(context, wait, line, err);
    lines_read = s->read;
    return status;
}

/* Catches lines that come while others are under way and are not looked for until these are done:
 * here the first cannot be done before the third has come. */
static void test_reads_while_it_works(void **state)
{
    (void)state;
    prototype.may_step = three_are_read;
    for (int workers = 2; workers <= 3; workers++) {
        heed_translator *tr = new_translator(1);
        struct stream s = {.count = 6};
        heed_line_stream stream = {&s, next_late, done_line};
        heed_error err = {0};
        lines_read = 0;
        double begin = heed_clock_seconds();
        assert_int_equal(heed_translate_stream(tr, &beam_3,
                                               &(heed_stream_options){.workers = workers}, &stream,
                                               &err),
                         HEED_OK);
        assert_int_equal(s.done, 6);
        assert_true(heed_clock_seconds() - begin < 8);
        heed_translator_free(tr);
    }
    prototype.may_step = NULL;
}

/* Catches memory that grows with the lines that have passed. */
static void test_memory_stays(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 2; workers++) {
        heed_translator *tr = new_translator(1);
        struct stream s = {.count = MOST, .calls_at = MOST / 2};
        heed_search_options o = beam_3;
        o.beam = 1;
        o.max_length = 3;
        heed_error err = {0};
        heed_stream_options so = {.workers = workers};
        assert_int_equal(translate(tr, &o, so, &s, &err), HEED_OK);
        assert_int_equal(s.done, MOST);
        assert_int_equal(memory.calls, s.calls);
        assert_true(memory.held < 16 << 20);
        int calls = memory.calls;
        s.read = s.done = 0;
        assert_int_equal(translate(tr, &o, so, &s, &err), HEED_OK);
        assert_int_equal(memory.calls, calls);
        heed_translator_free(tr);
        assert_int_equal(memory.held, 0);
    }
}

/* Catches a failure of either side, or of a model, that hangs, is lost, or leaves a thread behind;
 * and lines that are lost because a later one could not be read. */
static void test_failures(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        heed_translator *tr = new_translator(1);
        struct stream s = {.count = 3000,
                           .fail_read = i / 4 == 0 ? 1 + i % 4 * 700 : 0,
                           .fail_done = i / 4 == 1 ? 1 + i % 4 * 500 : 0};
        heed_error err = {0};
        prototype.bad_step = i / 4 == 2 ? 1 + i % 4 * 40 : 0;
        prototype.bad_token = 5;
        prototype.bad_value = (heed_real)NAN;
        static const heed_status expected[] = {HEED_IO, HEED_STATE, HEED_NUMERIC};
        assert_int_equal(
            translate(tr, &beam_3, (heed_stream_options){.workers = 1 + i % 3}, &s, &err),
            expected[i / 4]);
        assert_int_equal(err.status, expected[i / 4]);
        if (s.fail_read) {
            assert_string_equal(err.text, "no more");
            assert_int_equal(s.done, s.fail_read - 1);
        }
        prototype.bad_step = 0;
        heed_translator_free(tr);
        assert_int_equal(memory.held, 0);
    }
}

/* Catches a beginning that is not written, pieces that are banned by name and written, and names
 * that are no pieces. */
static void test_prefix_and_ban(void **state)
{
    (void)state;
    static struct answer answer[LINES];
    heed_translator *tr = new_translator(1);
    struct stream s = {.count = 50, .answer = answer, .prefix = "K b B"};
    const char *ban[] = {"E", "f"};
    heed_search_options o = beam_3;
    heed_error err = {0};
    o.ban = (heed_option_list){ban, 2};
    assert_int_equal(translate(tr, &o, (heed_stream_options){0}, &s, &err), HEED_OK);
    for (int64_t i = 0; i < 50; i++) {
        assert_int_equal(strncmp(answer[i].text, "K b B", 5), 0);
        assert_null(strpbrk(answer[i].text, "Ef"));
    }
    free_answers(answer);
    s = (struct stream){.count = 1};
    ban[1] = "zebra";
    assert_int_equal(translate(tr, &o, (heed_stream_options){0}, &s, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "the piece 'zebra' cannot be banned: the target vocabulary does "
                                  "not have it");
    err = (heed_error){0};
    ban[1] = "</s>";
    assert_int_equal(translate(tr, &o, (heed_stream_options){0}, &s, &err), HEED_ARGUMENT);
    assert_string_equal(err.text, "the piece '</s>' cannot be banned: no sentence would end");
    heed_translator_free(tr);
}

/* One line: four times the same sentence, two of which go together. */
static heed_status next_long(void *context, bool wait, heed_source_line *line, heed_error *err)
{
    struct stream *s = context;
    (void)wait, (void)err;
    line_text[0] = '\0';
    for (int i = 0; i < 4 * 60; i++)
        strcat(line_text, i % 60 == 59 ? ". " : i % 60 ? "b " : "A ");
    if (s->read++ == 0)
        *line = (heed_source_line){.text = line_text, .prefix = s->prefix};
    return HEED_OK;
}

/* Catches parts of a line that all begin in the way the line is to begin, and parts that are drawn
 * with the same random numbers. */
static void test_parts_of_a_line(void **state)
{
    (void)state;
    struct answer answer = {0};
    heed_translator *tr = new_translator(1);
    struct stream s = {.count = 1, .answer = &answer, .prefix = "K K K K K K"};
    heed_line_stream stream = {&s, next_long, done_line};
    heed_search_options o = {.beam = 1,
                             .n_best = 1,
                             .extra_length = 2,
                             .min_length = 20,
                             .sample = true,
                             .temperature = 1};
    heed_error err = {0};
    assert_int_equal(heed_translate_stream(tr, &o, &(heed_stream_options){0}, &stream, &err),
                     HEED_OK);
    assert_int_equal(strncmp(answer.text, s.prefix, strlen(s.prefix)), 0);
    assert_null(strstr(answer.text + strlen(s.prefix), s.prefix));
    free(answer.text);
    s.read = s.done = 0;
    s.prefix = NULL;
    assert_int_equal(heed_translate_stream(tr, &o, &(heed_stream_options){0}, &stream, &err),
                     HEED_OK);
    size_t half = strlen(answer.text) / 2;
    assert_true(half > 20);
    assert_int_not_equal(strncmp(answer.text, answer.text + half + 1, half), 0);
    free(answer.text);
    heed_translator_free(tr);
}

/* Catches draws that depend on how lines are grouped, or not on their number. */
static void test_draws_by_number(void **state)
{
    (void)state;
    static struct answer first[LINES], answer[LINES];
    heed_search_options o = beam_3;
    heed_error err = {0};
    o.sample = true;
    o.temperature = 1;
    for (int way = 0; way < 3; way++) {
        heed_translator *tr = new_translator(1);
        struct stream s = {.count = LINES, .answer = way ? answer : first};
        s.first_number = way == 2 ? 1000 : 0;
        heed_stream_options so = {.workers = way == 1 ? 3 : 1, .batch = way == 1 ? 5 : 0};
        assert_int_equal(translate(tr, &o, so, &s, &err), HEED_OK);
        int64_t same = 0;
        for (int64_t i = 0; way && i < LINES; i++)
            same += strcmp(first[i].text, answer[i].text) == 0;
        assert_true(way == 0 || (way == 1 ? same == LINES : same < LINES / 2));
        if (way)
            free_answers(answer);
        heed_translator_free(tr);
    }
    free_answers(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_everywhere),
        cmocka_unit_test(test_answers_at_once),
        cmocka_unit_test(test_chooses_workers),
        cmocka_unit_test(test_memory_stays),
        cmocka_unit_test(test_every_worker_gets_some),
        cmocka_unit_test(test_reads_while_it_works),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_prefix_and_ban),
        cmocka_unit_test(test_draws_by_number),
        cmocka_unit_test(test_parts_of_a_line),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
