/* pass_ssru.c: SSRUs for decoding (ops/ssru.c): two products for all rows, then each row's state
 * takes one step.
 *
 * Rows go in their order, so that many tokens at once give the bits of single ones; threads share
 * columns, which do not meet. */
#include "base/parallel.h"
#include "engine/pass.h"
#include "kernel/kernels.h"

#include <string.h>

struct ssru_job {
    const heed__pass *p;
    const heed__packed_ssru *l;
    const heed__pass_keys *k;
    int64_t rows;
};

static void column_range(void *context, int64_t begin, int64_t end, int thread)
{
    const struct ssru_job *j = context;
    const int64_t d = j->l->in.n, columns = end - begin;
    const heed_real *x = j->p->wide, *forget = j->p->wide + j->rows * d;
    (void)thread;
    for (int64_t r = 0; r < j->rows; r++) {
        const int64_t at = r * d + begin;
        heed_real *state = j->p->state + begin;
        if (j->k->state)
            state = j->k->state(j->k->context, j->l->at, r) + begin;
        else if (j->k->place(j->k->context, r).position == 0)
            memset(state, 0, (size_t)columns * sizeof *state);
        heed__kernels()->ssru_cell(j->p->y + at, state, x + at, forget + at, j->l->bias + begin,
                                   state, columns);
    }
}

void heed__pass_ssru(heed__pass *p, const heed__packed_ssru *l, const heed_real *x, int64_t rows,
                     const heed__pass_keys *k)
{
    const int64_t d = l->in.n;
    heed__pass_prepare(p, &l->in, x, rows);
    heed__pass_product(p, &l->in, p->wide, x, rows);
    if (!heed__pass_read_alike(&l->in, &l->forget))
        heed__pass_prepare(p, &l->forget, x, rows);
    heed__pass_product(p, &l->forget, p->wide + rows * d, x, rows);
    struct ssru_job j = {p, l, k, rows};
    heed__parallel(p->threads, d, HEED_PANEL, 20 * rows, column_range, &j);
}
