/* schedule.c: the learning rate at a step, counted from 1.  Pure functions of the step, so that a
 * resumed run needs nothing but its number. */
#include <heed/train.h>
#include <math.h>

/* How far the step is on its way from the end of warm-up to `total`, in [0,1]. */
static double progress(const heed_schedule *s, double step)
{
    double begin = s->warmup > 0 ? (double)s->warmup : 0, end = (double)s->total;
    if (step >= end)
        return 1;
    return (step - begin) / (end - begin);
}

double heed_schedule_rate(const heed_schedule *s, int64_t number)
{
    if (!s)
        return 0;
    const double pi = 3.14159265358979323846;
    double step = number > 1 ? (double)number : 1, warmup = (double)s->warmup;
    if (s->kind == HEED_SCHEDULE_NOAM) {
        /* Section 5.3: d^-0.5 min(step^-0.5, step warmup^-1.5) */
        double shape = 1 / sqrt(step);
        if (step < warmup)
            shape = step / (warmup * sqrt(warmup));
        return s->rate * shape / sqrt(s->d > 0 ? (double)s->d : 1);
    }
    if (step < warmup)
        return s->rate * step / warmup;
    switch (s->kind) {
    case HEED_SCHEDULE_INVERSE_SQRT:
        return s->rate * sqrt((warmup > 1 ? warmup : 1) / step);
    case HEED_SCHEDULE_COSINE:
        return s->floor + (s->rate - s->floor) * (1 + cos(pi * progress(s, step))) / 2;
    case HEED_SCHEDULE_LINEAR:
        return s->rate + (s->floor - s->rate) * progress(s, step);
    default:
        return s->rate;
    }
}
