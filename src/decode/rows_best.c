/* rows_best.c: section 3.4 for greedy search without scores: the logits of the tokens that may be
 * the best of their row, and no others (screen.h).
 *
 * The first panel, which holds EOS and all other tokens that a hypothesis may have to have or to do
 * without, is always among them, and has no say in how good the best of the others is. */
#include "base/memory.h"
#include "base/parallel.h"
#include "decode/rows.h"
#include "text/vocab.h"

#include <math.h>

_Static_assert(HEED__SPECIALS <= HEED_PANEL, "special tokens are in the first panel");

/* Panels of a row, at most; one that needs more gets all its logits. */
#define MOST_PANELS 64
#define MOST_TOKENS (MOST_PANELS * HEED_PANEL)

void heed__rows_best_only(void *self, const heed_tokens *never)
{
    heed__rows *r = self;
    r->best_only = never;
    r->never = never ? *never : (heed_tokens){0};
}

void heed__rows_release_best(heed__rows *r)
{
    heed__release(&r->allocator, r->candidate, (size_t)r->candidates,
                  MOST_TOKENS * sizeof *r->candidate);
    r->candidate = NULL;
    r->candidates = 0;
}

bool heed__rows_screened(heed__rows *r)
{
    if (!r->best_only || !r->w->screen || r->shortlist || r->w->output.n <= HEED_PANEL)
        return false;
    if (!r->rough)
        r->rough = heed__screen_rough(r->w->screen, r->rows);
    if (!r->rough || r->rows <= r->candidates)
        return r->rough;
    heed__rows_release_best(r);
    r->candidate =
        heed__allocate(&r->allocator, (size_t)r->logits, MOST_TOKENS * sizeof *r->candidate);
    r->candidates = r->candidate ? r->logits : 0;
    return r->candidate;
}

/* Moves the numbers of some panels, ascending, to the front of the row. */
static int64_t gather(heed_real *logit, int32_t *token, const int32_t *panel, int64_t panels,
                      int64_t n)
{
    int64_t count = 0;
    for (int64_t p = 0; p < panels; p++)
        for (int64_t j = panel[p] * HEED_PANEL; j < (panel[p] + 1) * HEED_PANEL && j < n; j++) {
            token[count] = (int32_t)j;
            logit[count++] = logit[j];
        }
    return count;
}

/* Logits of those tokens of row i that may be its best, where the rough ones stand; returns which
 * they are. */
static heed_tokens choose(heed__rows *r, int64_t i)
{
    const heed__panel_weights *w = &r->w->output;
    const heed__pass *p = &r->pass;
    heed_real *logit = r->logit + i * r->columns;
    int32_t panel[MOST_PANELS] = {0};
    int64_t panels = MOST_PANELS + 1;
    heed__screen_bound bound;
    if (heed__rough_bound(r->rough, p->x + i * w->k,
                          p->bytes.bytes + i * 4 * heed__panel_groups(w->k), p->bytes.low[i],
                          p->bytes.step[i], &bound)) {
        const int64_t n = w->n - HEED_PANEL;
        heed_real *others = logit + HEED_PANEL;
        bound.norm += HEED_PANEL;
        bound.error += HEED_PANEL;
        for (int64_t k = 0; k < r->never.count; k++)
            logit[r->never.id[k]] = -(heed_real)INFINITY;
        heed_real floor = heed__kernels()->screen_floor(others, &bound, n);
        panels = 1 + heed__kernels()->screen_panels(panel + 1, others, &bound, floor, n,
                                                    MOST_PANELS - 1);
    }
    if (panels > MOST_PANELS) {
        heed__pass_columns(p, w, r->logit, r->columns, p->x, i, 1, 0, heed__panels(w->n));
        return (heed_tokens){NULL, w->n};
    }
    for (int64_t k = 0; k < panels; k++) {
        panel[k] += k > 0; /* they were counted from the second on */
        heed__pass_columns(p, w, r->logit, r->columns, p->x, i, 1, panel[k], panel[k] + 1);
    }
    int32_t *token = r->candidate + i * MOST_TOKENS;
    return (heed_tokens){token, gather(logit, token, panel, panels, w->n)};
}

static void choose_range(void *context, int64_t begin, int64_t end, int thread)
{
    heed__rows *r = context;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const heed_real *logit = r->logit + i * r->columns;
        r->choice[i] = choose(r, i);
        r->log_z[i] = logit[0];
        for (int64_t k = 1; k < r->choice[i].count; k++)
            r->log_z[i] = logit[k] > r->log_z[i] ? logit[k] : r->log_z[i];
    }
}

/* Without a shortlist all rows have all columns: r->columns is N. */
void heed__rows_output_best(heed__rows *r)
{
    heed__pass_prepare(&r->pass, &r->rough->w, r->pass.x, r->rows);
    heed__pass_product(&r->pass, &r->rough->w, r->logit, r->pass.x, r->rows);
    heed__parallel(r->pass.threads, r->rows, 1, 8 * r->columns, choose_range, r);
}
