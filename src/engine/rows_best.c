/* rows_best.c: section 3.4 for greedy search without scores: the logits of the tokens that may be
 * the best of their row, and no others (screen.h).
 *
 * The panels with EOS and all other tokens that a hypothesis may have to have or to do without are
 * always among them, and have no say in how good the best of the others is: a token that is
 * forbidden must not screen out the one that wins. */
#include "base/memory.h"
#include "base/parallel.h"
#include "engine/session_rows.h"

#include <math.h>

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

bool heed__rows_screened(heed__rows *r, int64_t rows)
{
    if (!r->best_only || !r->w->screen || r->shortlist || r->w->always_count > MOST_PANELS / 2)
        return false;
    if (!r->screening)
        r->screening = heed__screen_matrix(r->w->screen, rows);
    if (!r->screening || rows <= r->candidates)
        return r->screening;
    heed__rows_release_best(r);
    r->candidate =
        heed__allocate(&r->allocator, (size_t)r->last.rows, MOST_TOKENS * sizeof *r->candidate);
    r->candidates = r->candidate ? r->last.rows : 0;
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

/* Rows of the pass from 0 on, and of r->last from `at` on. */
struct best {
    heed__rows *r;
    const heed_real *x;
    int64_t at;
};

static void forbid(heed_real *logit, int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j++)
        logit[j] = -(heed_real)INFINITY;
}

/* Both ascending; one that is in both comes once. */
static int64_t merge(int32_t *out, const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    int64_t count = 0;
    for (int64_t i = 0, k = 0; i < n || k < m;) {
        const int32_t next = k == m || (i < n && a[i] <= b[k]) ? a[i] : b[k];
        i += i < n && a[i] == next;
        k += k < m && b[k] == next;
        out[count++] = next;
    }
    return count;
}

/* The panels that may hold the best token of row i, out of its approximate logits; more than
 * MOST_PANELS: all may. */
static int64_t panels_of(const struct best *b, int64_t i, heed_real *logit, int32_t *panel)
{
    const heed__rows *r = b->r;
    const heed__weights *w = r->w;
    const heed__pass *p = &r->pass;
    const int64_t n = w->output.n, k = w->output.k;
    int32_t found[MOST_PANELS];
    heed__screen_bound bound;
    if (!heed__screening_bound(r->screening, b->x + i * k,
                               p->bytes.bytes + i * 4 * heed__panel_groups(k), p->bytes.low[i],
                               p->bytes.step[i], &bound))
        return MOST_PANELS + 1;
    for (int64_t j = 0; j < r->never.count; j++)
        forbid(logit, r->never.id[j], r->never.id[j] + 1);
    for (int64_t a = 0; a < w->always_count; a++) {
        const int64_t left = w->always[a] * HEED_PANEL, right = left + HEED_PANEL;
        forbid(logit, left, right < n ? right : n);
    }
    const int64_t most = MOST_PANELS - w->always_count;
    const heed_real floor = heed__kernels()->screen_floor(logit, &bound, n);
    const int64_t count = heed__kernels()->screen_panels(found, logit, &bound, floor, n, most);
    return count > most ? MOST_PANELS + 1 : merge(panel, found, count, w->always, w->always_count);
}

/* Logits of those tokens of row i that may be its best, where the approximate ones stand; returns
 * which they are. */
static heed_tokens choose(const struct best *b, int64_t i)
{
    heed__rows *r = b->r;
    const heed__panel_weights *w = &r->w->output;
    const heed__pass *p = &r->pass;
    heed_real *all = r->last.logit + b->at * r->last.columns, *logit = all + i * r->last.columns;
    int32_t panel[MOST_PANELS];
    const int64_t panels = panels_of(b, i, logit, panel);
    if (panels > MOST_PANELS) {
        heed__pass_columns(p, w, all, r->last.columns, b->x, i, 1, 0, heed__panels(w->n));
        return (heed_tokens){NULL, w->n};
    }
    for (int64_t k = 0; k < panels; k++)
        heed__pass_columns(p, w, all, r->last.columns, b->x, i, 1, panel[k], panel[k] + 1);
    int32_t *token = r->candidate + (b->at + i) * MOST_TOKENS;
    return (heed_tokens){token, gather(logit, token, panel, panels, w->n)};
}

static void choose_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct best *b = context;
    const heed__row_logits *l = &b->r->last;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = b->at + i;
        const heed_real *logit = l->logit + row * l->columns;
        l->choice[row] = choose(b, i);
        l->log_z[row] = logit[0];
        for (int64_t k = 1; k < l->choice[row].count; k++)
            l->log_z[row] = logit[k] > l->log_z[row] ? logit[k] : l->log_z[row];
    }
}

/* Without a shortlist all rows have all columns: N of them. */
void heed__rows_project_best(heed__rows *r, int64_t at, int64_t count)
{
    struct best b = {r, heed__rows_head(r, r->pass.x, count), at};
    heed_real *logit = r->last.logit + at * r->last.columns;
    heed__pass_linear(&r->pass, &r->screening->w, logit, b.x, count);
    heed__parallel(r->pass.threads, count, 1, 8 * r->last.columns, choose_range, &b);
}
