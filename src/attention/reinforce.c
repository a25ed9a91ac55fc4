/* reinforce.c: the gradient of what was drawn (Williams 1992), with a moving baseline.
 *
 *   loss = - weight sum_n (R_n - b_n) sum_h log p_n[h],   R_n = r_n + r_{n+1} + ... in its segment
 *
 * Its gradient is, on average, that of - weight E[sum r] through the choices: what a choice earned
 * before it was made does not depend on it and is left out, and neither does b_n, so that it may be
 * anything; b_n = b times the choices left, b a moving mean of r, makes the spread small.
 * log_p (N,H) -> (1).  The rewards are constants. */
#include <heed/attention.h>

void heed_reinforce_build(heed_reinforce_layer *l, heed_scope s, double momentum)
{
    if (!l)
        return;
    l->momentum = momentum;
    l->baseline = heed_state(s, "baseline", HEED_SHAPE(2), 0);
}

/* b <- m b + (1-m) mean r, the mean that of all passes of an update, with the sum of the weights
 * beside it, so that the first mean counts whole. */
static void move_baseline(const heed_tape *t, const heed_reinforce_layer *l,
                          const heed_real *rewards, int64_t n)
{
    double sum[2] = {0, (double)n};
    for (int64_t i = 0; i < n; i++)
        sum[0] += (double)rewards[i];
    heed_state_add(t, l->baseline, sum, (double)n, l->momentum);
}

heed_tensor *heed_reinforce(heed_tape *t, const heed_reinforce_layer *l, heed_tensor *log_p,
                            const heed_real *rewards, const heed_segments *s, double weight)
{
    if (!log_p || !rewards || heed_tape_error(t)->status)
        return NULL;
    if (!s || heed_tensor_rows(log_p) != s->rows)
        return heed_tape_fail(t, HEED_SHAPE_ERROR, "reinforce: log_p has %lld rows, expected %lld",
                              (long long)heed_tensor_rows(log_p), s ? (long long)s->rows : 0);
    const heed_real *b = heed_tensor_data(l->baseline);
    const double expected = b[1] > 0 ? (double)b[0] / (double)b[1] : 0;
    heed_tensor *advantage = heed_input(t, HEED_SHAPE(s->rows, 1), NULL);
    heed_real *to = heed_tensor_data(advantage);
    for (int64_t i = 0; to && i < s->count; i++) {
        double left = 0;
        for (int64_t n = s->offset[i + 1] - 1; n >= s->offset[i]; n--) {
            left += (double)rewards[n] - expected;
            to[n] = (heed_real)left;
        }
    }
    if (s->rows > 0)
        move_baseline(t, l, rewards, s->rows);
    return heed_scale(t, heed_sum(t, heed_mul(t, log_p, advantage), HEED_ALL), -weight, 0);
}
