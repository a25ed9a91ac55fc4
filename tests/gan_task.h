/* gan_task.h: a toy GAN (Goodfellow et al. 2014) as a task: a generator turns standard normal
 * numbers into those of a Gaussian of mean 3 and deviation 0.5, a critic tells them apart.  Public
 * headers alone.  Include cmocka.h first. */
#ifndef HEED_TESTS_GAN_TASK_H
#define HEED_TESTS_GAN_TASK_H

#include <heed/heed.h>
#include <math.h>

enum { GAN_BATCH = 32, GAN_UNITS = 8, GAN_SAMPLES = 500 };
enum { GENERATOR, CRITIC };
struct gan {
    heed_params *params[2];
    heed_linear_layer make, judge[2];
    double drawn[2]; /* the first number that each set drew, in update 1 */
};

static heed_status gan_open(void *self, const char *folder, bool new_folder, heed_error *err)
{
    struct gan *g = self;
    (void)folder;
    (void)new_folder;
    for (int k = 0; k < 2; k++)
        if (!(g->params[k] = heed_params_new(NULL, err)))
            return err->status;
    const heed_scope s = heed_params_scope(g->params[CRITIC]);
    heed_linear_build(&g->make, heed_params_scope(g->params[GENERATOR]), 1, 1, HEED_IDENTITY, true);
    heed_linear_build(&g->judge[0], heed_scope_enter(s, "in"), 1, GAN_UNITS, HEED_TANH, true);
    heed_linear_build(&g->judge[1], heed_scope_enter(s, "out"), GAN_UNITS, 1, HEED_IDENTITY, true);
    heed_status status = heed_params_finish(g->params[GENERATOR], 5, err);
    return status ? status : heed_params_finish(g->params[CRITIC], 6, err);
}

static void gan_close(void *self)
{
    struct gan *g = self;
    heed_params_free(g->params[0]);
    heed_params_free(g->params[1]);
}

static heed_params *gan_params(void *self, int set)
{
    return ((struct gan *)self)->params[set];
}

/* n normal numbers from `first` on, moved and stretched. */
static heed_tensor *gan_normal(heed_tape *t, const heed_rng *rng, uint64_t first, int64_t n,
                               double mean, double deviation)
{
    heed_real x[GAN_SAMPLES];
    for (int64_t i = 0; i < n; i++)
        x[i] = (heed_real)(mean + deviation * heed_rng_normal(rng, first + (uint64_t)i));
    return heed_input(t, HEED_SHAPE(n, 1), x);
}

static heed_tensor *gan_judge(struct gan *g, heed_tape *t, heed_tensor *x)
{
    return heed_linear_apply(t, &g->judge[1], heed_linear_apply(t, &g->judge[0], x));
}

/* - log sigmoid(sign z), summed. */
static heed_tensor *gan_penalty(heed_tape *t, heed_tensor *z, double sign)
{
    return heed_sum(t, heed_softplus(t, heed_scale(t, z, -sign, 0)), HEED_ALL);
}

static heed_tensor *gan_loss(void *self, heed_tape *t, const heed_pass *pass, double *sum)
{
    struct gan *g = self;
    heed_tensor *noise = gan_normal(t, &pass->rng, 0, GAN_BATCH, 0, 1);
    heed_tensor *fake = gan_judge(g, t, heed_linear_apply(t, &g->make, noise));
    heed_tensor *loss;
    (void)sum;
    if (pass->update == 1)
        g->drawn[pass->set] = heed_rng_normal(&pass->rng, 0);
    if (pass->set == GENERATOR) {
        loss = gan_penalty(t, fake, 1);
    } else {
        heed_tensor *real = gan_normal(t, &pass->rng, GAN_BATCH, GAN_BATCH, 3, 0.5);
        loss = heed_add(t, gan_penalty(t, fake, -1), gan_penalty(t, gan_judge(g, t, real), 1));
    }
    return heed_scale(t, loss, pass->weight / GAN_BATCH, 0);
}

static heed_status gan_validate(void *self, heed_tape *t, heed_measure *out, int *count,
                                heed_error *err)
{
    struct gan *g = self;
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 77});
    const heed_tensor *x =
        heed_linear_apply(t, &g->make, gan_normal(t, &rng, 0, GAN_SAMPLES, 0, 1));
    double mean = 0, square = 0;
    (void)err; /* the tape has it */
    for (int i = 0; x && i < GAN_SAMPLES; i++) {
        const double v = (double)heed_tensor_data(x)[i];
        mean += v / GAN_SAMPLES;
        square += v * v / GAN_SAMPLES;
    }
    const double deviation = sqrt(fmax(square - mean * mean, 0));
    out[0] = (heed_measure){"distance", fabs(mean - 3) + fabs(deviation - 0.5), false};
    out[1] = (heed_measure){"deviation", deviation, false};
    *count = 2;
    return HEED_OK;
}

static inline heed_loop_options gan_loop(int64_t updates)
{
    heed_loop_options o;
    heed_error err = {0};
    assert_int_equal(heed_loop_defaults(&o, &err), HEED_OK);
    o.max_updates = updates;
    o.schedule = HEED_SCHEDULE_CONSTANT;
    o.warmup = o.average = o.valid_every = 0;
    o.rate = 0.02;
    o.beta1 = 0.5;
    o.clip = 1;
    o.log_every = 20;
    return o;
}

static inline heed_task gan_task(struct gan *g, const heed_loop_options *loop)
{
    static const char *const names[] = {"generator", "critic"};
    return (heed_task){.self = g,
                       .loop = loop,
                       .unit = "nats a number",
                       .sets = 2,
                       .set_names = names,
                       .open = gan_open,
                       .params = gan_params,
                       .loss = gan_loss,
                       .validate = gan_validate,
                       .close = gan_close};
}

#endif
