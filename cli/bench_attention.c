/* bench_attention.c: `heed bench attention`: which rows, which lengths. */
#include "bench_attention.h"
#include "bench/bench.h"
#include "command.h"

#include <stdio.h>
#include <string.h>

struct attention_settings {
    int64_t threads;
    bool json;
    const char *rows, *lengths;
    bool both_sides;
};
static const heed_option attention_fields[] = {
    HEED_OPTION_INT(struct attention_settings, threads, "threads", "1", 1, 64, "N",
                    "measure with N threads"),
    HEED_OPTION_BOOL(struct attention_settings, json, "json", NULL, "print one JSON object a line"),
    HEED_OPTION_TEXT(struct attention_settings, rows, "rows", NULL, "NAME,...",
                     "patterns and normalisers, as in global,band:256,elu; all kinds if not given"),
    HEED_OPTION_TEXT(struct attention_settings, lengths, "lengths", NULL, "N,...",
                     "tokens of a sequence; 256 to 16384 if not given.  Dense attention stops at "
                     "8192"),
    HEED_OPTION_BOOL(struct attention_settings, both_sides, "both-sides", NULL,
                     "a query sees also what comes behind it"),
};
static const char *const attention_examples[] = {
    "heed bench attention", "heed bench attention --rows global,band:256,elu --lengths 1024,4096",
    NULL};
static const heed_option_set attention_set = {
    .command = "heed bench attention",
    .summary = "Measure attentions of 8 heads of 64 as sequences grow: forward, forward and "
               "backward, memory, exponents, and from where on each is faster than the dense one",
    .fields = attention_fields,
    .count = sizeof attention_fields / sizeof *attention_fields,
    .examples = attention_examples,
};

/* The next of several words with commas between them, copied to word; where it ends. */
static const char *next_word(const char *text, char *word, size_t room)
{
    const size_t n = strcspn(text, ",");
    snprintf(word, room, "%.*s", (int)n, text);
    return text + n + (text[n] == ',');
}

/* False after saying what is wrong. */
static bool read_lists(const struct attention_settings *s, bench_attention_settings *b,
                       heed_arena *arena)
{
    enum { ROOM = 128, LONGEST = 1 << 20 };
    for (const char *at = s->rows ? s->rows : ""; *at; b->count++) {
        char *word = heed_arena_allocate(arena, ROOM);
        if (b->count == BENCH_ATTENTION_ROWS || !word) {
            complain("option '--rows' names more than %d rows", BENCH_ATTENTION_ROWS);
            return false;
        }
        at = next_word(at, word, ROOM);
        b->row[b->count] = word;
    }
    for (const char *at = s->lengths ? s->lengths : ""; *at; b->lengths++) {
        char word[ROOM], end;
        long long n;
        at = next_word(at, word, ROOM);
        if (b->lengths == BENCH_ATTENTION_LENGTHS || sscanf(word, "%8lld%c", &n, &end) != 1 ||
            n < 1 || n > LONGEST) {
            complain("option '--lengths' has '%s', expected at most %d numbers from 1 to %d", word,
                     BENCH_ATTENTION_LENGTHS, LONGEST);
            return false;
        }
        b->length[b->lengths] = n;
    }
    return true;
}

int bench_attention_run(int argc, const char *const *argv)
{
    invocation in;
    struct attention_settings s = {0};
    bench_attention_settings b = {0};
    int code = EXIT_DONE;
    if (!invocation_begin(&in, &attention_set, argc, argv, &s)) {
        code = in.exit_code;
    } else if (!read_lists(&s, &b, in.arena)) {
        code = EXIT_USAGE;
    } else {
        b.common = (bench_settings){(int)s.threads, s.json, NULL};
        b.both_sides = s.both_sides;
        if (!bench_attention_rows(&b))
            code = EXIT_FAILED;
    }
    invocation_end(&in);
    return code;
}
