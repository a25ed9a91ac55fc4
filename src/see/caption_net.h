/* caption_net.h (internal): the captioner step by step, for training and for search. */
#ifndef HEED_SEE_CAPTION_NET_H
#define HEED_SEE_CAPTION_NET_H

#include <heed/see.h>

/* What captions look at, one after the other in the order of their rows: the first rows are those
 * of any step, because the others have ended. */
typedef struct heed__places {
    heed_tensor *keys, *values; /* (captions*L, ...), or NULL without attention */
    heed_tensor *mean;          /* (captions,A), or NULL without a picture */
    int64_t count, each;        /* captions, L */
} heed__places;
typedef struct heed__caption_step {
    heed_tensor *h, *z;        /* (rows,D); (rows,A) or NULL */
    heed_tensor *logs;         /* log alpha, (rows*L) or NULL */
    heed_tensor *chosen_log_p; /* (rows,1) or NULL */
    heed_tensor *weights;      /* what z was made with, (rows*L) or NULL */
} heed__caption_step;

/* The places of picture[i] for each caption i. */
heed__places heed__caption_see(heed_tape *t, const heed_caption_net *m, const heed_real *pixels,
                               int64_t pictures, const int32_t *picture, int64_t count);
/* h_0 and c_0. */
heed_lstm_state heed__caption_begin(heed_tape *t, const heed_caption_net *m, const heed__places *p);
/* gates (rows,4D) is E y_{t-1} times its matrix; expect: heed_caption_batch. */
heed__caption_step heed__caption_step_on(heed_tape *t, const heed_caption_net *m,
                                         const heed__places *p, heed_tensor *gates,
                                         const uint8_t *expect, heed_lstm_state *state);
/* tanh(E y_{t-1} + L_h h_t + L_z z_t), any rows; z may be NULL. */
heed_tensor *heed__caption_output(heed_tape *t, const heed_caption_net *m, heed_tensor *word,
                                  heed_tensor *h, heed_tensor *z);

#endif
