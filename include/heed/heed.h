/* heed.h: everything a model needs (<heed/options.h>, for a program's command line, comes apart).
 * A complete program that learns XOR, C11 or C++20: cc xor.c $(pkg-config --cflags --libs heed)
 *
 *     #include <heed/heed.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         static const heed_real in[] = {0, 0, 0, 1, 1, 0, 1, 1};
 *         static const int32_t answer[] = {0, 1, 1, 0};
 *         heed_error err = {HEED_OK, ""};
 *         heed_params *p = heed_params_new(NULL, &err);
 *         heed_scope root = heed_params_scope(p);
 *         heed_linear_layer hidden, out;
 *         heed_linear_build(&hidden, heed_scope_enter(root, "hidden"), 2, 8, HEED_TANH, true);
 *         heed_linear_build(&out, heed_scope_enter(root, "out"), 8, 2, HEED_IDENTITY, true);
 *         heed_params_finish(p, 1, &err);                    // one flat buffer, drawn from seed 1
 *         heed_optimizer_options adam = {.kind = HEED_ADAM};
 *         heed_optimizer *o = heed_optimizer_new(p, &adam, NULL, &err);
 *         heed_tape *t = heed_tape_new(NULL, &err);
 *         heed_tensor *loss = NULL;
 *         for (int step = 1; step <= 300 && err.status == HEED_OK; step++) {
 *             heed_tape_reset(t);                            // forgets the last step's tensors
 *             heed_tensor *x = heed_input(t, HEED_SHAPE(4, 2), in);
 *             heed_tensor *h = heed_linear_apply(t, &hidden, x);
 *             loss = heed_cross_entropy(t, heed_linear_apply(t, &out, h), answer, 0);
 *             if (heed_backward(t, loss) != HEED_OK)         // the first error of any call above
 *                 err = *heed_tape_error(t);
 *             else
 *                 heed_optimizer_step(o, 0.02, 1);           // rate 0.02, one thread
 *         }
 *         if (err.status == HEED_OK)
 *             printf("loss %.4f\n", heed_tensor_data(loss)[0]);
 *         else
 *             fprintf(stderr, "%s\n", err.text);
 *         heed_tape_free(t);
 *         heed_optimizer_free(o);
 *         heed_params_free(p);
 *         return err.status != HEED_OK;
 *     }
 */
#ifndef HEED_HEED_H
#define HEED_HEED_H

#include <heed/attention.h>
#include <heed/base.h>
#include <heed/data.h>
#include <heed/dist.h>
#include <heed/encoder.h>
#include <heed/engine.h>
#include <heed/generate.h>
#include <heed/io.h>
#include <heed/language.h>
#include <heed/metric.h>
#include <heed/model.h>
#include <heed/nn.h>
#include <heed/ops.h>
#include <heed/search.h>
#include <heed/show.h>
#include <heed/task.h>
#include <heed/tensor.h>
#include <heed/text.h>
#include <heed/train.h>
#include <heed/translate.h>
#include <heed/vocab.h>

#endif
