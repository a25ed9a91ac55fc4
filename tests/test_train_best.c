/* test_train_best.c: which weights a training publishes: those that validate best by the metric
 * that was asked for, ties decided by the loss; averaged over time where an average is kept; the
 * mean of several saves only where it is no worse.  Scores and averages are computed here again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include "train_oracle.h"
#include <strings.h>

/* Validates often, at a rate so high that the losses go up and down. */
#define RESTLESS                                                                                   \
    "--schedule", "constant", "--warmup", "0", "--rate", "0.1", "--max-updates", "40",             \
        "--valid-every", "2", "--save-every", "2", "--keep", "100", "--average", "0",              \
        "--valid-lines", "6"

static double loss_of(const heed_train_progress *p)
{
    return heed_train_measured(p, "loss");
}

static double bleu_of(const heed_train_progress *p)
{
    return -heed_train_measured(p, "BLEU");
}

static double chrf_of(const heed_train_progress *p)
{
    return -heed_train_measured(p, "chrF");
}

/* The validation with the least of a value; of equal ones that with the least loss. */
static const heed_train_progress *least(const struct seen *s,
                                        double (*value)(const heed_train_progress *))
{
    const heed_train_progress *best = &s->validation[0];
    for (int64_t i = 1; i < s->validations; i++) {
        const heed_train_progress *p = &s->validation[i];
        if (value(p) < value(best) || (value(p) == value(best) && loss_of(p) < loss_of(best)))
            best = p;
    }
    return best;
}

/* The published weights are those of this save. */
static void published(const char *m, int64_t update)
{
    struct weights a = read_weights("%s/model.safetensors", m);
    struct weights b = read_weights("%s/training/best.safetensors", m);
    struct weights c = saved_weights(m, update);
    assert_true(distance(a, c) == 0 && distance(b, c) == 0);
    free(a.x);
    free(b.x);
    free(c.x);
}

/* ---- the metric ---- */

/* Catches a best model that is best at something else than --valid-metric says.  BLEU must not be
 * of one mind with the others, so several seeds are tried. */
static void test_metric(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double (*value)(const heed_train_progress *);
    } metrics[] = {{"loss", loss_of}, {"bleu", bleu_of}, {"chrf", chrf_of}};
    int differ[2] = {0}; /* loss and BLEU, BLEU and chrF */
    for (int seed = 1; seed <= 4; seed++) {
        int64_t best[3];
        char number[2] = {(char)('0' + seed), '\0'};
        for (int i = 0; i < 3; i++) {
            const char *name = metrics[i].name;
            struct seen s;
            heed_train_result r = train_seen(name,
                                             MORE(RESTLESS, "--valid-metric", name, "--seed",
                                                  number, "--valid-tokenize", "none"),
                                             &s);
            const heed_train_progress *p = least(&s, metrics[i].value);
            assert_int_equal(r.last.best_update, p->update);
            assert_true(r.last.best.value == fabs(metrics[i].value(p)) && r.last.best.value > 0);
            assert_int_equal(strcasecmp(r.last.best.name, name), 0);
            published(name, p->update);
            best[i] = p->update;
            remove_tree(in_room(name));
        }
        for (int i = 0; i < 2; i++)
            differ[i] += best[i] != best[i + 1];
    }
    assert_true(differ[0] > 0 && differ[1] > 0);
}

/* Catches equal scores that are not told apart by the loss, or by the wrong end of it: of a model
 * that gets no four words right, every BLEU is 0. */
static void test_ties(void **state)
{
    (void)state;
    struct seen s;
    heed_train_result r = train_seen("m", MORE(RESTLESS, "--valid-metric", "bleu"), &s);
    int64_t falls = 0;
    for (int64_t i = 0; i < s.validations; i++) {
        assert_true(bleu_of(&s.validation[i]) == 0);
        falls += i > 0 && loss_of(&s.validation[i]) < loss_of(&s.validation[i - 1]);
    }
    assert_in_range(falls, 3, s.validations - 4); /* or one rule is as good as another */
    const heed_train_progress *p = least(&s, loss_of);
    assert_true(p != &s.validation[0] && p != &s.validation[s.validations - 1]);
    assert_int_equal(r.last.best_update, p->update);
    published("m", p->update);
}

/* ---- scores ---- */

struct texts {
    char *bytes;
    const char *line[64];
    int64_t count;
};

static struct texts read_lines(const char *name)
{
    size_t n;
    struct texts t = {.bytes = bytes_of(in_room(name), &n)};
    for (char *at = strtok(t.bytes, "\n"); at; at = strtok(NULL, "\n"))
        t.line[t.count++] = at;
    return t;
}

/* Catches scores of a validation that are not those of the weights it validates: the published
 * model is scored again, as everyone can. */
static void test_scores(void **state)
{
    (void)state;
    static const char *const averages[] = {"0", "0.9"};
    write_pairs(in_room("valid.s"), in_room("valid.t"), 40, 2);
    struct texts source = read_lines("valid.s"), target = read_lines("valid.t");
    for (int i = 0; i < 2; i++) {
        struct seen s;
        heed_error err = {0};
        train_seen("m",
                   MORE(RESTLESS, "--valid-every", "0", "--valid-lines", "40", "--valid-beam", "2",
                        "--rate", "0.02", "--ema", averages[i], "--max-updates", "60",
                        "--valid-tokenize", "none"),
                   &s);
        assert_int_equal(s.validations, 1);
        heed_arena *arena = heed_arena_new(NULL, &err);
        heed_translator *tr = heed_translator_open(in_room("m"), 1, NULL, &err);
        assert_true(arena && tr);
        heed_hypothesis scored[64];
        assert_int_equal(
            heed_score(tr, source.line, target.line, source.count, arena, scored, &err), HEED_OK);
        double log_p = 0, tokens = 0;
        for (int64_t k = 0; k < source.count; k++) {
            log_p += scored[k].log_p;
            tokens += (double)scored[k].count;
        }
        assert_true(within(loss_of(&s.validation[0]), -log_p / tokens, 1e-4));

        heed_search_options how = {
            .beam = 2, .n_best = 1, .length_penalty = 0.6, .extra_length = 10};
        heed_translation out[64];
        const char *text[64];
        assert_int_equal(heed_translate(tr, &how, source.line, source.count, arena, out, &err),
                         HEED_OK);
        for (int64_t k = 0; k < source.count; k++)
            text[k] = out[k].text;
        heed_bleu_options bleu = {.tokenize = HEED_TOKENIZE_NONE};
        heed_chrf_options chrf = {0};
        heed_bleu_result b;
        double c;
        assert_int_equal(heed_bleu(&bleu, text, target.line, source.count, &b, &err), HEED_OK);
        assert_int_equal(heed_chrf(&chrf, text, target.line, source.count, &c, &err), HEED_OK);
        assert_true(c > 0 && within(-chrf_of(&s.validation[0]), c, 1e-9));
        assert_true(b.score > 0 && within(-bleu_of(&s.validation[0]), b.score, 1e-9));
        heed_translator_free(tr);
        heed_arena_free(arena);
        remove_tree(in_room("m"));
    }
    free(source.bytes);
    free(target.bytes);
}

/* ---- averages ---- */

/* Catches a best model or the weights that a removed save leaves behind that are the last ones
 * instead of their average over time, and a save that holds the average for the weights. */
static void test_moving_average(void **state)
{
    (void)state;
    enum { UPDATES = 12, KEPT = 4 };
    /* Once with every save there, to take the average again; once with all but one removed. */
    train_seen("all",
               MORE(RESTLESS, "--ema", "0.8", "--max-updates", "12", "--save-every", "1",
                    "--valid-every", "0"),
               NULL);
    train_seen("few",
               MORE(RESTLESS, "--ema", "0.8", "--max-updates", "12", "--save-every", "1",
                    "--valid-every", "0", "--keep", "1", "--average", "5"),
               NULL);
    struct weights mean = saved_weights("all", 0);
    for (int n = 1; n <= UPDATES; n++) {
        struct weights w = saved_weights("all", n);
        const double decay = fmin(0.8, (double)n / (9 + n)); /* (1+n)/(10+n), n from 0 */
        for (int64_t i = 0; i < mean.n; i++)
            mean.x[i] = decay * mean.x[i] + (1 - decay) * w.x[i];
        const double apart = distance(mean, w);
        assert_true(apart > 0.1);
        struct weights other = read_weights("all/training/step-%d/average.safetensors", n);
        assert_true(distance(mean, other) < 1e-4 * apart);
        free(other.x);
        if (n >= UPDATES - KEPT && n < UPDATES) {
            other = read_weights("few/training/weights/step-%d.safetensors", n);
            assert_true(distance(mean, other) < 1e-4 * apart);
            free(other.x);
        }
        if (n == UPDATES) {
            other = read_weights("all/model.safetensors");
            assert_true(distance(mean, other) < 1e-4 * apart);
            free(other.x);
            other = read_weights("all/training/best.safetensors");
            assert_true(distance(mean, other) < 1e-4 * apart);
            free(other.x);
        }
        free(w.x);
    }
    free(mean.x);
}

/* Catches a mean of saves that is published though a single save is better: while a model still
 * learns, the mean lags behind. */
static void test_worse_mean(void **state)
{
    (void)state;
    static const char *const averages[] = {"0", "0.5"};
    for (int i = 0; i < 2; i++) {
        heed_train_result r =
            train_seen("m",
                       MORE(RESTLESS, "--rate", "0.001", "--max-updates", "20", "--valid-every",
                            "10", "--average", "2", "--ema", averages[i]),
                       NULL);
        assert_true(r.average_score > r.last.best.value); /* losses */
        assert_int_equal(r.last.best_update, 20);
        assert_int_equal(r.averaged, 0);
        struct weights a = read_weights("m/model.safetensors");
        struct weights b = read_weights(i ? "m/training/step-20/average.safetensors"
                                          : "m/training/step-20/model.safetensors");
        assert_true(distance(a, b) == 0);
        free(a.x);
        free(b.x);
        remove_tree(in_room("m"));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_metric),         TEST(test_ties),       TEST(test_scores),
        TEST(test_moving_average), TEST(test_worse_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
