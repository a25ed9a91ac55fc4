/* corpus.c: sentence pairs from files, and an index that finds each of them: 24 bytes a pair, the
 * text itself stays in the mapped files.  Opening reads every file twice: first it is checked and
 * its lines are counted (so that files of different length are refused before anything is logged
 * about their lines), then its usable pairs are entered. */
#include "data/corpus.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/string.h"
#include "data/corpus_file.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* Skipped lines of each kind that are logged individually. */
#define NAMED 10
/* The random stream of held-out pairs. */
#define HOLD_OUT_STREAM 0x686f6c64

/* Lengths fit 32 bits: a line has at most HEED_LINE_LIMIT bytes. */
struct entry {
    const char *source, *target;
    uint32_t source_length, target_length;
};

struct heed_corpus {
    heed_allocator allocator;
    heed__text_file *file; /* source and target of each pair of files, then the TSVs */
    int64_t files;
    struct entry *index;
    int64_t capacity; /* of index; report.pairs of it are in use */
    heed__corpus_part *part;
    int64_t parts, part_capacity;
    heed_corpus_report report;
};

/* A corpus being opened.  Messages about lines are held back until some line is known to be usable:
 * if none is, the counts alone are reported. */
struct opening {
    heed_corpus *c;
    const heed_corpus_files *names;
    heed__pathname *path; /* of each file, without its share */
    const heed_log_sink *log;
    heed_error *err;
    heed__string held[3 * NAMED];
    int holding;
};

static void say(const heed_log_sink *log, const char *line)
{
    if (log && log->write)
        log->write(log->context, HEED_LOG_WARNING, line);
}

static void skip(struct opening *o, int64_t *count, const char *path, int64_t line,
                 const char *what)
{
    if (++*count > NAMED)
        return;
    heed__string *s = &o->held[o->holding++];
    heed__string_init(s, &o->c->allocator);
    heed__string_format(s, "'%.300s' line %lld %s: pair skipped", path, (long long)line, what);
}

/* Unicode white space, control characters, and the two zero-width characters. */
static bool is_blank(int32_t c)
{
    return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200b) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000 || c == 0xfeff;
}

static bool all_blank(const char *text, size_t length)
{
    int32_t c;
    size_t n;
    while ((n = heed__utf8_next(text, length, &c)) != 0 && is_blank(c)) {
        text += n;
        length -= n;
    }
    return length == 0;
}

static uint32_t add_to(uint32_t checksum, const heed_pair *p)
{
    uLong crc = crc32_z(checksum, (const Bytef *)p->source, p->source_length);
    crc = crc32_z(crc, (const Bytef *)"\t", 1);
    crc = crc32_z(crc, (const Bytef *)p->target, p->target_length);
    return (uint32_t)crc32_z(crc, (const Bytef *)"\n", 1);
}

/* Enters the pair, or logs which side is unusable. */
static void enter(struct opening *o, heed_pair p, const char *source_path, const char *target_path,
                  int64_t line)
{
    heed_corpus_report *r = &o->c->report;
    size_t bad = 0;
    bool source_valid = heed_utf8_valid(p.source, p.source_length, &bad);
    if (!source_valid || !heed_utf8_valid(p.target, p.target_length, &bad)) {
        char what[64];
        snprintf(what, sizeof what, "is not UTF-8 (byte %zu%s)", bad + 1,
                 source_valid && source_path == target_path ? " of the target" : "");
        skip(o, &r->broken, source_valid ? target_path : source_path, line, what);
    } else if (all_blank(p.source, p.source_length)) {
        skip(o, &r->empty, source_path, line,
             source_path == target_path ? "has an empty source" : "is empty");
    } else if (all_blank(p.target, p.target_length)) {
        skip(o, &r->empty, target_path, line,
             source_path == target_path ? "has an empty target" : "is empty");
    } else {
        o->c->index[r->pairs++] = (struct entry){p.source, p.target, (uint32_t)p.source_length,
                                                 (uint32_t)p.target_length};
        r->source_bytes += (int64_t)p.source_length;
        r->target_bytes += (int64_t)p.target_length;
        r->checksum = add_to(r->checksum, &p);
    }
}

static void enter_pair_of_files(struct opening *o, int i)
{
    heed__text_file *source = &o->c->file[2 * i], *target = source + 1;
    const char *const source_path = o->path[2 * i], *const target_path = o->path[2 * i + 1];
    heed_pair p;
    for (int64_t line = 1; heed__text_file_line(source, &p.source, &p.source_length) &&
                           heed__text_file_line(target, &p.target, &p.target_length);
         line++)
        enter(o, p, source_path, target_path, line);
}

static void enter_tsv(struct opening *o, int i)
{
    heed__text_file *f = &o->c->file[2 * o->names->pairs + i];
    const char *const path = o->path[2 * o->names->pairs + i], *text;
    size_t length;
    for (int64_t line = 1; heed__text_file_line(f, &text, &length); line++) {
        const char *tab = memchr(text, '\t', length);
        if (!tab) {
            skip(o, &o->c->report.untabbed, path, line, "has no tab");
            continue;
        }
        heed_pair p = {.source = text, .source_length = (size_t)(tab - text), .target = tab + 1};
        p.target_length = length - p.source_length - 1;
        const char *second = memchr(p.target, '\t', p.target_length);
        if (second)
            p.target_length = (size_t)(second - p.target);
        enter(o, p, path, path, line);
    }
}

/* Where the part begins that file i brings, or ends that the one before it brought. */
static void begin_part(struct opening *o, int i)
{
    heed_corpus *c = o->c;
    const heed_corpus_report *r = &c->report;
    if (i > 0) {
        heed__corpus_part *p = &c->part[i - 1];
        p->count = r->pairs - p->first;
        p->bytes[0] = r->source_bytes - p->bytes[0];
        p->bytes[1] = r->target_bytes - p->bytes[1];
    }
    if (i < c->parts) {
        c->part[i].first = r->pairs;
        c->part[i].bytes[0] = r->source_bytes;
        c->part[i].bytes[1] = r->target_bytes;
    }
}

/* All files as one part, if an epoch has all of each. */
static void unite_parts(heed_corpus *c)
{
    for (int64_t i = 0; i < c->parts; i++)
        if (c->part[i].share < 1)
            return;
    const heed_corpus_report *r = &c->report;
    c->parts = 1;
    c->part[0] = (heed__corpus_part){
        .count = r->pairs, .share = 1, .bytes = {r->source_bytes, r->target_bytes}};
}

/* What an epoch has. */
static void sum_parts(heed_corpus *c)
{
    heed_corpus_report *r = &c->report;
    r->epoch_pairs = r->epoch_source_bytes = r->epoch_target_bytes = 0;
    for (int64_t i = 0; i < c->parts; i++) {
        heed__corpus_part *p = &c->part[i];
        heed__part_take(p);
        const double share = p->count ? (double)p->taken / (double)p->count : 0;
        r->epoch_pairs += p->taken;
        r->epoch_source_bytes += (int64_t)((double)p->bytes[0] * share + 0.5);
        r->epoch_target_bytes += (int64_t)((double)p->bytes[1] * share + 0.5);
    }
}

static heed_status check_names(const heed_corpus_files *f, heed_error *err)
{
    bool good = f && f->pairs >= 0 && f->tsvs >= 0 && (!f->pairs || (f->source && f->target)) &&
                (!f->tsvs || f->tsv);
    for (int i = 0; good && i < f->pairs; i++)
        good = f->source[i] && f->target[i];
    for (int i = 0; good && i < f->tsvs; i++)
        good = f->tsv[i] != NULL;
    if (!good || f->pairs + (int64_t)f->tsvs == 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "no corpus: expected names of source and target files, or of TSV files");
    return HEED_OK;
}

/* The paths of all files, and the share that each part has. */
static heed_status find_paths(struct opening *o)
{
    const heed_corpus_files *n = o->names;
    double share = 1;
    for (int64_t i = 0; i < o->c->files; i++) {
        const int64_t tsv = i - 2 * (int64_t)n->pairs;
        const char *const name = tsv >= 0 ? n->tsv[tsv]
                                 : i % 2  ? n->target[i / 2]
                                          : n->source[i / 2];
        const bool second = tsv < 0 && i % 2; /* the target of a pair, which has the source's */
        if (n->shares && !second ? heed__share_split(name, o->path[i], &share, o->err)
                                 : heed__pathname_format(o->path[i], o->err, "%s", name))
            return o->err->status;
        o->c->part[tsv >= 0 ? n->pairs + tsv : i / 2].share = share;
    }
    return HEED_OK;
}

/* Opens every file and adds up the lines. */
static heed_status open_files(struct opening *o)
{
    const heed_corpus_files *names = o->names;
    heed_corpus *c = o->c;
    for (int i = 0; i < names->pairs; i++) {
        heed__text_file *source = &c->file[2 * i], *target = source + 1;
        const char *const source_path = o->path[2 * i], *const target_path = o->path[2 * i + 1];
        if (heed__text_file_open(source, source_path, &c->allocator, o->err) ||
            heed__text_file_open(target, target_path, &c->allocator, o->err))
            return o->err->status;
        if (source->lines != target->lines)
            return heed__fail(o->err, HEED_FORMAT,
                              "cannot read '%s': %lld lines, expected %lld as in '%s'", target_path,
                              (long long)target->lines, (long long)source->lines, source_path);
        c->report.lines += source->lines;
    }
    for (int i = 0; i < names->tsvs; i++) {
        heed__text_file *f = &c->file[2 * names->pairs + i];
        if (heed__text_file_open(f, o->path[2 * names->pairs + i], &c->allocator, o->err))
            return o->err->status;
        c->report.lines += f->lines;
    }
    return HEED_OK;
}

static heed_status conclude(struct opening *o)
{
    const heed_corpus_report *r = &o->c->report;
    int64_t skipped = r->lines - r->pairs;
    if (skipped == 0 && r->pairs)
        return HEED_OK;
    const char *first = o->path[0];
    const char *others = o->c->files > 1 ? " and its companions" : "";
    if (r->lines == 0)
        return heed__fail(o->err, HEED_FORMAT, "no usable sentence pair in '%.150s'%s: empty",
                          first, others);
    if (r->untabbed == r->lines)
        return heed__fail(o->err, HEED_FORMAT,
                          "no usable sentence pair in '%.150s'%s: none of the %lld lines has a "
                          "tab, expected source TAB target",
                          first, others, (long long)r->lines);
    char counts[256];
    snprintf(counts, sizeof counts,
             "%lld lines read, %lld skipped (%lld not UTF-8, %lld with an empty side, %lld without "
             "a tab)",
             (long long)r->lines, (long long)skipped, (long long)r->broken, (long long)r->empty,
             (long long)r->untabbed);
    if (r->pairs == 0)
        return heed__fail(o->err, HEED_FORMAT, "no usable sentence pair in '%.150s'%s: %s", first,
                          others, counts);
    for (int i = 0; i < o->holding; i++)
        say(o->log, heed__string_text(&o->held[i]));
    say(o->log, counts);
    return HEED_OK;
}

/* Everything into the index. */
static heed_status read_files(struct opening *o)
{
    heed_corpus *c = o->c;
    const heed_corpus_files *files = o->names;
    if (find_paths(o) || open_files(o))
        return o->err->status;
    c->index = heed__allocate(&c->allocator, (size_t)c->report.lines, sizeof *c->index);
    if (!c->index)
        return heed__fail(o->err, HEED_MEMORY, "out of memory for an index of %lld lines",
                          (long long)c->report.lines);
    c->capacity = c->report.lines;
    for (int i = 0; i < files->pairs + files->tsvs; i++) {
        begin_part(o, i);
        if (i < files->pairs)
            enter_pair_of_files(o, i);
        else
            enter_tsv(o, i - files->pairs);
    }
    begin_part(o, files->pairs + files->tsvs);
    unite_parts(c);
    sum_parts(c);
    heed_status status = conclude(o);
    for (int i = 0; i < o->holding; i++)
        heed__string_deinit(&o->held[i]);
    return status;
}

heed_corpus *heed_corpus_open(const heed_corpus_files *files, const heed_log_sink *log,
                              const heed_allocator *allocator, heed_error *err)
{
    heed_error local = {0};
    heed_allocator a = heed__allocator_or_default(allocator);
    if (check_names(files, &local)) {
        heed__fail(err, local.status, "%s", local.text);
        return NULL;
    }
    const int64_t count = 2 * (int64_t)files->pairs + files->tsvs;
    heed_corpus *c = heed__allocate_zeroed(&a, 1, sizeof *c);
    heed__pathname *path = heed__allocate(&a, (size_t)count, sizeof *path);
    if (c) {
        *c = (heed_corpus){.allocator = a, .files = count};
        c->parts = c->part_capacity = files->pairs + (int64_t)files->tsvs;
        c->file = heed__allocate_zeroed(&a, (size_t)count, sizeof *c->file);
        c->part = heed__allocate_zeroed(&a, (size_t)c->parts, sizeof *c->part);
    }
    struct opening o = {.c = c, .names = files, .path = path, .log = log, .err = &local};
    if (!c || !c->file || !c->part || !path)
        heed__fail(&local, HEED_MEMORY, "out of memory for a corpus of %lld files",
                   (long long)count);
    else
        read_files(&o);
    heed__release(&a, path, (size_t)count, sizeof *path);
    if (!local.status)
        return c;
    heed_corpus_free(c);
    heed__fail(err, local.status, "%s", local.text);
    return NULL;
}

void heed_corpus_free(heed_corpus *c)
{
    if (!c)
        return;
    heed_allocator a = c->allocator;
    for (int64_t i = 0; c->file && i < c->files; i++)
        heed__text_file_close(&c->file[i]);
    heed__release(&a, c->file, (size_t)c->files, sizeof *c->file);
    heed__release(&a, c->part, (size_t)c->part_capacity, sizeof *c->part);
    heed__release(&a, c->index, (size_t)c->capacity, sizeof *c->index);
    heed__release(&a, c, 1, sizeof *c);
}

/* Copies to held one pair from each of equal ranges of an epoch's pairs, drawn from the seed:
 * spread over all files, in their order. */
static void draw_held(const heed_corpus *c, heed_corpus *held, uint64_t seed)
{
    heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = seed, .node = HOLD_OUT_STREAM});
    int64_t total = c->report.epoch_pairs, n = held->capacity, begin = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t end = (k + 1) * (total / n) + (k + 1) * (total % n) / n;
        int64_t drawn = begin + heed_rng_below(&rng, (uint64_t)k, end - begin);
        held->index[k] = c->index[heed__corpus_spread(c, drawn)];
        begin = end;
    }
}

/* Takes the held pairs out of c. */
static void remove_held(heed_corpus *c, heed_corpus *held)
{
    int64_t kept = 0, k = 0;
    for (int64_t at = 0, i = 0; at < c->parts; at++) {
        heed__corpus_part *p = &c->part[at];
        const int64_t end = p->first + p->count;
        p->first = kept;
        for (; i < end; i++) {
            const struct entry e = c->index[i];
            if (k == held->capacity || e.source != held->index[k].source) {
                c->index[kept++] = e;
                continue;
            }
            k++;
            p->bytes[0] -= e.source_length;
            p->bytes[1] -= e.target_length;
            held->part->bytes[0] += e.source_length;
            held->part->bytes[1] += e.target_length;
        }
        p->count = kept - p->first;
    }
    c->report.pairs = kept;
}

/* What both have now. */
static void report_held(heed_corpus *c, heed_corpus *held)
{
    const heed__corpus_part *p = held->part;
    held->report = (heed_corpus_report){.lines = held->capacity,
                                        .pairs = held->capacity,
                                        .source_bytes = p->bytes[0],
                                        .target_bytes = p->bytes[1],
                                        .checksum = c->report.checksum};
    c->report.source_bytes -= p->bytes[0];
    c->report.target_bytes -= p->bytes[1];
    sum_parts(c);
    sum_parts(held);
}

heed_corpus *heed_corpus_hold_out(heed_corpus *c, int64_t pairs, uint64_t seed,
                                  const heed_allocator *allocator, heed_error *err)
{
    if (!c)
        return heed__missing(err, "corpus"), NULL;
    heed_allocator a = heed__allocator_or_default(allocator);
    if (pairs < 1 || pairs >= c->report.epoch_pairs) {
        heed__fail(err, HEED_ARGUMENT, "cannot hold out %lld of %lld pairs", (long long)pairs,
                   (long long)c->report.epoch_pairs);
        return NULL;
    }
    heed_corpus *held = heed__allocate_zeroed(&a, 1, sizeof *held);
    if (held) {
        *held = (heed_corpus){.allocator = a, .capacity = pairs, .parts = 1, .part_capacity = 1};
        held->index = heed__allocate(&a, (size_t)pairs, sizeof *held->index);
        held->part = heed__allocate_zeroed(&a, 1, sizeof *held->part);
    }
    if (!held || !held->index || !held->part) {
        heed__fail(err, HEED_MEMORY, "out of memory for an index of %lld lines", (long long)pairs);
        heed_corpus_free(held);
        return NULL;
    }
    draw_held(c, held, seed);
    *held->part = (heed__corpus_part){.count = pairs, .share = 1};
    remove_held(c, held);
    report_held(c, held);
    return held;
}

/* Behind the pairs and parts that c has so far, those of more. */
static void append(heed_corpus *c, const heed_corpus *more, int64_t times)
{
    for (int64_t k = 0; k < times; k++) {
        for (int64_t i = 0; i < more->parts; i++) {
            heed__corpus_part *p = &c->part[c->parts++];
            *p = more->part[i];
            p->first += c->report.pairs;
        }
        memcpy(c->index + c->report.pairs, more->index,
               (size_t)more->report.pairs * sizeof *c->index);
        c->report.pairs += more->report.pairs;
        c->report.source_bytes += more->report.source_bytes;
        c->report.target_bytes += more->report.target_bytes;
    }
}

heed_status heed__corpus_mix(heed_corpus *c, int64_t times, const heed_corpus *more,
                             int64_t more_times, heed_error *err)
{
    const heed_corpus_report a = c->report, b = more->report;
    heed_corpus mixed = *c;
    mixed.capacity = times * a.pairs + more_times * b.pairs;
    mixed.part_capacity = times * c->parts + more_times * more->parts;
    mixed.parts = 0;
    mixed.report.pairs = mixed.report.source_bytes = mixed.report.target_bytes = 0;
    mixed.index = heed__allocate(&c->allocator, (size_t)mixed.capacity, sizeof *mixed.index);
    mixed.part = heed__allocate(&c->allocator, (size_t)mixed.part_capacity, sizeof *mixed.part);
    if (mixed.index && mixed.part) {
        append(&mixed, c, times);
        append(&mixed, more, more_times);
        mixed.report.checksum =
            (uint32_t)crc32_combine(a.checksum, b.checksum, b.source_bytes + b.target_bytes);
        unite_parts(&mixed);
        sum_parts(&mixed);
        const heed_corpus old = *c;
        *c = mixed;
        mixed = old;
    }
    const bool short_of = !mixed.index || !mixed.part;
    heed__release(&c->allocator, mixed.index, (size_t)mixed.capacity, sizeof *mixed.index);
    heed__release(&c->allocator, mixed.part, (size_t)mixed.part_capacity, sizeof *mixed.part);
    return short_of ? heed__fail(err, HEED_MEMORY, "out of memory for an index of %lld lines",
                                 (long long)(times * a.pairs + more_times * b.pairs))
                    : HEED_OK;
}

heed_corpus_report heed_corpus_describe(const heed_corpus *c)
{
    if (!c)
        return (heed_corpus_report){0};
    return c->report;
}

heed_pair heed_corpus_pair(const heed_corpus *c, int64_t i)
{
    if (!c)
        return (heed_pair){0};
    if (i < 0 || i >= c->report.pairs)
        return (heed_pair){"", "", 0, 0};
    const struct entry *e = &c->index[i];
    return (heed_pair){e->source, e->target, e->source_length, e->target_length};
}

void heed__corpus_scattered(const heed_corpus *c)
{
    for (int64_t i = 0; i < c->files; i++)
        heed__text_file_scattered(&c->file[i]);
}

const heed__corpus_part *heed__corpus_parts(const heed_corpus *c, int64_t *parts)
{
    *parts = c->parts;
    return c->part;
}

const heed__corpus_part *heed__corpus_part_of(const heed_corpus *c, int64_t i)
{
    int64_t k = 0;
    while (k < c->parts - 1 && i >= c->part[k].first + c->part[k].count)
        k++;
    return &c->part[k];
}

int64_t heed__corpus_spread(const heed_corpus *c, int64_t k)
{
    return heed__parts_spread(c->part, c->parts, k);
}
