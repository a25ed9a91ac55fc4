/* fold_score.c: Luong's general score, q W k with q = x W^Q, without a product of its own: packed
 * queries are x (W^Q W).  In a file of int8 matrices W^Q is stored so, and W as the identity. */
#include "engine/fold_score.h"
#include "model/model_class.h"
#include "tensor/tensor_fields.h"

#include <string.h>

static const heed_linear_layer *queries_of(const heed_mha_layer *l)
{
    return l->options.cross ? &l->q : &l->qkv;
}

/* Rows of queries, head by head, times the score's rows of that head; `spare` has room for one. */
static void fold(const heed_mha_layer *l, heed_real *query, int64_t rows, const heed_real *score,
                 heed_real *spare)
{
    const int64_t d = l->options.d_k, ld = heed_tensor_cols(queries_of(l)->weight);
    for (int64_t i = 0; query && i < rows; i++)
        for (int64_t h = 0; h < l->options.heads; h++) {
            heed_real *const q = query + i * ld + h * d;
            memcpy(spare, q, (size_t)d * sizeof *q);
            for (int64_t j = 0; j < d; j++) {
                double sum = 0;
                for (int64_t k = 0; k < d; k++)
                    sum += (double)spare[k] * (double)score[(h * d + k) * d + j];
                q[j] = (heed_real)sum;
            }
        }
}

heed__panel_weights heed__pack_queries(heed__weight_source *s, const heed_mha_layer *l)
{
    const heed_linear_layer *in = queries_of(l);
    const bool stored = s->bits && s->file; /* as int8, folded already */
    if (l->options.score != HEED_SCORE_GENERAL || stored || s->err->status)
        return heed__source_matrix(s, in->weight, false, in->bias, in->activation);
    heed__weight_source passing = *s, folded = *s;
    passing.arena = s->passing;
    folded.file = NULL; /* from the copies, that is */
    heed_tensor weight = *in->weight, bias = in->bias ? *in->bias : (heed_tensor){.data = NULL};
    weight.data = heed__source_copy(&passing, in->weight);
    bias.data = heed__source_copy(&passing, in->bias);
    const heed_real *score = heed__source_copy(&passing, l->attend.weight);
    heed_real *spare = heed__source_take(&passing, l->options.d_k, sizeof *spare);
    if (s->err->status)
        return (heed__panel_weights){.k = 0};
    fold(l, weight.data, weight.rows, score, spare);
    fold(l, bias.data, 1, score, spare);
    for (int64_t j = 0; s->bits && bias.data && j < weight.cols; j++)
        bias.data[j] = (heed_real)(float)bias.data[j]; /* as a file of int8 matrices has it */
    return heed__source_matrix(&folded, &weight, false, in->bias ? &bias : NULL, in->activation);
}

static void make_identity(heed_tensor *score, int64_t d)
{
    for (int64_t i = 0; i < score->rows; i++)
        for (int64_t j = 0; j < d; j++)
            score->data[i * d + j] = i % d == j;
}

static bool fold_stack(const heed_stack *s, heed_arena *arena)
{
    for (int i = 0; s && i < s->count; i++) {
        const heed_mha_layer *l = &s->sublayer[i].as.mha;
        if (s->sublayer[i].kind->form != HEED_SUBLAYER_MHA ||
            l->options.score != HEED_SCORE_GENERAL)
            continue;
        const heed_linear_layer *in = queries_of(l);
        heed_real *spare = heed_arena_allocate(arena, (size_t)l->options.d_k * sizeof *spare);
        if (!spare)
            return false;
        fold(l, in->weight->data, in->weight->rows, l->attend.weight->data, spare);
        fold(l, in->bias ? in->bias->data : NULL, 1, l->attend.weight->data, spare);
        make_identity(l->attend.weight, l->options.d_k);
    }
    return true;
}

bool heed__fold_scores(heed_model *m, heed_arena *arena)
{
    return fold_stack(heed__model_stack(m, HEED_SOURCE), arena) &&
           fold_stack(heed__model_stack(m, HEED_TARGET), arena);
}
