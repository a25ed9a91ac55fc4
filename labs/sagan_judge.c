/* sagan_judge.c: see sagan_judge.h.  Two convolutions of 3 x 3 with 16 and 32 channels, each
 * followed by a maximum over 2 x 2 where a look has 16 pixels or more in a line; a hidden layer,
 * the features; the kinds. */
#include "sagan_judge.h"

#include "lab.h"

enum { BATCH = 64, AT_ONCE = 100, FEATURES = 64, SEED = 4000037 };
#define RATE 0.002

static const int64_t filters[3] = {1, 16, 32};

static int64_t steps(const sagan_data *d)
{
    return d->look_side >= 16 ? 2 : 1;
}

static heed_status build(sagan_judge *j, heed_error *err)
{
    const heed_scope s = heed_params_scope(j->params);
    int64_t side = j->data->look_side;
    for (int k = 0; k < 2; k++) {
        const heed_scope own = heed_scope_enter(s, "%d", k);
        j->conv[k] = heed_param(own, "weight", HEED_SHAPE(9 * filters[k], filters[k + 1]),
                                (heed_init){HEED_INIT_KAIMING, 1});
        j->bias[k] =
            heed_param(own, "bias", HEED_SHAPE(filters[k + 1]), (heed_init){HEED_INIT_ZERO, 0});
        side /= steps(j->data);
    }
    heed_linear_build(&j->hidden, heed_scope_enter(s, "hidden"), side * side * filters[2],
                      j->features, HEED_RELU, true);
    heed_linear_build(&j->out, heed_scope_enter(s, "out"), j->features,
                      j->data->kinds + j->data->has_none, HEED_IDENTITY, true);
    return heed_params_finish(j->params, SEED, err);
}

/* looks (n*side*side,1) -> features (n,F) */
static heed_tensor *features_of(heed_tape *t, const sagan_judge *j, heed_tensor *looks)
{
    int64_t side = j->data->look_side;
    const int64_t n = heed_tensor_rows(looks) / (side * side);
    heed_tensor *x = looks;
    for (int k = 0; k < 2; k++) {
        const heed_image_size image = {side, side}, step = {steps(j->data), steps(j->data)};
        x = heed_relu(t, heed_conv2d(t, x, j->conv[k], j->bias[k],
                                     &(heed_conv2d_options){
                                         .image = image, .kernel = {3, 3}, .padding = {1, 1}}));
        if (step.y > 1)
            x = heed_max_pool2d(t, x, &(heed_pool2d_options){.image = image, .kernel = step});
        side /= step.y;
    }
    return heed_linear_apply(t, &j->hidden,
                             heed_reshape(t, x, HEED_SHAPE(n, side * side * filters[2])));
}

/* ---- training ---- */

static heed_tensor *lesson_loss(heed_tape *t, const sagan_judge *j, int64_t update)
{
    const int64_t size = j->data->look_side * j->data->look_side;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = SEED, .step = (uint64_t)update});
    heed_tensor *looks = heed_input(t, HEED_SHAPE(BATCH * size, 1), NULL);
    int32_t *kinds = heed_arena_allocate(heed_tape_arena(t), BATCH * sizeof *kinds);
    if (!looks || !kinds)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for the judge");
    for (int i = 0; i < BATCH; i++)
        kinds[i] = sagan_data_lesson(j->data, i, &rng, heed_tensor_data(looks) + i * size);
    heed_tensor *logits = heed_linear_apply(t, &j->out, features_of(t, j, looks));
    return heed_scale(t, heed_cross_entropy(t, logits, kinds, 0), 1. / BATCH, 0);
}

static heed_status train(sagan_judge *j, int64_t updates, int threads, heed_error *err)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = SEED}, err);
    heed_optimizer *o = heed_optimizer_new(
        j->params, &(heed_optimizer_options){.kind = HEED_ADAM, .beta2 = 0.999, .eps = 1e-8}, NULL,
        err);
    for (int64_t i = 1; t && o && !err->status && i <= updates; i++) {
        heed_tape_reset(t);
        if (heed_backward(t, lesson_loss(t, j, i)))
            lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
        else
            heed_optimizer_step(o, RATE * (1 - (double)(i - 1) / (double)updates),
                                heed_tape_threads(t));
    }
    heed_optimizer_free(o);
    heed_tape_free(t);
    return err->status;
}

heed_status sagan_judge_open(sagan_judge *j, const sagan_data *data, int64_t updates, int threads,
                             heed_error *err)
{
    *j = (sagan_judge){
        .data = data, .params = heed_params_new(NULL, err), .features = FEATURES / data->looks};
    if (!j->params || build(j, err))
        return err->status;
    return train(j, updates, threads, err);
}

void sagan_judge_close(sagan_judge *j)
{
    heed_params_free(j->params);
}

/* ---- reading ---- */

static heed_status read_some(const sagan_judge *j, heed_tape *t, const heed_real *pixels,
                             int64_t count, heed_real *features, int32_t *kinds, heed_error *err)
{
    const sagan_data *d = j->data;
    const int64_t size = d->look_side * d->look_side, n = count * d->looks;
    heed_tape_reset(t);
    heed_tensor *looks = heed_input(t, HEED_SHAPE(n * size, 1), NULL);
    for (int64_t i = 0; looks && i < n; i++)
        sagan_data_look(d, pixels + i / d->looks * d->side * d->side, i % d->looks,
                        heed_tensor_data(looks) + i * size);
    heed_tensor *f = features_of(t, j, looks), *said = heed_linear_apply(t, &j->out, f);
    if (!said)
        return lab_fail(err, heed_tape_error(t)->status, "%s", heed_tape_error(t)->text);
    const int64_t all = heed_tensor_cols(said);
    for (int64_t i = 0; i < n; i++) {
        const heed_real *row = heed_tensor_data(said) + i * all;
        kinds[i] = 0;
        for (int32_t k = 1; k < all; k++)
            kinds[i] = row[k] > row[kinds[i]] ? k : kinds[i];
        for (int64_t k = 0; k < j->features; k++)
            features[i * j->features + k] = heed_tensor_data(f)[i * j->features + k];
    }
    return HEED_OK;
}

heed_status sagan_judge_read(const sagan_judge *j, heed_tape *t, const heed_real *pixels,
                             int64_t count, heed_real *features, int32_t *kinds, heed_error *err)
{
    const sagan_data *d = j->data;
    for (int64_t i = 0; i < count && !err->status; i += AT_ONCE)
        read_some(j, t, pixels + i * d->side * d->side, count - i < AT_ONCE ? count - i : AT_ONCE,
                  features + i * d->looks * j->features, kinds + i * d->looks, err);
    return err->status;
}
