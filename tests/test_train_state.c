/* test_train_state.c: state.json of a save: every number comes back, and a file that another
 * program has changed, or for which there is no memory, is refused and not half read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "temp_folder.h"
#include "train/trainer.h"
#include <jansson.h>
#include <math.h>

#define PATH in_folder("state.json")

/* No two numbers are equal. */
static const heed__train_state some_state = {
    .update = 1,
    .position = {.epoch = 2, .at = {3, 4, 5}},
    .rollbacks = 6,
    .seconds = 7.25,
    .valid_seconds = 8.25,
    .measure = {{"loss", 9.25, false}, {"BLEU", 10.25, true}},
    .measures = 2,
    .best_update = 11,
    .best = {"BLEU", 12.25, true},
    .best_first = 13.25,
    .stale = 14,
    .valid_update = 15,
    .sum = {16.25, 17.25},
    .terms = 18.25,
    .log_bytes = 19,
    .data = {{"pairs", 20}, {"checksum", 21}},
    .n_data = 2,
    .candidates = {{22, 23.25}, {24, 25.25}},
    .n_candidates = 2,
    .saves = {26, 27},
    .n_saves = 2,
};
static const heed__save_parts some_parts = {
    .optimizer = {28, 29},
    .ema = {30, 31},
    .sets = 2,
    .files = {{"model.safetensors", {.bytes = 32, .crc = 33}},
              {"model-b.safetensors", {.bytes = 34, .crc = 0xffffffffu}}},
    .n_files = 2,
};

static void write_state(const heed__train_state *s)
{
    heed_error err = {0};
    if (heed__state_write(PATH, s, &some_parts, &err))
        fail_msg("%s", err.text);
}

struct read_state {
    heed__train_state s;
    heed__save_parts parts;
    heed_arena *arena;
    heed_error err;
};

static int setup(void **state)
{
    static struct read_state r;
    r = (struct read_state){.arena = heed_arena_new(NULL, NULL)};
    *state = &r;
    return r.arena ? make_folder(NULL) : -1;
}

static int teardown(void **state)
{
    heed_arena_free(((struct read_state *)*state)->arena);
    return remove_folder(state);
}

static heed_status read_back(struct read_state *r)
{
    r->err = (heed_error){0};
    return heed__state_read(PATH, &r->s, &r->parts, r->arena, &r->err);
}

static void same_measure(const heed_measure *a, const heed_measure *b)
{
    assert_string_equal(a->name, b->name);
    assert_true(a->value == b->value && a->larger_is_better == b->larger_is_better);
}

/* Catches a field that is written under another's name, cut, or left out. */
static void test_round_trip(void **state)
{
    struct read_state *r = *state;
    const heed__train_state *s = &some_state;
    write_state(s);
    assert_int_equal(read_back(r), HEED_OK);
    assert_int_equal(r->s.update, 1);
    assert_memory_equal(&r->s.position, &s->position, sizeof s->position);
    assert_int_equal(r->s.rollbacks, 6);
    assert_true(r->s.seconds == 7.25 && r->s.valid_seconds == 8.25);
    assert_int_equal(r->s.measures, 2);
    same_measure(&r->s.measure[0], &s->measure[0]);
    same_measure(&r->s.measure[1], &s->measure[1]);
    assert_int_equal(r->s.best_update, 11);
    same_measure(&r->s.best, &s->best);
    assert_true(r->s.best_first == 13.25);
    assert_int_equal(r->s.stale, 14);
    assert_int_equal(r->s.valid_update, 15);
    assert_true(r->s.sum[0] == 16.25 && r->s.sum[1] == 17.25 && r->s.terms == 18.25);
    assert_int_equal(r->s.log_bytes, 19);
    assert_int_equal(r->s.n_data, 2);
    assert_string_equal(r->s.data[1].name, "checksum");
    assert_int_equal(r->s.data[1].value, 21);
    assert_int_equal(r->s.n_candidates, 2);
    assert_int_equal(r->s.candidates[1].update, 24);
    assert_true(r->s.candidates[1].score == 25.25);
    assert_int_equal(r->s.n_saves, 2);
    assert_int_equal(r->s.saves[1], 27);
    assert_int_equal(r->parts.sets, 2);
    assert_memory_equal(r->parts.optimizer, some_parts.optimizer, sizeof some_parts.optimizer);
    assert_memory_equal(r->parts.ema, some_parts.ema, sizeof some_parts.ema);
    assert_int_equal(r->parts.n_files, 2);
    assert_string_equal(r->parts.files[1].name, "model-b.safetensors");
    assert_int_equal(r->parts.files[1].sum.bytes, 34);
    assert_int_equal(r->parts.files[1].sum.crc, 0xffffffffu);
}

/* Catches numbers that JSON does not have and that come back as others: of a run that has not
 * validated yet, and of one that diverges. */
static void test_not_finite(void **state)
{
    struct read_state *r = *state;
    heed__train_state s = some_state;
    s.best = (heed_measure){.value = NAN};
    s.best_first = NAN;
    s.measure[0].value = INFINITY;
    s.sum[1] = -INFINITY;
    s.candidates[0].score = NAN;
    write_state(&s);
    assert_int_equal(read_back(r), HEED_OK);
    assert_null(r->s.best.name);
    assert_true(isnan(r->s.best.value) && isnan(r->s.best_first));
    assert_true(isnan(r->s.measure[0].value) && r->s.measure[1].value == 10.25);
    assert_true(isnan(r->s.sum[1]) && isnan(r->s.candidates[0].score));
}

/* ---- what is not as it was written ---- */

static json_t *list_of(int n, const char *item)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_loads(item, JSON_DECODE_ANY, NULL));
    return list;
}

/* The state with one field replaced, or left out if `value` is NULL.  Takes the value. */
static void rewrite(const char *field, json_t *value)
{
    json_t *root;
    write_state(&some_state);
    root = json_load_file(PATH, 0, NULL);
    assert_non_null(root);
    assert_non_null(json_object_get(root, field));
    if (value)
        json_object_set_new(root, field, value);
    else
        json_object_del(root, field);
    assert_int_equal(json_dump_file(root, PATH, 0), 0);
    json_decref(root);
}

static void refused(struct read_state *r, const char *field, const char *named)
{
    char text[64];
    snprintf(text, sizeof text, "'%s' is missing or wrong", named);
    if (read_back(r) != HEED_FORMAT || !strstr(r->err.text, text))
        fail_msg("with another '%s': status %d, '%s'", field, (int)r->err.status, r->err.text);
}

static const char *const numbers[] = {
    "update",    "position.epoch", "position.at[0]", "position.at[1]", "position.at[2]",
    "rollbacks", "best_update",    "stale",          "valid_update",   "log_bytes",
    "seconds",   "valid_seconds",  "best_first",     "terms",          "format"};
static const struct {
    const char *name;
    int most;
    const char *item; /* a sound one */
} lists[] = {
    {"sets", HEED_MAX_SETS, "{}"},
    {"measures", HEED_MAX_MEASURES, "{\"name\": \"x\", \"value\": 1}"},
    {"data", HEED_MAX_FINGERPRINTS, "{\"name\": \"x\", \"value\": 1}"},
    {"candidates", HEED_MAX_AVERAGE, "[1, 2.5]"},
    {"saves", HEED_MAX_KEEP, "1"},
    {"files", HEED_SAVE_FILES, "{\"name\": \"x\", \"bytes\": 1, \"crc32\": 2}"},
};

/* Catches a field that is missing or of another kind and is read as zero, and a list that is
 * longer than what it is read into. */
static void test_wrong_fields(void **state)
{
    struct read_state *r = *state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        rewrite(numbers[i], NULL);
        refused(r, numbers[i], numbers[i]);
        rewrite(numbers[i], json_string("7"));
        refused(r, numbers[i], numbers[i]);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        rewrite(lists[i].name, NULL);
        refused(r, lists[i].name, lists[i].name);
        rewrite(lists[i].name, json_integer(1));
        refused(r, lists[i].name, lists[i].name);
        rewrite(lists[i].name, list_of(lists[i].most + 1, lists[i].item));
        refused(r, lists[i].name, lists[i].name);
        rewrite(lists[i].name, list_of(lists[i].most, lists[i].item));
        if (read_back(r))
            fail_msg("%d of '%s': %s", lists[i].most, lists[i].name, r->err.text);
    }
    /* The first thing that is wrong is the one that is named. */
    rewrite("update", NULL);
    json_t *root = json_load_file(PATH, 0, NULL);
    json_object_set_new(root, "measures", list_of(1, "{}"));
    json_object_set_new(root, "saves", json_null());
    assert_int_equal(json_dump_file(root, PATH, 0), 0);
    json_decref(root);
    refused(r, "update", "update");
}

/* Catches a name without which a measure, a file or data means nothing, and one of a file that
 * leads out of the save. */
static void test_wrong_names(void **state)
{
    struct read_state *r = *state;
    static const char *const files[] = {
        "{\"bytes\": 1, \"crc32\": 2}", "{\"name\": 5, \"bytes\": 1, \"crc32\": 2}",
        "{\"name\": \"../x\", \"bytes\": 1, \"crc32\": 2}",
        "{\"name\": \"0123456789012345678901234567890123456789012345678901234567890123\"}"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        rewrite("files", list_of(1, files[i]));
        refused(r, files[i], "files");
        assert_int_equal(r->parts.n_files, 0);
    }
    static const char *const named[] = {"measures", "data"};
    for (size_t i = 0; i < 2; i++) {
        rewrite(named[i], list_of(2, "{\"value\": 1}"));
        refused(r, named[i], "name");
    }
    rewrite("best", json_pack("{s:f}", "value", 1.5));
    refused(r, "best", "name");
    rewrite("format", json_integer(1));
    assert_int_equal(read_back(r), HEED_STATE);
    rewrite("format", json_integer(3));
    assert_int_equal(read_back(r), HEED_STATE);
    assert_non_null(strstr(r->err.text, "is of format 3, expected 2"));
}

/* Catches a save for which there is no memory and that is called damaged: then an older one would
 * be taken in its place. */
static void test_no_memory_for_names(void **state)
{
    struct read_state *r = *state;
    write_state(&some_state);
    for (int n = 2;; n++) { /* the first call is the arena */
        struct failing f = {.fail_at = n};
        const heed_allocator a = failing_allocator(&f);
        heed_arena *arena = heed_arena_new(&a, NULL), *own = r->arena;
        assert_non_null(arena);
        r->arena = arena;
        const heed_status status = read_back(r);
        r->arena = own;
        heed_arena_free(arena);
        assert_int_equal(f.held, 0);
        assert_int_equal(status, f.calls >= n ? HEED_MEMORY : HEED_OK);
        if (!status)
            break;
        assert_non_null(strstr(r->err.text, "out of memory"));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_round_trip), TEST(test_not_finite),
                                       TEST(test_wrong_fields), TEST(test_wrong_names),
                                       TEST(test_no_memory_for_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
