/* profile.c: time by operator, for HEED_PROFILE=1.  The table goes to the tape's log when the tape
 * is freed. */
#include "tensor/tape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void heed__profile_add(heed_tape *t, const heed_op *op, double forward, double backward)
{
    for (int i = 0; i < HEED_PROFILE_ROWS; i++) {
        heed__profile_row *row = &t->profile[i];
        if (row->op && row->op != op)
            continue;
        row->op = op;
        row->calls += forward > 0;
        row->forward += forward;
        row->backward += backward;
        return;
    }
}

static int slowest_first(const void *a, const void *b)
{
    const heed__profile_row *x = a, *y = b;
    double tx = x->forward + x->backward, ty = y->forward + y->backward;
    return (tx < ty) - (tx > ty);
}

void heed__profile_report(heed_tape *t)
{
    if (!t->log.write)
        return;
    qsort(t->profile, HEED_PROFILE_ROWS, sizeof *t->profile, slowest_first);
    double total = 0;
    for (int i = 0; i < HEED_PROFILE_ROWS; i++)
        total += t->profile[i].forward + t->profile[i].backward;
    char line[160];
    snprintf(line, sizeof line, "%-24s %10s %12s %12s %7s", "operator", "calls", "forward s",
             "backward s", "share");
    t->log.write(t->log.context, HEED_LOG_INFO, line);
    for (int i = 0; i < HEED_PROFILE_ROWS && t->profile[i].op; i++) {
        const heed__profile_row *r = &t->profile[i];
        snprintf(line, sizeof line, "%-24s %10" PRId64 " %12.4f %12.4f %6.1f%%", r->op->name,
                 r->calls, r->forward, r->backward,
                 total > 0 ? 100 * (r->forward + r->backward) / total : 0);
        t->log.write(t->log.context, HEED_LOG_INFO, line);
    }
}
