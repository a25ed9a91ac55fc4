/* spirals.c: a network with two hidden layers learns to tell two interleaved spirals apart, and
 * draws what it has learnt.  Everything a training loop needs, in one screen. */
#include <heed/heed.h>
#include <math.h>
#include <stdio.h>

#define POINTS 400
#define STEPS 3000
#define HIDDEN 32

struct model {
    heed_linear_layer in, hidden, out;
};

static void build(struct model *m, heed_scope s)
{
    heed_linear_build(&m->in, heed_scope_enter(s, "in"), 2, HIDDEN, HEED_TANH, true);
    heed_linear_build(&m->hidden, heed_scope_enter(s, "hidden"), HIDDEN, HIDDEN, HEED_TANH, true);
    heed_linear_build(&m->out, heed_scope_enter(s, "out"), HIDDEN, 2, HEED_IDENTITY, true);
}

/* points (N,2) -> logits (N,2) */
static heed_tensor *apply(heed_tape *t, const struct model *m, heed_tensor *points)
{
    heed_tensor *h = heed_linear_apply(t, &m->hidden, heed_linear_apply(t, &m->in, points));
    return heed_linear_apply(t, &m->out, h);
}

/* One turn and a half of each arm, half a turn apart, slightly shaken. */
static void draw_points(heed_real xy[POINTS][2], int32_t arm[POINTS])
{
    heed_rng_key key = {.seed = 1};
    heed_rng rng = heed_rng_stream(&key);
    for (int i = 0; i < POINTS; i++) {
        arm[i] = i % 2;
        double r = 0.1 + 0.9 * i / POINTS, angle = 3 * 3.14159265 * r + 3.14159265 * arm[i];
        xy[i][0] = (heed_real)(r * cos(angle) + 0.01 * heed_rng_normal(&rng, 2 * (uint64_t)i));
        xy[i][1] = (heed_real)(r * sin(angle) + 0.01 * heed_rng_normal(&rng, 2 * (uint64_t)i + 1));
    }
}

static int count_right(const heed_tensor *logits, const int32_t *arm)
{
    const heed_real *y = heed_tensor_data(logits);
    int right = 0;
    for (int i = 0; i < POINTS; i++)
        right += (y[2 * i + 1] > y[2 * i]) == arm[i];
    return right;
}

/* The plane as the network sees it. */
static void draw_plane(heed_tape *t, const struct model *m)
{
    enum { WIDTH = 64, HEIGHT = 28 };
    static heed_real grid[WIDTH * HEIGHT][2];
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        grid[i][0] = (heed_real)(2.2 * (i % WIDTH) / (WIDTH - 1) - 1.1);
        grid[i][1] = (heed_real)(1.1 - 2.2 * (i / WIDTH) / (HEIGHT - 1));
    }
    heed_tape_reset(t);
    const heed_real *y =
        heed_tensor_data(apply(t, m, heed_input(t, HEED_SHAPE(WIDTH * HEIGHT, 2), grid[0])));
    if (!y)
        return;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        printf("%c%s", y[2 * i + 1] > y[2 * i] ? '#' : '.', i % WIDTH == WIDTH - 1 ? "\n" : "");
}

/* What the library has to say: HEED_PROFILE=1 makes it say where the time went. */
static void write_log(void *context, heed_log_level level, const char *line)
{
    (void)context;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

int main(void)
{
    static heed_real xy[POINTS][2];
    static int32_t arm[POINTS];
    draw_points(xy, arm);

    heed_error err = {0};
    struct model m;
    heed_optimizer *o = NULL;
    heed_params *p = heed_params_new(NULL, &err);
    /* One thread: products this small gain nothing from a second. */
    heed_tape_options options = {.threads = 1, .log = {write_log, NULL}};
    heed_tape *t = heed_tape_new(&options, &err);
    if (!p || !t)
        goto done;
    build(&m, heed_params_scope(p));
    if (heed_params_finish(p, 1, &err))
        goto done;
    heed_optimizer_options adam = {.kind = HEED_ADAM, .beta2 = 0.999, .eps = 1e-8};
    heed_schedule schedule = {
        .kind = HEED_SCHEDULE_COSINE, .rate = 0.01, .warmup = 100, .total = STEPS};
    if (!(o = heed_optimizer_new(p, &adam, NULL, &err)))
        goto done;

    printf("two spirals, %d points, %lld parameters\n", POINTS,
           (long long)heed_params_trainable(p));
    int right = 0;
    for (int step = 1; step <= STEPS; step++) {
        heed_tape_reset(t);
        heed_tensor *logits = apply(t, &m, heed_input(t, HEED_SHAPE(POINTS, 2), xy[0]));
        heed_tensor *loss = heed_scale(t, heed_cross_entropy(t, logits, arm, 0), 1.0 / POINTS, 0);
        if (heed_backward(t, loss)) {
            err = *heed_tape_error(t);
            goto done;
        }
        right = count_right(logits, arm);
        if (step % 300 == 0 || step == 1)
            printf("step %4d  loss %.4f  right %5.1f %%\n", step, heed_tensor_data(loss)[0],
                   100.0 * right / POINTS);
        heed_optimizer_step(o, heed_schedule_rate(&schedule, step), heed_tape_threads(t));
    }
    draw_plane(t, &m);
    printf("%d of %d points right\n", right, POINTS);
done:
    if (err.status)
        fprintf(stderr, "spirals: %s\n", err.text);
    heed_optimizer_free(o);
    heed_tape_free(t);
    heed_params_free(p);
    return err.status != HEED_OK;
}
