/* test_train_diverge.c: a training whose numbers stop being numbers says where that began. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train_case.h"
#include <math.h>

/* Finite, and no sum of several is. */
#ifdef HEED_DOUBLE
#define LARGE 1.7e308
#else
#define LARGE 3.4e38F
#endif

/* At update 3: all weights of this tensor, and one gradient of these, get another value. */
struct poison {
    const char *weights;
    heed_real value;
    const char *gradient[2];
};

static heed_tensor *find(heed_params *p, const char *name)
{
    heed_tensor *x = heed_params_find(p, name);
    if (!x)
        fail_msg("there is no tensor '%s'", name);
    return x;
}

static void poison(void *context, heed_params *p, int64_t update)
{
    const struct poison *c = context;
    if (update != 3)
        return;
    heed_tensor *x = c->weights ? find(p, c->weights) : NULL;
    for (int64_t i = 0; x && i < heed_tensor_count(x); i++)
        heed_tensor_data(x)[i] = c->value;
    for (int i = 0; i < 2 && c->gradient[i]; i++)
        heed_tensor_grad(find(p, c->gradient[i]))[0] = (heed_real)NAN;
}

static void remember_first(void *context, heed_log_level level, const char *line)
{
    char *text = context;
    if (level == HEED_LOG_WARNING && !*text)
        snprintf(text, 512, "%s", line);
}

static void first_warning(const struct poison *c, const char *const *more, char text[512])
{
    heed_train_hooks hooks = {.gradients = poison, .context = (void *)c};
    hooks.log = (heed_log_sink){remember_first, text};
    heed_error err = {0};
    *text = '\0';
    train_in(in_room("m"), more, false, &hooks, NULL, &err);
    remove_tree(in_room("m"));
}

/* Catches a loss that is no number and is put down to the embedding, which comes first in the set
 * and, tied, has a part in everything: it is the operator where it began, with its weights. */
static void test_where_it_began(void **state)
{
    (void)state;
    static const struct {
        struct poison poison;
        const char *text;
    } cases[] = {
        {{.weights = "decoder.0.ffn.in.weight", .value = LARGE},
         "the result of linear with 'decoder.0.ffn.in.weight'"},
        {{.weights = "encoder.0.ffn.out.weight", .value = LARGE},
         "the result of linear with 'encoder.0.ffn.out.weight'"},
        {{.weights = "embedding.table", .value = LARGE},
         "the result of embedding with 'embedding.table'"},
        {{.weights = "decoder.0.ffn.in.weight", .value = (heed_real)NAN},
         "update 4: the weights of 'decoder.0.ffn.in.weight' are not finite (loss "},
        {{.gradient = {"encoder.0.ffn.in.weight"}},
         "update 3: the gradient of 'encoder.0.ffn.in.weight' is not finite (loss "},
        /* What comes before is only reached by it. */
        {{.gradient = {"embedding.table", "decoder.0.ffn.in.weight"}},
         "update 3: the gradient of 'decoder.0.ffn.in.weight' is not finite (loss "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        first_warning(&cases[i].poison, MORE("--valid-every", "0", "--max-updates", "4"), text);
        if (!strstr(text, cases[i].text))
            fail_msg("'%s', expected '%s'", text, cases[i].text);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_room, clear_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_where_it_began)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
