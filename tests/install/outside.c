/* outside.c: a program that knows only what was installed.  Compiled as C and as C++.
 * d/dx sum((x W) * (x W)) for x (1,2) = (1,2) and W the identity is 2x = (2,4). */
#include <heed/heed.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    static const float x_values[] = {1, 2};
    static const float w_values[] = {1, 0, 0, 1};
    heed_error err = {HEED_OK, ""};
    heed_tape *t = heed_tape_new(NULL, &err);
    if (t == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    heed_tensor *x = heed_variable(t, HEED_SHAPE(1, 2), x_values);
    heed_tensor *w = heed_input(t, HEED_SHAPE(2, 2), w_values);
    heed_tensor *y = heed_linear(t, x, w, NULL, HEED_IDENTITY);
    heed_tensor *loss = heed_sum(t, heed_mul(t, y, y), HEED_ALL);
    if (heed_backward(t, loss) != HEED_OK) {
        fprintf(stderr, "%s\n", heed_tape_error(t)->text);
        heed_tape_free(t);
        return 1;
    }
    /* Takes in the part that is C++, and the libraries behind it; there is no such file. */
    heed_error missing = {HEED_OK, ""};
    if (heed_vocab_open("missing.spm", NULL, NULL, &missing) || missing.status != HEED_IO)
        return 1;
    const float *gradient = heed_tensor_grad(x);
    printf("heed %s loss %g gradient %g %g\n", heed_version(), heed_tensor_data(loss)[0],
           gradient[0], gradient[1]);
    heed_tape_free(t);
    return 0;
}
