/* vocab_help.h: what the tests of the vocabularies share.  Include cmocka.h first. */
#ifndef HEED_TESTS_VOCAB_HELP_H
#define HEED_TESTS_VOCAB_HELP_H

#include <heed/data.h>

#include "temp_folder.h"

/* Lines given as an array that ends with NULL. */
struct given {
    const char *const *line;
    int64_t next;
};

static inline heed_status give(void *context, const char **text, size_t *length, heed_error *err)
{
    (void)err;
    struct given *g = context;
    *text = g->line[g->next];
    *length = *text ? strlen(*text) : 0;
    g->next += *text != NULL;
    return HEED_OK;
}

/* What was logged, a line behind the other. */
struct logged {
    char text[1024];
};

static inline void remember(void *context, heed_log_level level, const char *line)
{
    (void)level;
    struct logged *l = context;
    size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s\n", line);
}

static inline heed_status learn(const heed_vocab_options *o, const char *const *lines,
                                const char *path, struct logged *logged, heed_error *err)
{
    struct given g = {lines, 0};
    heed_line_source from = {give, &g};
    heed_log_sink log = {remember, logged};
    return heed_vocab_train(o, &from, path, logged ? &log : NULL, err);
}

static inline heed_vocab *open_vocab(const char *path, const char *joiner)
{
    heed_error err = {0};
    heed_vocab *v = heed_vocab_open(path, joiner, NULL, &err);
    if (!v)
        fail_msg("%s", err.text);
    return v;
}

static inline heed_tokens encode(const heed_vocab *v, const char *text, heed_arena *arena)
{
    heed_tokens t = {0};
    heed_error err = {0};
    if (heed_vocab_encode(v, text, strlen(text), arena, &t, &err))
        fail_msg("%s", err.text);
    return t;
}

static inline const char *decode(const heed_vocab *v, heed_tokens t, heed_arena *arena)
{
    const char *text = NULL;
    heed_error err = {0};
    if (heed_vocab_decode(v, t.id, t.count, arena, &text, &err))
        fail_msg("%s", err.text);
    return text;
}

/* The error of opening a file with these bytes. */
static inline const char *open_error(const char *path, const void *bytes, size_t n, heed_error *err)
{
    *err = (heed_error){0};
    write_plain(path, bytes, n);
    heed_vocab *v = heed_vocab_open(path, NULL, NULL, err);
    assert_null(v);
    assert_int_not_equal(err->status, HEED_OK);
    assert_non_null(strstr(err->text, path));
    return err->text;
}

#endif
