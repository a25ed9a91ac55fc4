/* toy_fixture.h: for tests of text in, text out: the toy of toy_translator.h, trained once for all
 * tests of a program (it takes a second), with its vocabulary in the folder.  Include cmocka.h and
 * folder.h first. */
#ifndef HEED_TESTS_TOY_FIXTURE_H
#define HEED_TESTS_TOY_FIXTURE_H

#include "toy_translator.h"

static heed_model *model;
static heed_vocab *vocab;
static heed_translator *translator;
static heed_arena *arena;

static int toy_set_up(void **state)
{
    if (make_folder(state))
        return -1;
    heed_error err = {0};
    toy_write_vocabulary(in_folder("shared.vocab"));
    model = toy_train();
    vocab = heed_vocab_open(in_folder("shared.vocab"), NULL, NULL, &err);
    translator = vocab ? heed_translator_new(model, vocab, vocab, 1, NULL, &err) : NULL;
    arena = heed_arena_new(NULL, &err);
    if (err.status)
        print_error("%s\n", err.text);
    return err.status;
}

static int toy_tear_down(void **state)
{
    heed_arena_free(arena);
    heed_translator_free(translator);
    heed_vocab_free(vocab);
    heed_model_free(model);
    return remove_folder(state);
}

static void translate(const heed_search_options *o, const char *const *lines, int64_t count,
                      heed_translation *out)
{
    heed_error err = {0};
    if (heed_translate(translator, o, lines, count, arena, out, &err))
        fail_msg("%s", err.text);
}

#endif
