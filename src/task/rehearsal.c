/* rehearsal.c: a model that learns a few hundred new pairs forgets, within a minute, half of what
 * it knew.  So every model keeps a sample of its training text, and --from mixes that with the new
 * pairs, repeated until it has the share that --rehearse asks for.  It comes in the model's own
 * translations (own_sample.c), and what is wanted there is not the one word that it chose but the
 * probabilities that it gave to all: at the start their gradient is zero, so what the new pairs do
 * not move stays.  The weights of the start are kept for that (start.safetensors).
 *
 * How often the new pairs are seen, k = 14 (bytes / 13000)^-1/4, is part of the mixture: one epoch
 * has them k times.  docs/RESULTS.md has the runs that decided. */
#include "base/string.h"
#include "data/corpus.h"
#include "engine/model_directory.h"
#include "engine/packed_weights.h"
#include "model/model_class.h"
#include "task/defaults.h"
#include "task/translation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES_MOST 14     /* that a text of a few hundred pairs is seen */
#define TIMES_LEAST 2     /* that a long one is */
#define FEW_BYTES 13000.0 /* of a text of a few hundred pairs */
#define SAMPLE_TIMES_MOST 10
#define LONGEST_LINE 1000 /* bytes of a side, in a sample */
#define START_FILE "training/start.safetensors"

double heed__passes(double target_bytes)
{
    const double k = TIMES_MOST * pow(FEW_BYTES / target_bytes, 0.25);
    return k < TIMES_LEAST ? TIMES_LEAST : k > TIMES_MOST ? TIMES_MOST : k;
}

/* How often one epoch has the new pairs, and those of the sample. */
static void reckon(const heed_corpus *c, const heed_corpus *sample, double share, int64_t *times,
                   int64_t *sample_times)
{
    const double bytes = (double)heed_corpus_describe(c).epoch_target_bytes;
    const double sampled = (double)heed_corpus_describe(sample).target_bytes;
    const double k = floor(heed__passes(bytes) + 0.5);
    double n = floor(share / (1 - share) * k * bytes / sampled + 0.5);
    n = n < 1 ? 1 : n > SAMPLE_TIMES_MOST ? SAMPLE_TIMES_MOST : n;
    *times = (int64_t)k;
    *sample_times = (int64_t)n;
}

static heed_corpus *open_tsv(const heed__translation *t, const char *path, heed_error *err)
{
    const heed_corpus_files files = {.tsv = &path, .tsvs = 1};
    return heed_corpus_open(&files, &t->hooks.log, &t->allocator, err);
}

/* The sample in the model's own translations, through a file that is gone once it is open.  NULL
 * without an error: the model has learned too little to translate a single line. */
static heed_corpus *open_own(heed__translation *t, const char *path, heed_error *err)
{
    heed__pathname own;
    const char *folder = getenv("TMPDIR");
    heed_corpus *found = NULL, *sample = open_tsv(t, path, err);
    if (!sample || heed__own_sample(t, sample, &t->own_sample, err) ||
        heed__pathname_format(own, err, "%s/heed-sample-XXXXXX",
                              folder && *folder ? folder : "/tmp")) {
        heed_corpus_free(sample);
        return NULL;
    }
    int fd;
    if (!t->own_sample.length) {
        heed__translation_say(t, HEED_LOG_WARNING,
                              "'%s' translates no line of its sample: nothing is rehearsed",
                              t->recipe.train.from);
    } else if ((fd = mkstemp(own)) < 0) {
        heed__fail(err, HEED_IO, "cannot make '%s': %s", own, strerror(errno));
    } else {
        close(fd);
        if (!heed_text_save(own, heed__string_text(&t->own_sample), err))
            found = open_tsv(t, own, err);
        unlink(own);
    }
    heed_corpus_free(sample);
    return found;
}

heed_status heed__rehearse(heed__translation *t, const char *folder, bool resumed, heed_error *err)
{
    heed__pathname path;
    const double share = t->recipe.train.rehearse;
    heed_status status = heed__pathname_format(
        path, err, resumed ? "%s/training/" HEED__SAMPLE_FILE : "%s/" HEED__SAMPLE_FILE, folder);
    if (status || share <= 0 || !heed__folder_exists(path))
        return status;
    t->rehearsal = resumed ? open_tsv(t, path, err) : open_own(t, path, err);
    if (!t->rehearsal)
        return err->status;
    int64_t times, sample_times;
    const int64_t pairs = heed_corpus_describe(t->corpus).epoch_pairs;
    reckon(t->corpus, t->rehearsal, share, &times, &sample_times);
    if (!resumed)
        heed__translation_say(t, HEED_LOG_INFO,
                              "an epoch has your %lld pairs %lld times, and what the model makes "
                              "of %lld other lines %lld times",
                              (long long)pairs, (long long)times,
                              (long long)heed_corpus_describe(t->rehearsal).pairs,
                              (long long)sample_times);
    status = heed__corpus_mix(t->corpus, times, t->rehearsal, sample_times, err);
    t->first_rehearsed = heed_corpus_describe(t->corpus).pairs -
                         sample_times * heed_corpus_describe(t->rehearsal).pairs;
    return status;
}

static bool fits_a_line(const char *text, size_t length)
{
    return length <= LONGEST_LINE && !memchr(text, '\t', length) && !memchr(text, '\r', length);
}

/* Pairs from all parts of the corpus. */
static heed_status write_sample(const heed__translation *t, heed_error *err)
{
    heed__pathname path;
    heed__string lines;
    const int64_t pairs = heed_corpus_describe(t->corpus).epoch_pairs;
    const int64_t most = t->recipe.train.sample_pairs, n = pairs < most ? pairs : most;
    heed__string_init(&lines, &t->allocator);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = (int64_t)((double)i * (double)pairs / (double)n);
        const heed_pair p = heed_corpus_pair(t->corpus, heed__corpus_spread(t->corpus, k));
        if (fits_a_line(p.source, p.source_length) && fits_a_line(p.target, p.target_length))
            heed__string_format(&lines, "%.*s\t%.*s\n", (int)p.source_length, p.source,
                                (int)p.target_length, p.target);
    }
    heed_status status =
        lines.failed ? heed__fail(err, HEED_MEMORY, "out of memory for a sample") : HEED_OK;
    if (!status && lines.length &&
        !(status = heed__pathname_format(path, err, "%s/" HEED__SAMPLE_FILE, t->folder)))
        status = heed_text_save(path, heed__string_text(&lines), err);
    if (!status && lines.length)
        heed__translation_say(t, HEED_LOG_INFO,
                              "%s keeps %lld pairs of the text with the model, for a later --from; "
                              "--sample-pairs 0 leaves them out",
                              HEED__SAMPLE_FILE, (long long)n);
    heed__string_deinit(&lines);
    return status;
}

static heed_status keep_start(const heed__translation *t, heed_error *err)
{
    heed__pathname from, to;
    heed_status status =
        heed__pathname_format(from, err, "%s/model.safetensors", t->recipe.train.from);
    if (!status)
        status = heed__pathname_format(to, err, "%s/" START_FILE, t->folder);
    return status ? status : heed__file_copy(from, to, &t->allocator, err);
}

heed_status heed__keep_sample(heed__translation *t, heed_error *err)
{
    heed__pathname to;
    heed_status status = HEED_OK;
    if (t->rehearsal &&
        !(status = heed__pathname_format(to, err, "%s/training/" HEED__SAMPLE_FILE, t->folder)) &&
        !(status = heed_text_save(to, heed__string_text(&t->own_sample), err)))
        status = keep_start(t, err);
    return status ? status : write_sample(t, err);
}

/* ---- the teacher ---- */

heed_status heed__open_teacher(heed__translation *t, heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_format(path, err, "%s/" START_FILE, t->folder);
    if (status || !t->rehearsal || !heed__model_can_distil(t->model) || !heed__folder_exists(path))
        return status;
    t->teacher = heed__model_new_zero(&t->recipe.model, &t->allocator, err);
    if (!t->teacher)
        return err->status;
    status = heed__weights_read(t->teacher, path, err);
    return status ? status : heed_params_freeze(heed_model_params(t->teacher), "", err);
}

/* A pair that --join has put together counts as its first. */
heed_tensor *heed__rehearsed_loss(const heed__translation *t, heed_tape *tape,
                                  const heed_batch *batch, double weight, double *nll)
{
    heed_batch marked = *batch;
    const heed_segments *rows = batch->target.rows;
    int32_t *wanted;
    if (!t->teacher)
        return heed_model_loss(t->model, tape, batch, weight, nll);
    wanted = heed_arena_allocate(heed_tape_arena(tape), (size_t)rows->rows * sizeof *wanted);
    if (!wanted)
        return heed_tape_fail(tape, HEED_MEMORY, "no memory for %lld answers",
                              (long long)rows->rows);
    memcpy(wanted, batch->wanted, (size_t)rows->rows * sizeof *wanted);
    for (int64_t k = 0; k < batch->examples; k++)
        for (int64_t i = rows->offset[k]; i < rows->offset[k + 1]; i++)
            if (batch->example[k] >= t->first_rehearsed)
                wanted[i] = HEED_FROM_TEACHER;
    marked.wanted = wanted;
    return heed__model_distil(t->model, tape, &marked, t->teacher, weight, nll);
}
