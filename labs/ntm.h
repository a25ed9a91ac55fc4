/* ntm.h: the Neural Turing Machine (Graves, Wayne, Danihelka 2014): the machine of ntm.c and the
 * tasks of ntm_tasks.c, which ntm_lab.c brings together. */
#ifndef HEED_LABS_NTM_H
#define HEED_LABS_NTM_H

#include <heed/heed.h>

/* ---- the machine ---- */

typedef enum ntm_arch { NTM_LSTM_CONTROLLER, NTM_FEED_FORWARD, NTM_NO_MEMORY } ntm_arch;
typedef enum ntm_shift { NTM_SHIFT_SOFTMAX, NTM_SHIFT_NUMBER } ntm_shift;
typedef struct ntm_sizes {
    int arch;            /* ntm_arch; without a memory it is an LSTM, the paper's baseline */
    int64_t in, out;     /* numbers a step */
    int64_t units;       /* D, of the controller */
    int64_t layers;      /* of the controller */
    int64_t locations;   /* N */
    int64_t width;       /* M, of a location */
    int64_t read_heads;  /* Hr */
    int64_t write_heads; /* Hw */
    int shift;           /* ntm_shift: how a head says where to move */
    int64_t reach;       /* offsets -reach .. reach */
    bool read_first;     /* read from M_{t-1}, before the write; else from M_t */
} ntm_sizes;

typedef struct ntm {
    ntm_sizes sizes;
    heed_rnn_layer lstm;            /* the controller ... */
    heed_linear_layer feed_forward; /* ... or this */
    heed_linear_layer heads;        /* what all heads emit */
    heed_linear_layer output;
    heed_tensor *w_0, *r_0, *h_0, *c_0; /* how a sequence starts: learned */
} ntm;
void ntm_build(ntm *m, heed_scope s, const ntm_sizes *sizes);

/* What goes from one step to the next.  Read heads stand before write heads. */
typedef struct ntm_state {
    heed_tensor *memory; /* (B,M,N) */
    heed_tensor *w;      /* (B,H*N), the weights of all heads */
    heed_tensor *r;      /* (B,Hr*M), what was read */
    heed_tensor *add;    /* (B,Hw*M), what was written; for pictures */
    heed_lstm_state lstm[HEED_RNN_MAX_LAYERS];
} ntm_state;
void ntm_start(heed_tape *t, const ntm *m, int64_t batch, ntm_state *state);
/* One step: x (B,in) -> what the output is made from (B,D + Hr*M). */
heed_tensor *ntm_step(heed_tape *t, const ntm *m, ntm_state *state, heed_tensor *x);

/* ---- the tasks ---- */

typedef enum ntm_task { NTM_COPY, NTM_REPEAT_COPY, NTM_RECALL, NTM_NGRAMS, NTM_SORT } ntm_task;

/* A batch of B sequences of one size.  The machine is shown all of x; what it says from step
 * `first` on is held against the target. */
typedef struct ntm_batch {
    int64_t batch, steps, first, in, out;
    heed_real *x;      /* (steps,B,in) */
    heed_real *target; /* (steps-first,B,out) of bits */
} ntm_batch;
/* How large an example is: vectors of a sequence, items or bits; and how often it is repeated. */
typedef struct ntm_size {
    int64_t length, repeats;
} ntm_size;
void ntm_task_channels(ntm_task task, int64_t *in, int64_t *out);
/* A size of the paper's training range, or its largest. */
ntm_size ntm_task_draw_size(ntm_task task, const heed_rng *rng);
ntm_size ntm_task_largest(ntm_task task);
/* Drawn from rng, which gives the same batch again; lives in the arena.  False when memory is
 * short. */
bool ntm_task_draw(ntm_task task, ntm_size size, int64_t batch, const heed_rng *rng,
                   heed_arena *arena, ntm_batch *out);
/* Bits a sequence that the best possible predictor of the dynamic N-grams pays, who knows the prior
 * and has counted: p(1 | context) = (n_1 + 1/2) / (n_0 + n_1 + 1). */
double ntm_ngrams_optimum(const ntm_batch *b);

/* ---- a machine on a task ---- */

/* What the machine says at the scored steps, as logits (scored*B,out).  watch, if not NULL, gets
 * the state after every step. */
heed_tensor *ntm_answer(heed_tape *t, const ntm *m, const ntm_batch *b, ntm_state *watch);
/* The share of the steps first+1 .. end-1 on which the head moves by one location, always up or
 * always down, whichever it does more often. */
double ntm_walking(const ntm *m, const ntm_state *states, int64_t first, int64_t end, int64_t head);
/* A sequence (the first of the batch), its answer z and the states, as one SVG. */
heed_status ntm_picture(const ntm *m, const ntm_batch *b, const heed_tensor *z,
                        const ntm_state *states, const char *title, heed_arena *arena,
                        const char **svg, heed_error *err);

#endif
