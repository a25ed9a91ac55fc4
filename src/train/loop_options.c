/* loop_options.c: what the options of the loop start as. */
#include <heed/train.h>

#include "base/error.h"

struct holder {
    heed_loop_options loop;
};
static const heed_option fields[] = {HEED_LOOP_OPTIONS(struct holder, loop)};
static const heed_option_set set = {
    .command = "loop", .fields = fields, .count = sizeof fields / sizeof *fields};

heed_status heed_loop_defaults(heed_loop_options *o, heed_error *err)
{
    heed_error own = {0};
    heed_option_result result;
    struct holder h = {{0}};
    if (!o)
        return heed__fail(err, HEED_ARGUMENT, "there is no place for the options of a loop");
    heed_arena *arena = heed_arena_new(NULL, &own);
    if (arena)
        heed_option_parse(&set, 0, NULL, &h, arena, &result, &own);
    heed_arena_free(arena);
    h.loop.threads = 1;
    *o = h.loop;
    return own.status ? heed__fail(err, own.status, "%s", own.text) : HEED_OK;
}
