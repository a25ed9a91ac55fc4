/* list.h: every operator, one line each.  The tests, `heed list ops`, `heed selftest` and the
 * benchmark read it. */
#ifndef HEED_OPS_LIST_H
#define HEED_OPS_LIST_H

#define HEED_OP_LIST(X)                                                                            \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(scale)                                                                                       \
    X(clamp)                                                                                       \
    X(abs)                                                                                         \
    X(exp)                                                                                         \
    X(log)                                                                                         \
    X(sqrt)                                                                                        \
    X(square)                                                                                      \
    X(relu)                                                                                        \
    X(gelu)                                                                                        \
    X(gelu_tanh)                                                                                   \
    X(silu)                                                                                        \
    X(tanh)                                                                                        \
    X(sigmoid)                                                                                     \
    X(softplus)                                                                                    \
    X(maxout)                                                                                      \
    X(matmul)                                                                                      \
    X(batch_matmul)                                                                                \
    X(linear)                                                                                      \
    X(outer)                                                                                       \
    X(cosine)                                                                                      \
    X(softmax)                                                                                     \
    X(log_softmax)                                                                                 \
    X(segment_softmax)                                                                             \
    X(segment_sum)                                                                                 \
    X(segment_mean)                                                                                \
    X(segment_max)                                                                                 \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(max)                                                                                         \
    X(logsumexp)                                                                                   \
    X(top_k)                                                                                       \
    X(layer_norm)                                                                                  \
    X(rms_norm)                                                                                    \
    X(batch_norm)                                                                                  \
    X(dropout)                                                                                     \
    X(add_norm)                                                                                    \
    X(add_dropout)                                                                                 \
    X(embedding)                                                                                   \
    X(gather_rows)                                                                                 \
    X(scatter_rows)                                                                                \
    X(select)                                                                                      \
    X(concat_cols)                                                                                 \
    X(concat_rows)                                                                                 \
    X(slice_cols)                                                                                  \
    X(slice_rows)                                                                                  \
    X(reshape)                                                                                     \
    X(transpose_last)                                                                              \
    X(stack)                                                                                       \
    X(unstack)                                                                                     \
    X(segment_shift)                                                                               \
    X(segment_reverse)                                                                             \
    X(stop_gradient)                                                                               \
    X(cross_entropy)                                                                               \
    X(project_cross_entropy)                                                                       \
    X(project_agreement)                                                                           \
    X(project_log_p)                                                                               \
    X(attention)                                                                                   \
    X(lstm_step)                                                                                   \
    X(gru_step)                                                                                    \
    X(ntm_content)                                                                                 \
    X(ntm_location)                                                                                \
    X(ntm_read)                                                                                    \
    X(ntm_write)                                                                                   \
    X(sample)

#endif
