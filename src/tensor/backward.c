/* backward.c: the backward pass: the tape in reverse.
 *
 * A gradient gets memory with its first contribution and releases it after its node, so that a few
 * blocks, still in cache, serve the whole pass.  An operator whose outputs received no gradient is
 * skipped. */
#include "tensor/tape.h"

#include <string.h>

static heed_tensor *root_of(heed_tensor *x)
{
    return x->root ? x->root : x;
}

static size_t grad_bytes(const heed_tensor *root)
{
    size_t bytes = (size_t)(root->rows * root->cols) * sizeof(real);
    return bytes < sizeof(heed__free_block) ? sizeof(heed__free_block) : bytes;
}

/* The smallest free block that fits and is at most twice as large as needed, or new memory. */
static void *take_block(heed_tape *t, size_t bytes)
{
    heed__free_block **best = NULL;
    for (heed__free_block **b = &t->free_blocks; *b; b = &(*b)->next)
        if ((*b)->bytes >= bytes && (*b)->bytes / 2 <= bytes &&
            (!best || (*b)->bytes < (*best)->bytes))
            best = b;
    if (!best)
        return heed_arena_allocate(t->arena, bytes);
    heed__free_block *block = *best;
    *best = block->next;
    return block;
}

heed_status heed__grad_ensure(heed_tape *t, heed_tensor *x, const char *who)
{
    heed_tensor *root = root_of(x);
    if (root->grad)
        return HEED_OK;
    root->grad = take_block(t, grad_bytes(root));
    if (!root->grad)
        return heed__fail(&t->error, HEED_MEMORY, "%s: out of memory for a gradient of %zu bytes",
                          who, grad_bytes(root));
    root->fresh_grad = true;
    return HEED_OK;
}

static void settle(heed_tensor *root)
{
    /* Also called from threads of operators: must not write if there is nothing to do. */
    if (!root->fresh_grad)
        return;
    memset(root->grad, 0, (size_t)(root->rows * root->cols) * sizeof(real));
    root->fresh_grad = false;
}

real *heed__grad_of(heed_tensor *x)
{
    heed_tensor *root = root_of(x);
    settle(root);
    return root->grad + x->offset;
}

void heed__grads_release(heed_tape *t, heed_tensor *x)
{
    if (x->keeps_grad || !x->grad)
        return;
    heed__free_block *block = (heed__free_block *)x->grad;
    block->bytes = grad_bytes(x);
    block->next = t->free_blocks;
    t->free_blocks = block;
    x->grad = NULL;
    x->fresh_grad = false;
}

/* ---- for an operator's backward ---- */

real *heed__out_grad(const heed_opcall *c, int i)
{
    return c->out[i] && c->out[i]->grad ? heed__grad_of(c->out[i]) : NULL;
}

bool heed__wants(const heed_opcall *c, int i)
{
    return c->wanted[i];
}

real *heed__grad(heed_opcall *c, int i)
{
    return heed__grad_of(c->in[i]);
}

real *heed__grad_beta(heed_opcall *c, int i, real *beta)
{
    heed_tensor *x = c->in[i];
    if (x->root || !x->fresh_grad) {
        *beta = 1;
        return heed__grad_of(x);
    }
    x->fresh_grad = false;
    *beta = 0;
    return x->grad;
}

bool heed__grads_tile(heed_opcall *c, int first, int last)
{
    heed_tensor *root = root_of(c->in[first]);
    int64_t cols = 0;
    for (int i = first; i <= last; i++) {
        const heed_tensor *x = c->in[i];
        if (!c->wanted[i] || x->root != root || x->rows != root->rows || x->ld != root->ld ||
            x->offset + x->cols > root->ld)
            return false;
        for (int j = first; j < i; j++)
            if (x->offset < c->in[j]->offset + c->in[j]->cols &&
                c->in[j]->offset < x->offset + x->cols)
                return false;
        cols += x->cols;
    }
    if (cols != root->cols || !root->fresh_grad)
        return false;
    root->fresh_grad = false;
    return true;
}

heed_status heed__grad_early(heed_opcall *c, int i)
{
    return heed__grad_ensure(c->tape, c->in[i], c->op->name);
}

/* ---- the pass ---- */

void heed__tape_watch(heed_tape *t, heed__watch *watch, void *context)
{
    t->watch = watch;
    t->watched = context;
}

static bool reached(const heed_opcall *c)
{
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i]->grad)
            return true;
    return false;
}

static heed_status backward_node(heed_tape *t, heed_opcall *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (heed__wants(c, i) && heed__grad_ensure(t, c->in[i], c->op->name))
            return t->error.status;
    if (t->profile) {
        double start = heed_clock_seconds();
        c->op->backward(c);
        heed__profile_add(t, c->op, 0, heed_clock_seconds() - start);
    } else {
        c->op->backward(c);
    }
    /* The gradient of an input that the operator did not write is still uninitialised here. */
    for (int i = 0; i < c->n_in; i++)
        if (heed__wants(c, i))
            settle(root_of(c->in[i]));
    for (int i = 0; i < c->n_out; i++)
        heed__grads_release(t, c->out[i]);
    return HEED_OK;
}

heed_status heed__backward_from(heed_tape *t, heed_tensor *const *out, const real *const *seeds,
                                int n)
{
    for (int i = 0; i < n; i++) {
        if (!out[i]->needs_grad)
            continue;
        if (heed__grad_ensure(t, out[i], "backward"))
            return t->error.status;
        real *g = heed__grad_of(out[i]);
        for (int64_t r = 0; r < out[i]->rows; r++)
            for (int64_t j = 0; j < out[i]->cols; j++)
                g[r * out[i]->ld + j] += seeds[i][r * out[i]->cols + j];
    }
    for (heed_opcall *c = t->last; c; c = c->previous) {
        if (reached(c) && backward_node(t, c))
            break;
        if (t->watch)
            t->watch(t->watched, c);
    }
    if (t->error.status)
        /* After a failure, partial gradients must not be used by another pass. */
        for (heed_opcall *c = t->last; c; c = c->previous)
            for (int i = 0; i < c->n_out; i++)
                heed__grads_release(t, c->out[i]);
    return t->error.status;
}

/* Without looking into x, which may be of a step that is over: its memory is the arena's again. */
static bool recorded(const heed_tape *t, const heed_tensor *x)
{
    for (const heed_opcall *c = t->last; c; c = c->previous)
        for (int i = 0; i < c->n_out; i++)
            if (c->out[i] == x)
                return true;
    return false;
}

heed_status heed_backward(heed_tape *t, heed_tensor *loss)
{
    char text[HEED_SHAPE_TEXT];
    if (!t)
        return HEED_ARGUMENT;
    if (t->error.status)
        return t->error.status;
    if (!loss)
        return heed__fail(&t->error, HEED_ARGUMENT, "backward: loss is NULL");
    if (!recorded(t, loss))
        return heed__fail(&t->error, HEED_STATE,
                          "backward: loss was not recorded from any parameter or variable since "
                          "the tape was reset");
    if (loss->rows * loss->cols != 1)
        return heed__fail(&t->error, HEED_SHAPE_ERROR,
                          "backward: loss is %s, expected a single number",
                          heed__shape_text(loss, text));
    static const real one = 1;
    return heed__backward_from(t, &loss, &(const real *){&one}, 1);
}
