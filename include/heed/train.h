/* train.h: optimisers over a parameter set's flat buffers, gradient clipping, learning-rate
 * schedules, averages. */
#ifndef HEED_TRAIN_H
#define HEED_TRAIN_H

#include <heed/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- schedules ---- */

typedef enum heed_schedule_kind {
    HEED_SCHEDULE_CONSTANT,     /* rate, after a linear warm-up if warmup > 0 */
    HEED_SCHEDULE_NOAM,         /* rate * d^-0.5 min(step^-0.5, step warmup^-1.5) */
    HEED_SCHEDULE_INVERSE_SQRT, /* rises to rate at warmup, then rate sqrt(warmup/step) */
    HEED_SCHEDULE_COSINE,       /* warm-up, then half a cosine from rate to floor at total */
    HEED_SCHEDULE_LINEAR,       /* warm-up, then a line from rate to floor at total */
} heed_schedule_kind;
typedef struct heed_schedule {
    heed_schedule_kind kind;
    double rate;    /* the peak; for Noam a factor, 1 in the paper */
    int64_t warmup; /* steps */
    int64_t total;  /* cosine, linear */
    double floor;   /* cosine, linear */
    int64_t d;      /* Noam: D */
} heed_schedule;
/* step counts from 1. */
double heed_schedule_rate(const heed_schedule *s, int64_t step);

/* ---- optimisers ---- */

typedef enum heed_optimizer_kind {
    HEED_SGD,
    HEED_ADAM,
    HEED_ADAMW,
    HEED_RMSPROP,
} heed_optimizer_kind;
/* Zero means the default: momentum 0, beta1 .9, beta2 .98, eps 1e-9 (Adam, the paper's) or 1e-8
 * (RMSProp), alpha .95. To really have beta1 = 0, set it negative. */
typedef struct heed_optimizer_options {
    heed_optimizer_kind kind;
    double momentum;     /* SGD, RMSProp */
    double beta1, beta2; /* Adam, AdamW */
    double eps;
    double alpha;        /* RMSProp: decay of the mean square */
    bool centred;        /* RMSProp: divide by the standard deviation (Graves 2013) */
    double weight_decay; /* AdamW: decoupled */
} heed_optimizer_options;

typedef struct heed_optimizer heed_optimizer;
/* Borrows p, which must be finished.  options NULL: SGD without momentum. */
heed_optimizer *heed_optimizer_new(heed_params *p, const heed_optimizer_options *options,
                                   const heed_allocator *allocator, heed_error *err);
void heed_optimizer_free(heed_optimizer *o);
/* One update at this rate with the gradients as they are, which are then set to zero.  Frozen
 * parameters and their moments do not move.  threads, here and below: as many as heed_tape_threads
 * says, or 1. */
void heed_optimizer_step(heed_optimizer *o, double rate, int threads);
int64_t heed_optimizer_updates(const heed_optimizer *o);
void heed_optimizer_set_updates(heed_optimizer *o, int64_t updates);
/* The moments, flat like the set: i in [0, count). For checkpoints. */
int heed_optimizer_moments(const heed_optimizer *o);
heed_real *heed_optimizer_moment(const heed_optimizer *o, int i);
const char *heed_optimizer_moment_name(const heed_optimizer *o, int i);

/* ---- clipping ---- */

/* The Euclidean norm of all gradients of p (frozen ones are zero).  Deterministic for a number of
 * threads. */
double heed_grad_norm(const heed_params *p, int threads);
/* Scales the gradients so that their norm is at most limit; returns the norm before.  A norm that
 * is not finite leaves them alone. */
double heed_clip_norm(heed_params *p, double limit, int threads);
void heed_clip_value(heed_params *p, double limit, int threads);

/* ---- moving average of the weights ---- */

typedef struct heed_ema heed_ema;
/* average = decay average + (1 - decay) weights, decay corrected early on: min(decay,
 * (1+n)/(10+n)). */
heed_ema *heed_ema_new(const heed_params *p, double decay, const heed_allocator *allocator,
                       heed_error *err);
void heed_ema_free(heed_ema *e);
void heed_ema_update(heed_ema *e, int threads);
/* Exchanges average and weights: call before validation and again after it. */
void heed_ema_swap(heed_ema *e);
heed_real *heed_ema_values(const heed_ema *e);
int64_t heed_ema_updates(const heed_ema *e);
void heed_ema_set_updates(heed_ema *e, int64_t updates);

#ifdef __cplusplus
}
#endif
#endif
