/* picture_check.h: what the tests of pictures share: an arena, and a look at the text. */
#ifndef HEED_TESTS_PICTURE_CHECK_H
#define HEED_TESTS_PICTURE_CHECK_H

#include "well_formed.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <heed/show.h>

static heed_arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = heed_arena_new(NULL, NULL);
    return arena ? 0 : 1;
}

static int free_arena(void **state)
{
    (void)state;
    heed_arena_free(arena);
    return 0;
}

static void check_xml(const char *text)
{
    const char *at = not_well_formed(text);
    if (at)
        fail_msg("not well-formed at '%.60s'", at);
}

static int64_t occurrences(const char *text, const char *of)
{
    int64_t n = 0;
    for (const char *p = text; (p = strstr(p, of)); p += strlen(of))
        n++;
    return n;
}

#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, make_arena, free_arena)

#endif
