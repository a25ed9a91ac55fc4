/* mha.h (internal): the two halves of multi-head attention, for whoever keeps keys and values in
 * between. */
#ifndef HEED_ATTENTION_MHA_H
#define HEED_ATTENTION_MHA_H

#include <heed/attention.h>

/* Self-attention's queries (N,H*Dk) and, side by side, keys and values (N,KvHeads*(Dk+Dv)) of x. */
heed_tensor *heed__mha_project(heed_tape *t, const heed_mha_layer *l, heed_tensor *x,
                               heed_tensor **kv);
/* concat(head_i) W^O of queries over keys and values that lie side by side. */
heed_tensor *heed__mha_attend(heed_tape *t, const heed_mha_layer *l, heed_tensor *q,
                              heed_tensor *kv, const heed_segments *queries,
                              const heed_segments *keys, const heed_attend_extra *extra);

#endif
