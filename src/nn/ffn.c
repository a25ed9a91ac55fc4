/* ffn.c: the position-wise network of section 3.3, FFN(x) = max(0, x W1 + b1) W2 + b2, with any
 * activation and dropout on the hidden layer.  x (N,D), hidden (N,F) -> (N,D). */
#include <heed/nn.h>

void heed_ffn_build(heed_ffn_layer *l, heed_scope s, int64_t d, int64_t f,
                    heed_activation activation, double dropout)
{
    heed_linear_build(&l->in, heed_scope_enter(s, "in"), d, f, activation, true);
    heed_linear_build(&l->out, heed_scope_enter(s, "out"), f, d, HEED_IDENTITY, true);
    l->dropout = dropout;
}

heed_tensor *heed_ffn_apply(heed_tape *t, const heed_ffn_layer *l, heed_tensor *x)
{
    heed_tensor *hidden = heed_linear_apply(t, &l->in, x); /* (N,F) */
    if (l->dropout > 0)
        hidden = heed_dropout(t, hidden, l->dropout);
    return heed_linear_apply(t, &l->out, hidden); /* (N,D) */
}
