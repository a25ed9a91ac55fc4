/* lstmn_reader.c: networks of LSTMN layers: words in, what is said of them out.  Section 5 of the
 * paper: a language model says the next word at every step; a sentence is classified by the mean of
 * its states and one hidden layer; of two sentences the second reads the first (section 4), and the
 * means of both are classified. */
#include "lstmn.h"

void lstmn_reader_build(lstmn_reader *r, heed_scope s, const lstmn_data *d,
                        const lstmn_sizes *sizes, int layers, bool everywhere, double dropout)
{
    const int64_t width = sizes->d;
    *r = (lstmn_reader){.task = d->task,
                        .layers = layers,
                        .sides = d->task == LSTMN_ENTAIL ? 2 : 1,
                        .dropout = dropout};
    r->embedding = heed_param(s, "embedding", HEED_SHAPE(d->vocabulary, sizes->in),
                              (heed_init){HEED_INIT_NORMAL, d->task == LSTMN_RECALL ? 1 : 0.1});
    for (int side = 0; side < r->sides; side++)
        for (int k = 0; k < layers; k++) {
            lstmn_sizes own = *sizes;
            own.in = k ? width : sizes->in;
            own.attention = sizes->attention && (everywhere || k + 1 == layers);
            own.fusion = side && k + 1 == layers ? sizes->fusion : LSTMN_ALONE;
            lstmn_build(&r->layer[side][k], heed_scope_enter(s, "%d.%d", side, k), &own);
        }
    if (d->task == LSTMN_SENTIMENT || d->task == LSTMN_ENTAIL)
        heed_linear_build(&r->hidden, heed_scope_enter(s, "hidden"), r->sides * width, width,
                          HEED_RELU, true);
    r->out = heed_param(s, "out", HEED_SHAPE(d->classes, width),
                        (heed_init){HEED_INIT_XAVIER_UNIFORM, 1});
    r->bias = heed_param(s, "bias", HEED_SHAPE(d->classes), (heed_init){HEED_INIT_ZERO, 0});
}

/* The states of a side, (N,D). */
static heed_tensor *read_side(heed_tape *t, const lstmn_reader *r, const lstmn_batch *b, int side,
                              const lstmn_tape *source, lstmn_tape *made, heed_tensor ***looked)
{
    heed_tensor *x = heed_embedding(t, r->embedding, b->ids[side], b->rows[side]->rows,
                                    &(heed_embedding_options){.dropout = r->dropout});
    for (int k = 0; k < r->layers; k++) {
        const lstmn_layer *l = &r->layer[side][k];
        const bool last = k + 1 == r->layers;
        x = lstmn_apply(t, l, x, b->rows[side], l->sizes.fusion ? source : NULL, last ? made : NULL,
                        last ? looked : NULL);
        if (r->dropout > 0)
            x = heed_dropout(t, x, r->dropout);
    }
    return x;
}

heed_tensor *lstmn_read(heed_tape *t, const lstmn_reader *r, const lstmn_batch *b,
                        heed_tensor ***looked)
{
    lstmn_tape premise = {0};
    heed_tensor *x =
        read_side(t, r, b, 0, NULL, r->sides > 1 ? &premise : NULL, r->sides > 1 ? NULL : looked);
    if (r->task == LSTMN_TEXT)
        return x;
    if (r->task == LSTMN_RECALL)
        return heed_gather_rows(t, x, b->row, b->terms);
    x = heed_segment_mean(t, x, b->rows[0]);
    if (r->sides > 1) {
        heed_tensor *y = read_side(t, r, b, 1, &premise, NULL, looked);
        x = heed_concat_cols(t, (heed_tensor *[]){x, heed_segment_mean(t, y, b->rows[1])}, 2);
    }
    x = heed_linear_apply(t, &r->hidden, x);
    return r->dropout > 0 ? heed_dropout(t, x, r->dropout) : x;
}
