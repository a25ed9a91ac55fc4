/* test_pointer.c: the Pointer Network: its gradient, packing, search, and what answers are worth.
 */
#include "labs/geometry.h"
#include "labs/pointer.h"
#include "layer_check.h"

#ifdef HEED_DOUBLE
#define CLOSE 1e-10
#else
#define CLOSE 2e-5 /* sums of a dozen log-probabilities in float */
#endif

enum { EXAMPLES = 5, UNITS = 6 };

/* A network with random weights, examples of 3 to 5 points, and a tape. */
struct fixture {
    pointer_task task;
    heed_params *params;
    pointer_net net;
    heed_tape *tape;
    heed_arena *arena;
    pointer_example examples[EXAMPLES];
};

static struct fixture fixture_new(pointer_task task)
{
    struct fixture f = {.task = task,
                        .params = heed_params_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL),
                        .arena = heed_arena_new(NULL, NULL)};
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 8});
    uint64_t next = 0;
    pointer_build(&f.net, heed_params_scope(f.params), task, UNITS);
    assert_int_equal(heed_params_finish(f.params, 2, NULL), HEED_OK);
    for (int64_t i = 0; i < heed_params_size(f.params); i++)
        heed_params_values(f.params)[i] *= 3; /* far from uniform */
    for (int i = 0; i < EXAMPLES; i++)
        assert_true(pointer_draw(task, 3 + i % 3, &rng, &next, f.arena, &f.examples[i]));
    return f;
}

static void fixture_free(struct fixture *f)
{
    heed_tape_free(f->tape);
    heed_params_free(f->params);
    heed_arena_free(f->arena);
}

static double loss_of(struct fixture *f, const pointer_example *e, int64_t count)
{
    pointer_batch b;
    heed_tape_reset(f->tape);
    heed_tape_set_recording(f->tape, false);
    assert_true(pointer_pack(f->tape, f->task, e, count, &b));
    heed_tensor *loss = pointer_loss(f->tape, &f->net, &b);
    assert_string_equal(heed_tape_error(f->tape)->text, "");
    return (double)heed_tensor_data(loss)[0];
}

static int run_loss(heed_tape *t, void *context, heed_tensor **out)
{
    struct fixture *f = context;
    pointer_batch b;
    assert_true(pointer_pack(t, f->task, f->examples, EXAMPLES, &b));
    out[0] = pointer_loss(t, &f->net, &b);
    return 1;
}

/* Catches a wrong derivative anywhere between the points and the loss. */
static void gradient(void **state)
{
    (void)state;
    struct fixture f = fixture_new(POINTER_HULL);
    layer_check(f.params, run_loss, &f);
    fixture_free(&f);
}

/* Catches a softmax over the points of another example, or over padding. */
static void packed_is_single(void **state)
{
    (void)state;
    for (pointer_task task = POINTER_SORT; task <= POINTER_TSP; task++) {
        struct fixture f = fixture_new(task);
        double sum = 0, all = loss_of(&f, f.examples, EXAMPLES);
        for (int i = 0; i < EXAMPLES; i++)
            sum += loss_of(&f, &f.examples[i], 1);
        assert_true(fabs(all - sum) <= CLOSE * all);
        fixture_free(&f);
    }
}

static void search(struct fixture *f, const pointer_example *e, int64_t count, int64_t beam,
                   bool once, pointer_found *found)
{
    pointer_batch b;
    heed_tape_reset(f->tape);
    heed_tape_set_recording(f->tape, false);
    assert_true(pointer_pack(f->tape, f->task, e, count, &b));
    assert_int_equal(pointer_search(f->tape, &f->net, f->task, &b, beam, once, found), HEED_OK);
}

/* The answer with the smallest loss among all orders of e's points behind `done`. */
static double best_order(struct fixture *f, const pointer_example *e, int32_t *order, int64_t done,
                         int32_t *best)
{
    if (done == e->n) {
        pointer_example as = {e->n, e->n, e->points, order};
        return loss_of(f, &as, 1);
    }
    double least = INFINITY;
    for (int64_t i = done; i < e->n; i++) {
        int32_t kept = order[done], tried[8];
        order[done] = order[i];
        order[i] = kept;
        double loss = best_order(f, e, order, done + 1, tried);
        if (loss < least) {
            least = loss;
            memcpy(best, done + 1 == e->n ? order : tried, sizeof tried);
        }
        order[i] = order[done];
        order[done] = kept;
    }
    return least;
}

/* Catches a beam that loses hypotheses, mixes their states, or scores them otherwise than training
 * does: a beam that is wide enough finds what enumeration finds. */
static void wide_beam_is_enumeration(void **state)
{
    (void)state;
    struct fixture f = fixture_new(POINTER_TSP);
    pointer_found found[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) {
        int32_t order[8] = {0, 1, 2, 3, 4}, best[8];
        best_order(&f, &f.examples[i], order, 0, best);
        search(&f, &f.examples[i], 1, 200, true, found);
        assert_int_equal(found[0].answers, f.examples[i].n);
        assert_memory_equal(found[0].answer, best, (size_t)f.examples[i].n * sizeof *best);
    }
    fixture_free(&f);
}

/* Catches a search that depends on what else is in the batch; a tour that visits a point twice; a
 * wider beam that finds less; and an answer that never ends. */
static void searches_alone(void **state)
{
    (void)state;
    for (pointer_task task = POINTER_SORT; task <= POINTER_TSP; task++) {
        struct fixture f = fixture_new(task);
        pointer_found all[EXAMPLES], one;
        int32_t kept[EXAMPLES][64];
        int64_t counts[EXAMPLES];
        search(&f, f.examples, EXAMPLES, 3, task == POINTER_TSP, all);
        for (int i = 0; i < EXAMPLES; i++) {
            counts[i] = all[i].answers;
            assert_in_range(counts[i], 0, pointer_longest(task, f.examples[i].n));
            memcpy(kept[i], all[i].answer, (size_t)counts[i] * sizeof **kept);
        }
        for (int i = 0; i < EXAMPLES; i++) {
            search(&f, &f.examples[i], 1, 3, task == POINTER_TSP, &one);
            assert_int_equal(one.answers, counts[i]);
            assert_memory_equal(one.answer, kept[i], (size_t)counts[i] * sizeof **kept);
            unsigned seen = 0;
            for (int64_t j = 0; j < counts[i]; j++)
                seen |= 1u << kept[i][j];
            if (task == POINTER_TSP)
                assert_int_equal(seen, (1u << f.examples[i].n) - 1);
        }
        fixture_free(&f);
    }
}

/* Catches a network that only knows as many places as it was built with. */
static void more_points_than_ever(void **state)
{
    (void)state;
    struct fixture f = fixture_new(POINTER_HULL);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 8});
    uint64_t next = 0;
    pointer_example large;
    pointer_found found;
    assert_true(pointer_draw(POINTER_HULL, 40, &rng, &next, f.arena, &large));
    assert_true(isfinite(loss_of(&f, &large, 1)));
    search(&f, &large, 1, 2, false, &found);
    assert_in_range(found.answers, 0, 41);
    fixture_free(&f);
}

static pointer_score judged(pointer_task task, const pointer_example *e, const int32_t *answer,
                            int64_t answers)
{
    pointer_score s = {0};
    pointer_judge(task, e, answer, answers, &s);
    assert_int_equal(s.examples, 1);
    return s;
}

/* Catches judges that are too strict (where a polygon begins, which way it runs, in what order
 * triangles come) or too kind (a bow tie, a triangle too few, a longer tour). */
static void judges(void **state)
{
    (void)state;
    static const heed_real p[] = {0, 0, 1, 0, 1, 1, 0, 1, (heed_real).5, (heed_real).25};
    pointer_example hull = {5, 5, p, (int32_t[]){0, 1, 2, 3, 5}};
    pointer_score s = judged(POINTER_HULL, &hull, (int32_t[]){2, 1, 0, 3}, 4);
    assert_true(s.exact == 1 && s.simple == 1 && s.covered == 1);
    s = judged(POINTER_HULL, &hull, (int32_t[]){0, 4, 1, 2, 3}, 5);
    assert_true(s.exact == 0 && s.simple == 1 && fabs(s.covered - .875) < 1e-12);
    s = judged(POINTER_HULL, &hull, (int32_t[]){0, 2, 1, 3}, 4);
    assert_true(s.exact == 0 && s.simple == 0 && s.covered == 0);

    pointer_example two = {4, 7, p, (int32_t[]){0, 1, 2, 0, 2, 3, 4}};
    s = judged(POINTER_DELAUNAY, &two, (int32_t[]){3, 0, 2, 2, 1, 0}, 6);
    assert_true(s.exact == 1 && s.covered == 1);
    s = judged(POINTER_DELAUNAY, &two, (int32_t[]){0, 2, 3, 0, 2, 3}, 6);
    assert_true(s.exact == 0 && s.covered == .5);
    s = judged(POINTER_DELAUNAY, &two, (int32_t[]){0, 1}, 2);
    assert_true(s.exact == 0 && s.covered == 0);

    pointer_example tour = {4, 4, p, (int32_t[]){0, 1, 2, 3}};
    s = judged(POINTER_TSP, &tour, (int32_t[]){1, 0, 3, 2}, 4);
    assert_true(s.exact == 1 && s.length == s.optimum && s.length == 4);
    s = judged(POINTER_TSP, &tour, (int32_t[]){0, 2, 1, 3}, 4);
    assert_true(s.exact == 0 && fabs(s.length - 2 - 2 * sqrt(2)) < 1e-12);

    pointer_example order = {3, 3, (heed_real[]){3, 1, 2}, (int32_t[]){1, 2, 0}};
    s = judged(POINTER_SORT, &order, (int32_t[]){1, 0, 0}, 3);
    assert_true(s.exact == 0 && fabs(s.covered - 2 / 3.) < 1e-12);
}

/* Catches answers that do not follow the points when these come in another order. */
static void answers_follow_the_points(void **state)
{
    (void)state;
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 21});
    for (uint64_t next = 0; next < 400;) {
        enum { N = 7 };
        pointer_example e;
        heed_real turned[2 * N];
        int32_t hull[N], order[N];
        assert_true(pointer_draw(POINTER_HULL, N, &rng, &next, arena, &e));
        for (int i = 0; i < N; i++) {
            order[i] = 3 * i % N; /* point i of the new order is this one of the old */
            memcpy(turned + 2 * i, e.points + 2 * order[i], 2 * sizeof *turned);
        }
        int64_t k = geometry_hull(turned, N, hull);
        for (int64_t i = 0; i < k; i++)
            hull[i] = order[hull[i]];
        assert_true(judged(POINTER_HULL, &e, hull, k).exact == 1);
    }
    heed_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient),
        cmocka_unit_test(packed_is_single),
        cmocka_unit_test(wide_beam_is_enumeration),
        cmocka_unit_test(searches_alone),
        cmocka_unit_test(more_points_than_ever),
        cmocka_unit_test(judges),
        cmocka_unit_test(answers_follow_the_points),
    };
    return cmocka_run_group_tests_name("pointer", tests, NULL, NULL);
}
