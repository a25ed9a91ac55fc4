/* test_vit.c: the Vision Transformer: its gradient, what it may depend on, its training on files,
 * and the digits that are drawn for the lab. */
#include "base/memory.h"
#include "labs/picture_data.h"
#include "layer_check.h"
#include "see/vit_task.h"
#include "temp_folder.h"

#include <heed/vit.h>

#ifdef HEED_DOUBLE
#define CLOSE 1e-11
#else
#define CLOSE 1e-4 /* logits of some ten, after two layers in float */
#endif

enum { SIDE = 6, PATCH = 2, ACROSS = SIDE / PATCH, PATCHES = ACROSS * ACROSS, B = 3, CLASSES = 4 };
static const heed_vit_config sizes = {.side = SIDE,
                                      .channels = 2,
                                      .patch = PATCH,
                                      .classes = CLASSES,
                                      .d = 8,
                                      .ff = 12,
                                      .layers = 2,
                                      .heads = 2,
                                      .positions = true};

struct fixture {
    heed_params *params;
    heed_arena *arena;
    heed_tape *tape;
    heed_vit_net net;
    heed_tensor *pixels; /* a parameter, so that its gradient is looked at, too */
};

static struct fixture fixture_new(bool positions)
{
    struct fixture f = {.params = heed_params_new(NULL, NULL),
                        .arena = heed_arena_new(NULL, NULL),
                        .tape = heed_tape_new(&(heed_tape_options){.threads = 1}, NULL)};
    heed_vit_config z = sizes;
    z.positions = positions;
    heed_scope s = heed_params_scope(f.params);
    heed_vit_build(&f.net, s, &z, f.arena);
    f.pixels =
        heed_param(s, "pixels", HEED_SHAPE(B * SIDE * SIDE, 2), (heed_init){HEED_INIT_NORMAL, 1});
    assert_int_equal(heed_params_finish(f.params, 3, NULL), HEED_OK);
    for (int64_t i = 0; positions && i < heed_tensor_count(f.net.positions); i++)
        heed_tensor_data(f.net.positions)[i] *= 20; /* 0.02 would hardly be seen */
    return f;
}

static void fixture_free(struct fixture *f)
{
    heed_tape_free(f->tape);
    heed_params_free(f->params);
    heed_arena_free(f->arena);
}

static int run_net(heed_tape *t, void *context, heed_tensor **out)
{
    struct fixture *f = context;
    out[0] = heed_vit_logits(t, &f->net, f->pixels, NULL);
    return 1;
}

/* Catches a wrong derivative anywhere between the pixels and the logits. */
static void gradient(void **state)
{
    (void)state;
    struct fixture f = fixture_new(true);
    layer_check(f.params, run_net, &f);
    fixture_free(&f);
}

/* Logits (B,CLASSES) of pixels. */
static void logits_of(struct fixture *f, heed_tensor *pixels, heed_real *out)
{
    heed_tape_set_recording(f->tape, false);
    heed_tensor *y = heed_vit_logits(f->tape, &f->net, pixels, NULL);
    assert_string_equal(heed_tape_error(f->tape)->text, "");
    memcpy(out, heed_tensor_data(y), (size_t)heed_tensor_count(y) * sizeof *out);
}

static double farthest(const heed_real *a, const heed_real *b, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* Catches a picture that sees its neighbours in the batch. */
static void pictures_stand_alone(void **state)
{
    (void)state;
    struct fixture f = fixture_new(true);
    heed_real all[B * CLASSES], one[CLASSES];
    logits_of(&f, f.pixels, all);
    for (int b = 0; b < B; b++) {
        heed_tape_reset(f.tape);
        logits_of(&f, heed_slice_rows(f.tape, f.pixels, b * SIDE * SIDE, (b + 1) * SIDE * SIDE),
                  one);
        assert_true(farthest(all + b * CLASSES, one, CLASSES) < CLOSE);
    }
    fixture_free(&f);
}

/* Catches positions that are not what tells patches apart: in another order of the patches the
 * logits are the same without them, and others with them. */
static void order_of_patches(void **state)
{
    (void)state;
    for (int positions = 0; positions < 2; positions++) {
        struct fixture f = fixture_new(positions);
        heed_real before[B * CLASSES], after[B * CLASSES];
        heed_tensor *moved = heed_input(f.tape, HEED_SHAPE(B * SIDE * SIDE, 2), NULL);
        for (int b = 0; b < B; b++)
            for (int p = 0; p < PATCHES; p++)
                for (int i = 0; i < PATCH * PATCH; i++) {
                    const int q = (p * 4 + 2) % PATCHES; /* a permutation of nine */
                    const int y = i / PATCH, x = i % PATCH;
                    const int from =
                        (b * SIDE + p / ACROSS * PATCH + y) * SIDE + p % ACROSS * PATCH + x;
                    const int to =
                        (b * SIDE + q / ACROSS * PATCH + y) * SIDE + q % ACROSS * PATCH + x;
                    memcpy(heed_tensor_data(moved) + 2 * to, heed_tensor_data(f.pixels) + 2 * from,
                           2 * sizeof(heed_real));
                }
        logits_of(&f, f.pixels, before);
        logits_of(&f, moved, after);
        const double gap = farthest(before, after, B * CLASSES);
        assert_true(positions ? gap > 0.01 : gap < CLOSE);
        fixture_free(&f);
    }
}

/* Catches a roll-out over queries instead of keys, or one that loses weight: what arrives adds up
 * to one, less the class row's own share, which the residual keeps at a quarter at least. */
static void rollout(void **state)
{
    (void)state;
    struct fixture f = fixture_new(true);
    heed_attention_recorder recorder = {0};
    heed_real weights[B * PATCHES];
    heed_vit_logits(f.tape, &f.net, f.pixels, &recorder);
    assert_int_equal(recorder.count, 2);
    assert_true(heed_vit_rollout(f.tape, &recorder, weights));
    for (int b = 0; b < B; b++) {
        double sum = 0;
        for (int p = 0; p < PATCHES; p++) {
            assert_true(weights[b * PATCHES + p] > 0);
            sum += (double)weights[b * PATCHES + p];
        }
        assert_true(sum < 0.75 && sum > 0.3);
    }
    fixture_free(&f);
}

/* Catches digits without ink, beyond the paper, or that depend on anything but their dice. */
static void drawn_digits(void **state)
{
    enum { PAPER = 20 };
    heed_real a[PAPER * PAPER], b[PAPER * PAPER];
    (void)state;
    for (int n = 0; n < 200; n++) {
        const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 4, .step = (uint64_t)n});
        drawing_dice first = {&rng, 0}, second = {&rng, 0};
        double inked = 0;
        if (n % 2) {
            drawing_digit(a, PAPER, n % 10, &first);
            drawing_digit(b, PAPER, n % 10, &second);
        } else {
            drawing_character(a, PAPER, (uint64_t)n, &first);
            drawing_character(b, PAPER, (uint64_t)n, &second);
        }
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(first.next, second.next);
        for (int i = 0; i < PAPER * PAPER; i++) {
            assert_true(a[i] >= 0 && a[i] <= 1);
            inked += (double)a[i];
        }
        assert_true(inked > 8 && inked < 0.6 * PAPER * PAPER);
    }
}

static void write_idx(const char *images, const char *labels, int count, int side)
{
    static uint8_t file[16 + 5200 * 4];
    const uint8_t head[16] = {0,
                              0,
                              8,
                              3,
                              0,
                              0,
                              (uint8_t)(count >> 8),
                              (uint8_t)count,
                              0,
                              0,
                              0,
                              (uint8_t)side,
                              0,
                              0,
                              0,
                              (uint8_t)side};
    memcpy(file, head, sizeof head);
    for (int i = 0; i < count * side * side; i++)
        file[16 + i] = (uint8_t)(i / (side * side) % 256);
    write_plain(in_folder(images), file, 16 + (size_t)(count * side * side));
    const uint8_t label_head[8] = {0, 0, 8, 1, 0, 0, (uint8_t)(count >> 8), (uint8_t)count};
    memcpy(file, label_head, sizeof label_head);
    for (int i = 0; i < count; i++)
        file[8 + i] = (uint8_t)(i % 3);
    write_plain(in_folder(labels), file, 8 + (size_t)count);
}

/* Catches validation pictures that are trained on, and a test set that is. */
static void parts_of_a_folder(void **state)
{
    heed_arena *arena = heed_arena_new(NULL, NULL);
    heed_error err = {0};
    picture_data d;
    heed_real pixels[4];
    (void)state;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 1});
    drawing_dice dice = {&rng, 0};
    write_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 5100, 2);
    write_idx("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 7, 2);
    assert_int_equal(picture_data_open(&d, folder, 99, arena, &err), HEED_OK);
    assert_int_equal(d.side, 2);
    assert_int_equal(d.classes, 3);
    assert_int_equal(d.count[PICTURES_TRAIN], 100);
    assert_int_equal(d.count[PICTURES_VALID], 5000);
    assert_int_equal(d.count[PICTURES_TEST], 7);
    assert_int_equal(picture_data_take(&d, PICTURES_TRAIN, 40, 0, &dice, pixels), 1);
    assert_true(fabs((double)pixels[3] - 40 / 255.0) < 1e-6);
    assert_int_equal(picture_data_take(&d, PICTURES_VALID, 3, 0, &dice, pixels), 103 % 3);
    assert_true(fabs((double)pixels[0] - 103 / 255.0) < 1e-6);
    assert_int_equal(picture_data_take(&d, PICTURES_TEST, 3, 2, &dice, pixels), 0);
    assert_true(fabs((double)pixels[0] - 3 / 255.0) < 1e-6);
    picture_data_close(&d);
    write_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 5000, 2);
    assert_int_not_equal(picture_data_open(&d, folder, 99, arena, &err), HEED_OK);
    assert_non_null(strstr(err.text, "are too few: 5,000 are held out for validation"));
    picture_data_close(&d);
    heed_arena_free(arena);
}

/* Catches pictures held out that are trained on as well, or lost, classes without one, an order
 * that does not follow the seed alone. */
static void hold_out(void **state)
{
    enum { PICTURES = 100, KINDS = 3 };
    int64_t kept[PICTURES] = {0};
    (void)state;
    write_idx("images", "labels", PICTURES, 2);
    const char *const paths[] = {in_folder("images"), in_folder("labels")};
    for (int turn = 0; turn < 3; turn++) {
        heed__vit_training t = {.allocator = heed__allocator_or_default(NULL),
                                .arena = heed_arena_new(NULL, NULL)};
        heed_error err = {0};
        int seen[PICTURES] = {0}, held[KINDS] = {0};
        t.recipe.train.idx = (heed_option_list){paths, 2};
        t.recipe.train.hold_out = 0.2;
        t.recipe.train.loop.seed = turn == 1 ? 8 : 7;
        assert_int_equal(heed__vit_open_pictures(&t, &err), HEED_OK);
        assert_int_equal(t.recipe.model.classes, KINDS);
        assert_int_equal(t.train.count + t.valid.count, PICTURES);
        for (int64_t i = 0; i < t.train.count; i++)
            seen[t.train.only[i]]++;
        int64_t same = 0;
        for (int64_t i = 0; i < t.valid.count; i++) {
            seen[t.valid.only[i]]++;
            held[heed_pictures_label(t.valid.set, t.valid.only[i])]++;
            same += kept[i] == t.valid.only[i];
            kept[i] = turn == 0 ? t.valid.only[i] : kept[i];
        }
        for (int i = 0; i < PICTURES; i++)
            assert_int_equal(seen[i], 1);
        for (int k = 0; k < KINDS; k++)
            assert_int_equal(held[k], 7); /* of 34, 33, 33 */
        if (turn)
            assert_true(turn == 2 ? same == t.valid.count : same < t.valid.count / 2);
        heed_pictures_free(t.train.set);
        heed_arena_free(t.arena);
    }
}

/* Catches sizes that leave patches of which no whole number fits, or far too many. */
static void sizes_from_the_picture(void **state)
{
    static const struct {
        int64_t height, width, side, patch, wanted_side, wanted_patch;
    } cases[] = {
        {28, 28, 0, 0, 28, 4}, {32, 32, 0, 0, 32, 4},   {16, 16, 0, 0, 16, 2},
        {64, 64, 0, 0, 64, 8}, {480, 640, 0, 0, 64, 8}, {29, 29, 0, 0, 24, 3},
        {30, 20, 0, 0, 16, 2}, {5, 5, 0, 0, 5, 1},      {28, 28, 0, 7, 28, 7},
        {30, 30, 0, 7, 28, 7}, {99, 99, 29, 0, 29, 1},  {9, 9, 96, 0, 96, 12},
        {3, 3, 0, 5, 5, 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heed_vit_config c = {.side = cases[i].side, .patch = cases[i].patch};
        const heed_pictures_report r = {
            .height = cases[i].height, .width = cases[i].width, .channels = 3};
        heed__vit_choose_size(&c, &r);
        assert_int_equal(c.side, cases[i].wanted_side);
        assert_int_equal(c.patch, cases[i].wanted_patch);
        assert_int_equal(c.channels, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient),
        cmocka_unit_test(pictures_stand_alone),
        cmocka_unit_test(order_of_patches),
        cmocka_unit_test(rollout),
        cmocka_unit_test(drawn_digits),
        cmocka_unit_test_setup_teardown(parts_of_a_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(hold_out, make_folder, remove_folder),
        cmocka_unit_test(sizes_from_the_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
