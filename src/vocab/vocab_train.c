/* vocab_train.c: learning a vocabulary of any kind: which lines of the text are used.
 *
 * At most m lines are drawn uniformly in one pass over the text (reservoir sampling, Vitter's
 * algorithm R): line i > m takes a slot with probability m / i. */
#include "base/error.h"
#include "base/memory.h"
#include "text/utf8.h"
#include "vocab/vocabulary.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A source of lines between the caller's and the learner. */
struct filter {
    const heed_line_source *from;
    const heed_vocab_options *options;
    int64_t lines, broken, first_broken;
    /* only if max_lines is set: */
    heed_allocator allocator;
    heed_arena *arena;
    struct line {
        char *text;
        size_t length, capacity;
    } * drawn;
    int64_t held, capacity, given;
    bool all_read;
};

/* The next line that is UTF-8 and not empty; the others are counted. */
static heed_status next_usable(void *context, const char **text, size_t *length, heed_error *err)
{
    struct filter *f = context;
    for (;;) {
        heed_status status = f->from->next(f->from->context, text, length, err);
        if (status || !*text)
            return status;
        f->lines++;
        if (!heed_utf8_valid(*text, *length, NULL)) {
            if (f->broken++ == 0)
                f->first_broken = f->lines;
        } else if (*length > 0) {
            return HEED_OK;
        }
    }
}

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for the lines of a vocabulary");
}

/* Capacity for one more line. */
static heed_status reserve(struct filter *f, heed_error *err)
{
    if (f->held < f->capacity)
        return HEED_OK;
    int64_t capacity = f->capacity ? 2 * f->capacity : 1024;
    struct line *drawn = heed__allocate_zeroed(&f->allocator, (size_t)capacity, sizeof *drawn);
    if (!drawn)
        return no_memory(err);
    if (f->held)
        memcpy(drawn, f->drawn, (size_t)f->held * sizeof *drawn);
    heed__release(&f->allocator, f->drawn, (size_t)f->capacity, sizeof *drawn);
    f->drawn = drawn;
    f->capacity = capacity;
    return HEED_OK;
}

static heed_status keep(struct filter *f, struct line *slot, const char *text, size_t length,
                        heed_error *err)
{
    if (slot->capacity < length) {
        slot->text = heed_arena_allocate(f->arena, length);
        slot->capacity = length;
        if (!slot->text)
            return no_memory(err);
    }
    memcpy(slot->text, text, length);
    slot->length = length;
    return HEED_OK;
}

static heed_status draw(struct filter *f, heed_error *err)
{
    int64_t most = f->options->max_lines;
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = f->options->seed});
    for (int64_t i = 0;; i++) {
        const char *text;
        size_t length;
        heed_status status = next_usable(f, &text, &length, err);
        if (status || !text)
            return status;
        int64_t slot = i < most ? i : heed_rng_below(&rng, (uint64_t)i, i + 1);
        if (slot >= most)
            continue;
        if (i < most && reserve(f, err))
            return HEED_MEMORY;
        f->held += i < most;
        if (keep(f, &f->drawn[slot], text, length, err))
            return HEED_MEMORY;
    }
}

static heed_status next_drawn(void *context, const char **text, size_t *length, heed_error *err)
{
    struct filter *f = context;
    if (!f->all_read) {
        heed_status status = draw(f, err);
        if (status)
            return status;
        f->all_read = true;
    }
    *text = f->given < f->held ? f->drawn[f->given].text : NULL;
    *length = *text ? f->drawn[f->given++].length : 0;
    return HEED_OK;
}

static void log_line(const heed_log_sink *log, heed_log_level level, const char *format, ...)
    HEED_PRINTF(3, 4);
static void log_line(const heed_log_sink *log, heed_log_level level, const char *format, ...)
{
    char line[200];
    if (!log || !log->write)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log->write(log->context, level, line);
}

static heed_status learn(const heed_vocab_options *o, const heed_line_source *lines,
                         const char *path, const heed_log_sink *log, heed_error *err)
{
    static heed_status (*const learners[])(const heed_vocab_options *, const heed_line_source *,
                                           const char *, int32_t *, heed_error *) = {
        [HEED_UNIGRAM] = heed__spm_learn,      [HEED_BPE] = heed__spm_learn,
        [HEED_WHITESPACE] = heed__words_learn, [HEED_CHARACTERS] = heed__characters_learn,
        [HEED_BYTES] = heed__bytes_learn,      [HEED_WORDPIECE] = heed__wordpiece_learn,
    };
    int32_t count = 0;
    heed_status status = learners[o->kind](o, lines, path, &count, err);
    if (!status && count < o->size)
        log_line(log, HEED_LOG_WARNING,
                 "the text supports %d pieces, so that is the vocabulary instead of %lld", count,
                 (long long)o->size);
    return status;
}

static heed_status check(const heed_vocab_options *o, const char *path, heed_error *err)
{
    if (o->kind < HEED_UNIGRAM || o->kind > HEED_WORDPIECE)
        return heed__fail(err, HEED_ARGUMENT, "cannot learn vocabulary '%s': unknown kind %d", path,
                          (int)o->kind);
    const bool any = o->kind == HEED_WHITESPACE || o->kind == HEED_CHARACTERS;
    const int specials = o->kind == HEED_WORDPIECE ? 5 : HEED__SPECIALS;
    int64_t least = any && o->size == 0 ? 0 : specials + (o->kind == HEED_BYTES ? 256 : 1);
    if (o->size < least || o->size > INT32_MAX)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot learn vocabulary '%s': size is %lld, expected at least %lld (%d "
                          "pieces are special%s)",
                          path, (long long)o->size, (long long)least, specials,
                          o->kind == HEED_BYTES ? ", 256 are bytes" : "");
    if (o->max_lines < 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot learn vocabulary '%s': max_lines is %lld, expected 0 or more",
                          path, (long long)o->max_lines);
    if (o->coverage != 0 && !(o->coverage >= 0.98 && o->coverage <= 1))
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot learn vocabulary '%s': coverage is %g, expected 0.98 to 1", path,
                          o->coverage);
    return HEED_OK;
}

heed_status heed_vocab_train(const heed_vocab_options *options, const heed_line_source *lines,
                             const char *path, const heed_log_sink *log, heed_error *err)
{
    if (!options)
        return heed__missing(err, "vocab options");
    heed_error local = {0};
    err = err ? err : &local;
    if (check(options, path, err))
        return HEED_ARGUMENT;
    struct filter f = {
        .from = lines, .options = options, .allocator = heed__allocator_or_default(NULL)};
    heed_line_source usable = {options->max_lines ? next_drawn : next_usable, &f};
    f.arena = heed_arena_new(&f.allocator, err);
    heed_status status = f.arena ? HEED_OK : HEED_MEMORY;
    if (!status)
        status = learn(options, &usable, path, log, err);
    if (f.broken)
        log_line(log, HEED_LOG_WARNING,
                 "%lld of %lld lines are not UTF-8 and were skipped (the first is line %lld)",
                 (long long)f.broken, (long long)f.lines, (long long)f.first_broken);
    heed__release(&f.allocator, f.drawn, (size_t)f.capacity, sizeof *f.drawn);
    heed_arena_free(f.arena);
    return status;
}
