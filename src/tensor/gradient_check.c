/* gradient_check.c: checks an operator's gradient.
 *
 * L = sum over outputs of w . y with fixed random w.  a = dL/dx by the tape against the five-point
 * central difference, whose error is O(h^4):
 *   n = (8 (L(x+h) - L(x-h)) - (L(x+2h) - L(x-2h))) / 12h
 * and for each input max|a-n| / max(max|a|, max|n|) must be small.  Each case is then varied: a
 * second backward pass and a second run into the same gradient; each input frozen; inputs as
 * slices; equal inputs made one tensor; a single output seeded with 1.  A zero gradient fails. */
#include "tensor/tape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#ifdef HEED_DOUBLE
#define STEP 1e-3
#define TOLERANCE 1e-8
#define SAME 1e-12 /* the same sum computed in two ways */
#else
#define STEP 2e-2
#define TOLERANCE 1e-2
#define SAME 1e-5
#endif
/* Gradients below this are noise (a-a has gradient 0). */
#define NOISE 1e-4
#define SLACK 3 /* extra columns left and right of a slice */
#define OUTSIDE ((real)0.77)

struct check {
    const heed_op *op;
    const heed_opcase *c;
    heed_tape *tape;
    heed_arena *arena;
    int n;                          /* inputs */
    heed_tensor wide[HEED_CASE_IN]; /* what the inputs are slices of, if they are */
    heed_tensor *leaf[HEED_CASE_IN];
    heed_tensor *in[HEED_CASE_IN]; /* what the operator gets */
    real *weights[HEED_MAX_OUT];
    real *once[HEED_CASE_IN]; /* gradients of one backward pass */
    bool sliced;
    int alias; /* input that is replaced by input `alias_of`, or -1 */
    int alias_of;
    heed_check_result *result;
};

static double random_value(heed_domain domain, const heed_rng *rng, int64_t i, int64_t count)
{
    if (domain == HEED_POSITIVE)
        return 0.5 + 1.5 * heed_rng_uniform(rng, (uint64_t)i);
    if (domain == HEED_ANY)
        return heed_rng_normal(rng, (uint64_t)i);
    /* Spread: an odd step through the values -count/2 .. count/2, a tenth apart, none at zero. */
    int64_t step = count % 7 ? 7 : 11;
    while (count % step == 0)
        step += 2;
    int64_t place = (i * step + (int64_t)rng->stream[0] % count) % count;
    return 0.1 * ((double)place - (double)(count / 2)) + 0.05 +
           0.03 * heed_rng_uniform(rng, (uint64_t)i);
}

static heed_status make_leaf(struct check *k, int i, heed_error *err)
{
    heed_shape shape = k->c->in[i];
    int64_t count;
    if (!heed__shape_count(shape, &count))
        return heed__fail(err, HEED_SHAPE_ERROR, "%s: case '%s' has a wrong shape", k->op->name,
                          k->c->what);
    heed_shape wide = shape;
    wide.dim[shape.rank - 1] += 2 * SLACK;
    int64_t size;
    heed__shape_count(wide, &size);
    size_t bytes = (size_t)size * sizeof(real);
    real *data = heed_arena_allocate(k->arena, bytes), *grad = heed_arena_allocate(k->arena, bytes);
    heed_tensor *leaf = heed_arena_allocate(k->arena, sizeof *leaf);
    if (!data || !grad || !leaf)
        return heed__fail(err, HEED_MEMORY, "out of memory for a gradient check");
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 7, .node = (uint64_t)i});
    memset(grad, 0, bytes);
    if (k->sliced) {
        heed_tensor *root = &k->wide[i];
        heed__tensor_init(root, wide, data);
        for (int64_t j = 0; j < size; j++)
            data[j] = OUTSIDE;
        root->grad = grad;
        root->needs_grad = root->keeps_grad = true;
        heed__tensor_init(leaf, shape, data + SLACK);
        leaf->ld = root->ld;
        leaf->root = root;
        leaf->offset = SLACK;
        leaf->needs_grad = true;
    } else {
        heed__tensor_init(leaf, shape, data);
        leaf->grad = grad;
        leaf->needs_grad = leaf->keeps_grad = true;
    }
    for (int64_t j = 0; j < count; j++)
        leaf->data[j / leaf->cols * leaf->ld + j % leaf->cols] =
            (real)random_value(k->c->domain, &rng, j, count);
    k->leaf[i] = leaf;
    return HEED_OK;
}

/* Runs the case on a clean tape; false if it failed (the text is in the result). */
static bool run(struct check *k, bool record, heed_tensor **out)
{
    memset(out, 0, HEED_MAX_OUT * sizeof *out);
    heed_tape_reset(k->tape);
    heed_tape_set_recording(k->tape, record);
    for (int i = 0; i < k->n; i++)
        k->in[i] = k->leaf[i == k->alias ? k->alias_of : i];
    k->op->run(k->tape, k->c, k->in, out);
    if (k->tape->error.status || !out[0]) {
        snprintf(k->result->text, sizeof k->result->text, "%s",
                 k->tape->error.status ? k->tape->error.text : "the case gave no output");
        return false;
    }
    return true;
}

static int count_outputs(heed_tensor *const *out)
{
    int n = 0;
    while (n < HEED_MAX_OUT && out[n])
        n++;
    return n;
}

/* L for the current inputs, summed in double in both builds. */
static bool loss(struct check *k, double *value)
{
    heed_tensor *out[HEED_MAX_OUT];
    if (!run(k, false, out))
        return false;
    *value = 0;
    for (int o = 0; o < count_outputs(out); o++)
        for (int64_t r = 0; r < out[o]->rows; r++)
            for (int64_t j = 0; j < out[o]->cols; j++)
                *value +=
                    (double)k->weights[o][r * out[o]->cols + j] * (double)heed__row(out[o], r)[j];
    return true;
}

static bool make_weights(struct check *k, bool ones)
{
    heed_tensor *out[HEED_MAX_OUT];
    if (!run(k, false, out))
        return false;
    for (int o = 0; o < count_outputs(out); o++) {
        int64_t count = out[o]->rows * out[o]->cols;
        heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 11, .node = (uint64_t)o});
        if (!k->weights[o])
            k->weights[o] = heed_arena_allocate(k->arena, (size_t)count * sizeof(real));
        if (!k->weights[o])
            return false;
        for (int64_t j = 0; j < count; j++)
            k->weights[o][j] = ones ? 1 : (real)heed_rng_normal(&rng, (uint64_t)j);
    }
    return true;
}

/* Adds dL/dx into the leaves' gradients, `passes` times from one forward pass. */
static bool differentiate(struct check *k, int passes)
{
    heed_tensor *out[HEED_MAX_OUT];
    if (!run(k, true, out))
        return false;
    for (int w = 0; w < passes; w++)
        if (heed__backward_from(k->tape, out, (const real *const *)k->weights,
                                count_outputs(out))) {
            snprintf(k->result->text, sizeof k->result->text, "%s", k->tape->error.text);
            return false;
        }
    return true;
}

static void zero_grads(struct check *k)
{
    for (int i = 0; i < k->n; i++) {
        heed_tensor *root = k->leaf[i]->root ? k->leaf[i]->root : k->leaf[i];
        memset(root->grad, 0, (size_t)(root->rows * root->cols) * sizeof(real));
    }
}

static real *grad_at(const heed_tensor *leaf, int64_t j)
{
    const heed_tensor *root = leaf->root ? leaf->root : leaf;
    return root->grad + leaf->offset + j / leaf->cols * leaf->ld + j % leaf->cols;
}

static bool difference(struct check *k, heed_tensor *leaf, int64_t j, double *derivative)
{
    real *x = &leaf->data[j / leaf->cols * leaf->ld + j % leaf->cols], kept = *x;
    double at[4];
    static const int steps[4] = {-2, -1, 1, 2};
    for (int s = 0; s < 4; s++) {
        *x = (real)(kept + steps[s] * STEP);
        bool fine = loss(k, &at[s]);
        *x = kept;
        if (!fine)
            return false;
    }
    *derivative = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * STEP);
    return true;
}

/* The error of input i's gradient times `factor`, which is 1 except where the check itself is
 * tested. */
static double compare(struct check *k, int i, const double *numeric, double factor)
{
    double worst = 0, largest = 0;
    int64_t count = k->leaf[i]->rows * k->leaf[i]->cols;
    for (int64_t j = 0; j < count; j++) {
        double a = factor * (double)*grad_at(k->leaf[i], j), n = numeric[j];
        double d = fabs(a - n);
        if (isnan(d))
            return d;
        worst = fmax(worst, d);
        largest = fmax(largest, fmax(fabs(a), fabs(n)));
    }
    return worst / fmax(largest, NOISE);
}

/* Compares every input's gradient with differences.  `strict`: it must not be zero, and 1.001 times
 * it must fail. */
static bool check_inputs(struct check *k, const char *how, bool strict)
{
    char *text = k->result->text;
    size_t size = sizeof k->result->text;
    zero_grads(k);
    if (!differentiate(k, 1))
        return false;
    for (int i = 0; i < k->n; i++) {
        if (i == k->alias)
            continue;
        int64_t count = k->leaf[i]->rows * k->leaf[i]->cols;
        double *numeric = heed_arena_allocate(k->arena, (size_t)count * sizeof *numeric);
        for (int64_t j = 0; j < count; j++)
            if (!numeric || !difference(k, k->leaf[i], j, &numeric[j]))
                return false;
        double error = compare(k, i, numeric, 1);
        if (!(error <= k->result->error))
            k->result->error = error;
        if (!(error <= TOLERANCE)) {
            snprintf(text, size, "%s: the gradient of input %d is off by %.3g", how, i + 1, error);
            return false;
        }
        double largest = 0;
        for (int64_t j = 0; j < count; j++)
            largest = fmax(largest, fabs(numeric[j]));
        if (strict && count > 0 && largest < NOISE) {
            snprintf(text, size, "%s: the gradient of input %d vanishes, the case proves nothing",
                     how, i + 1);
            return false;
        }
#ifdef HEED_DOUBLE
        if (strict && count > 0 && compare(k, i, numeric, 1.001) <= TOLERANCE) {
            snprintf(text, size, "%s: a gradient of input %d that is 0.1 %% wrong would pass", how,
                     i + 1);
            return false;
        }
#endif
    }
    return true;
}

/* Saves the gradients of one backward pass, to compare the variations with. */
static bool remember(struct check *k)
{
    zero_grads(k);
    if (!differentiate(k, 1))
        return false;
    for (int i = 0; i < k->n; i++) {
        int64_t count = k->leaf[i]->rows * k->leaf[i]->cols;
        k->once[i] = heed_arena_allocate(k->arena, (size_t)count * sizeof(real));
        if (!k->once[i])
            return false;
        for (int64_t j = 0; j < count; j++)
            k->once[i][j] = *grad_at(k->leaf[i], j);
    }
    return true;
}

/* Whether input i's gradient is now `times` the saved one. */
static bool is_remembered(const struct check *k, int i, int times)
{
    double largest = NOISE;
    int64_t count = k->leaf[i]->rows * k->leaf[i]->cols;
    for (int64_t j = 0; j < count; j++)
        largest = fmax(largest, fabs((double)k->once[i][j]));
    for (int64_t j = 0; j < count; j++)
        if (!(fabs((double)*grad_at(k->leaf[i], j) - times * (double)k->once[i][j]) <=
              10 * SAME * largest))
            return false;
    return true;
}

static bool refuse(struct check *k, int i, const char *what)
{
    snprintf(k->result->text, sizeof k->result->text, "input %d %s", i + 1, what);
    return false;
}

/* Two backward passes over one tape, then one more run: three times the gradient. */
static bool check_accumulation(struct check *k)
{
    if (!remember(k))
        return false;
    zero_grads(k);
    if (!differentiate(k, 2) || !differentiate(k, 1))
        return false;
    for (int i = 0; i < k->n; i++)
        if (!is_remembered(k, i, 3))
            return refuse(k, i, "has a gradient that is not added to what is there");
    return true;
}

/* Each input in turn needs no gradient: it gets none, and the others are unchanged. */
static bool check_frozen(struct check *k)
{
    bool fine = remember(k);
    for (int frozen = 0; fine && k->n > 1 && frozen < k->n; frozen++) {
        zero_grads(k);
        k->leaf[frozen]->needs_grad = false;
        fine = differentiate(k, 1);
        k->leaf[frozen]->needs_grad = true;
        for (int i = 0; fine && i < k->n; i++)
            if (!is_remembered(k, i, i != frozen))
                fine = refuse(k, i,
                              i == frozen ? "gets a gradient though it needs none"
                                          : "gets another gradient when one needs none");
    }
    return fine;
}

static bool same_outputs(heed_tensor *const *out, real *const *kept)
{
    for (int o = 0; o < count_outputs(out); o++) {
        double largest = NOISE;
        int64_t count = out[o]->rows * out[o]->cols;
        for (int64_t j = 0; j < count; j++)
            largest = fmax(largest, fabs((double)kept[o][j]));
        for (int64_t j = 0; j < count; j++)
            if (!(fabs((double)heed__row(out[o], j / out[o]->cols)[j % out[o]->cols] -
                       (double)kept[o][j]) <= 10 * SAME * largest))
                return false;
    }
    return true;
}

/* A copy of the outputs for the current inputs. */
static bool keep_outputs(struct check *k, real **kept)
{
    heed_tensor *out[HEED_MAX_OUT];
    if (!run(k, false, out))
        return false;
    for (int o = 0; o < count_outputs(out); o++) {
        int64_t count = out[o]->rows * out[o]->cols;
        kept[o] = heed_arena_allocate(k->arena, (size_t)count * sizeof(real));
        if (!kept[o])
            return false;
        for (int64_t j = 0; j < count; j++)
            kept[o][j] = heed__row(out[o], j / out[o]->cols)[j % out[o]->cols];
    }
    return true;
}

/* Column slices: the same values, and nothing written outside the slice. */
static bool check_slices(struct check *k, heed_error *err)
{
    heed_tensor *plain[HEED_CASE_IN], *out[HEED_MAX_OUT];
    real *kept[HEED_MAX_OUT];
    if (!keep_outputs(k, kept) || !remember(k))
        return false;
    memcpy(plain, k->leaf, sizeof plain);
    k->sliced = true;
    bool fine = true;
    for (int i = 0; fine && i < k->n; i++)
        fine = !make_leaf(k, i, err);
    fine = fine && run(k, false, out);
    if (fine && !same_outputs(out, kept))
        fine = refuse(k, 0, "or another as a column slice gives another output");
    fine = fine && differentiate(k, 1);
    for (int i = 0; fine && i < k->n; i++) {
        const heed_tensor *root = &k->wide[i];
        bool inside = true;
        for (int64_t j = 0; j < root->rows * root->cols; j++)
            if (j % root->cols < SLACK || j % root->cols >= root->cols - SLACK)
                inside &= root->grad[j] == 0 && root->data[j] == OUTSIDE;
        if (!inside)
            fine = refuse(k, i, "as a column slice is written beside it");
        else if (!is_remembered(k, i, 1))
            fine = refuse(k, i, "as a column slice gives another gradient");
    }
    memcpy(k->leaf, plain, sizeof plain);
    k->sliced = false;
    return fine;
}

static bool check_aliases(struct check *k)
{
    for (int i = 0; i < k->n; i++)
        for (int j = i + 1; j < k->n; j++) {
            if (!heed__shape_equal(k->c->in[i], k->c->in[j]))
                continue;
            k->alias = j;
            k->alias_of = i;
            char how[48];
            snprintf(how, sizeof how, "with input %d = input %d", j + 1, i + 1);
            bool fine = check_inputs(k, how, false);
            k->alias = -1;
            if (!fine)
                return false;
        }
    return true;
}

heed_status heed__check_case(const heed_op *op, const heed_opcase *c, int threads,
                             heed_check_result *result, heed_error *err)
{
    *result = (heed_check_result){.name = op->name, .what = c->what, .tolerance = TOLERANCE};
    struct check k = {.op = op, .c = c, .result = result, .alias = -1};
    heed_status status = HEED_OK;
    k.arena = heed_arena_new(NULL, err);
    k.tape = heed_tape_new(&(heed_tape_options){.threads = threads, .seed = 3}, err);
    if (!k.arena || !k.tape) {
        status = HEED_MEMORY;
        goto done;
    }
    while (k.n < HEED_CASE_IN && c->in[k.n].rank)
        k.n++;
    for (int i = 0; i < k.n; i++)
        if ((status = make_leaf(&k, i, err)))
            goto done;

    heed_tensor *out[HEED_MAX_OUT];
    bool scalar = run(&k, false, out) && !out[1] && out[0]->rows * out[0]->cols == 1;
    result->passed =
        (!scalar || (make_weights(&k, true) && check_inputs(&k, "seeded with 1", true) &&
                     check_accumulation(&k))) &&
        make_weights(&k, false) && check_inputs(&k, "plain", true) && check_accumulation(&k) &&
        check_frozen(&k) && check_slices(&k, err) && check_aliases(&k);
    if (err && err->status)
        status = err->status;
done:
    heed_tape_free(k.tape);
    heed_arena_free(k.arena);
    return status;
}
