/* encoder.c: encoders at work: a model and its vocabulary; lines become sequences, which go through
 * the packed engine together, and what the head says of wanted rows becomes labels, tags and
 * vectors. */
#include "encoder/encoder.h"
#include "base/error.h"
#include "base/memory.h"
#include "encoder/sequences.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct heed_encoder {
    heed_allocator allocator;
    heed_arena *arena;   /* labels */
    heed_arena *passing; /* of one call */
    heed_engine *engine;
    heed_session *session;
    const heed_model_config *config;
    heed_vocab *own_vocab;
    const heed_vocab *vocab;
    const char *trained_for;
    const char *const *labels;
    int64_t label_count;
};

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for an encoder");
}

/* ---- opening ---- */

static heed_encoder *begin(const heed_allocator *allocator, heed_error *err)
{
    const heed_allocator a = heed__allocator_or_default(allocator);
    heed_encoder *e = heed__allocate_zeroed(&a, 1, sizeof *e);
    if (!e) {
        no_memory(err);
        return NULL;
    }
    e->allocator = a;
    e->arena = heed_arena_new(&a, err);
    e->passing = e->arena ? heed_arena_new(&a, err) : NULL;
    if (e->passing)
        return e;
    heed_encoder_free(e);
    return NULL;
}

static heed_encoder *complete(heed_encoder *e, int threads, heed_error *err)
{
    e->session = heed_session_new(e->engine, &(heed_session_options){.threads = threads},
                                  &e->allocator, err);
    e->config = heed_engine_configuration(e->engine);
    if (!e->session) {
        heed_encoder_free(e);
        return NULL;
    }
    return e;
}

/* A config.json and the files beside it must be of one model. */
static heed_status check(const heed_encoder *e, const heed_model_config *c, const char *folder,
                         heed_error *err)
{
    const int32_t pieces = heed_vocab_size(e->vocab);
    if (c->labels && c->labels != e->label_count)
        return heed__fail(err, HEED_FORMAT,
                          "'%.255s': " HEED__LABELS_FILE " has %lld labels, config.json says %lld",
                          folder, (long long)e->label_count, (long long)c->labels);
    if (pieces > c->source_vocabulary)
        return heed__fail(err, HEED_FORMAT,
                          "'%.255s': the vocabulary has %d pieces, the model %lld", folder, pieces,
                          (long long)c->source_vocabulary);
    return HEED_OK;
}

static heed_status open_parts(heed_encoder *e, const char *folder, heed_error *err)
{
    heed_model_config c;
    heed_text_config text;
    heed_vocab *target = NULL;
    if (heed_model_read_config(folder, e->arena, &c, &text, err))
        return err->status;
    if (c.arch != HEED_ARCH_ENCODER || c.features)
        return heed__fail(err, HEED_ARGUMENT,
                          "'%.255s' is %s, expected an encoder of text (heed train --arch encoder, "
                          "or BERT)",
                          folder,
                          c.arch == HEED_ARCH_DECODER   ? "a language model"
                          : c.arch == HEED_ARCH_ENCODER ? "an encoder of numbers"
                                                        : "a translator");
    if (heed_vocabs_open(folder, text.bpe_joiner, &e->allocator, &e->own_vocab, &target, err))
        return err->status;
    if (target != e->own_vocab)
        heed_vocab_free(target);
    e->vocab = e->own_vocab;
    e->trained_for = text.task;
    if (heed__labels_read(folder, e->arena, &e->labels, &e->label_count, err) ||
        check(e, &c, folder, err))
        return err->status;
    e->engine = heed_engine_open(folder, &e->allocator, err);
    return e->engine ? HEED_OK : err->status;
}

heed_encoder *heed_encoder_open(const char *folder, int threads, const heed_allocator *allocator,
                                heed_error *err)
{
    if (!folder)
        return heed__missing(err, "folder"), NULL;
    heed_error own = {0};
    heed_encoder *e = begin(allocator, &own);
    if (e && !open_parts(e, folder, &own))
        e = complete(e, threads, &own);
    if (!own.status)
        return e;
    heed_encoder_free(e);
    heed__fail(err, own.status, "%s", own.text);
    return NULL;
}

heed_encoder *heed_encoder_new(const heed_model *m, const heed_vocab *vocab,
                               const char *const *labels, int64_t label_count, int threads,
                               const heed_allocator *allocator, heed_error *err)
{
    if (!m || !vocab)
        return heed__missing(err, m ? "vocabulary" : "model"), NULL;
    heed_encoder *e = begin(allocator, err);
    if (!e)
        return NULL;
    e->vocab = vocab;
    e->labels = labels;
    e->label_count = label_count;
    e->engine = heed_engine_new(m, &e->allocator, err);
    if (e->engine)
        return complete(e, threads, err);
    heed_encoder_free(e);
    return NULL;
}

void heed_encoder_free(heed_encoder *e)
{
    if (!e)
        return;
    const heed_allocator a = e->allocator;
    heed_session_free(e->session);
    heed_engine_free(e->engine);
    heed_vocab_free(e->own_vocab);
    heed_arena_free(e->passing);
    heed_arena_free(e->arena);
    heed__release(&a, e, 1, sizeof *e);
}

/* ---- what it can ---- */

const char *heed_encoder_trained_for(const heed_encoder *e)
{
    return e ? e->trained_for : NULL;
}

const char *const *heed_encoder_labels(const heed_encoder *e, int64_t *count)
{
    if (count)
        *count = e ? e->label_count : 0;
    return e ? e->labels : NULL;
}

const heed_vocab *heed_encoder_vocab(const heed_encoder *e)
{
    return e ? e->vocab : NULL;
}

const heed_model_config *heed_encoder_configuration(const heed_encoder *e)
{
    return e ? e->config : NULL;
}

static const char *const task_words[] = {HEED_ENCODER_TASK_WORDS};

/* A model whose task is known does that one, but for vectors, which every encoder makes. */
heed_status heed_encoder_can(const heed_encoder *e, heed_encoder_task task, heed_error *err)
{
    if (!e)
        return heed__missing(err, "encoder");
    const bool labels = task == HEED_ENCODER_CLASSIFY || task == HEED_ENCODER_TAG;
    if (task == HEED_ENCODER_EMBED)
        return HEED_OK;
    if (e->trained_for && strcmp(e->trained_for, task_words[task]) != 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "the model was trained with --task %s, this needs --task %s",
                          e->trained_for, task_words[task]);
    if (labels && !e->config->labels)
        return heed__fail(err, HEED_ARGUMENT,
                          "the model has no labels: train one with --task %s, perhaps --from it",
                          task_words[task]);
    if (!labels && (e->config->labels || heed_vocab_special(e->vocab).mask < 0 ||
                    !e->config->transformer.output_bias))
        return heed__fail(err, HEED_ARGUMENT, "the model cannot say what is masked: it has no %s",
                          heed_vocab_special(e->vocab).mask < 0 ? "[MASK] in its vocabulary"
                                                                : "head over its vocabulary");
    return HEED_OK;
}

/* ---- running ---- */

static void softmax(const heed_real *x, int64_t n, heed_real *p)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    for (int64_t i = 0; i < n; i++)
        p[i] = (heed_real)(exp((double)x[i] - most) / sum);
}

static heed_status encode(heed_encoder *e, const heed__read *read, int64_t count,
                          const heed_encode_options *o, heed_encoding *out, heed_error *err)
{
    heed_batch_side side;
    heed_status status =
        heed__read_join(read, count, e->config->transformer.types > 1, e->passing, &side, err);
    return status ? status : heed_session_encode(e->session, &side, o, out, err);
}

static heed_status read_texts(const heed_encoder *e, const char *const *text,
                              const char *const *second, int64_t count, heed__read **read,
                              heed_error *err)
{
    heed_arena_reset(e->passing);
    *read = heed_arena_allocate(e->passing, (size_t)(count + 1) * sizeof **read);
    if (!*read)
        return no_memory(err);
    for (int64_t i = 0; i < count; i++) {
        const char *const both[2] = {text[i], second ? second[i] : NULL};
        heed_status status =
            heed__read_texts(e->vocab, both, e->config->longest, e->passing, &(*read)[i], err);
        if (status)
            return status;
    }
    return HEED_OK;
}

/* ---- texts ---- */

heed_status heed_encoder_classify(heed_encoder *e, const char *const *text,
                                  const char *const *second, int64_t count, heed_arena *arena,
                                  const heed_real **probability, heed_error *err)
{
    heed_status status = heed_encoder_can(e, HEED_ENCODER_CLASSIFY, err);
    if (status)
        return status;
    const int64_t labels = e->config->labels;
    heed__read *read;
    heed_encoding found;
    heed_real *p = heed_arena_allocate(arena, (size_t)(count * labels + 1) * sizeof *p);
    *probability = p;
    if (!p)
        return no_memory(err);
    if (!count || (status = read_texts(e, text, second, count, &read, err)))
        return status;
    int32_t *row = heed_arena_allocate(e->passing, (size_t)count * sizeof *row);
    if (!row)
        return no_memory(err);
    int32_t at = 0;
    for (int64_t i = 0; i < count; at += (int32_t)read[i++].count)
        row[i] = at;
    const heed_encode_options o = {.kind = HEED_ENCODE_LOGITS, .row = row, .count = count};
    if ((status = encode(e, read, count, &o, &found, err)))
        return status;
    for (int64_t i = 0; i < count; i++)
        softmax(found.value + i * labels, labels, p + i * labels);
    return HEED_OK;
}

heed_status heed_encoder_embed(heed_encoder *e, const char *const *text, int64_t count,
                               heed_arena *arena, const heed_real **vector, heed_error *err)
{
    heed_status status = heed_encoder_can(e, HEED_ENCODER_EMBED, err);
    if (status)
        return status;
    const int64_t d = e->config->d;
    heed__read *read;
    heed_encoding found;
    heed_real *v = heed_arena_allocate(arena, (size_t)(count * d + 1) * sizeof *v);
    *vector = v;
    if (!v)
        return no_memory(err);
    const heed_encode_options o = {.kind = HEED_ENCODE_MEAN};
    if (!count || (status = read_texts(e, text, NULL, count, &read, err)) ||
        (status = encode(e, read, count, &o, &found, err)))
        return status;
    for (int64_t i = 0; i < count; i++) {
        double square = 0;
        for (int64_t k = 0; k < d; k++)
            square += (double)found.value[i * d + k] * (double)found.value[i * d + k];
        const double scale = square > 0 ? 1 / sqrt(square) : 0;
        for (int64_t k = 0; k < d; k++)
            v[i * d + k] = (heed_real)((double)found.value[i * d + k] * scale);
    }
    return HEED_OK;
}

/* ---- words ---- */

/* Sentences in as many parts as it takes; *parts of them. */
static heed_status read_sentences(const heed_encoder *e, const char *const *word,
                                  const int64_t *length, int64_t sentences, heed__read **read,
                                  int64_t *parts, heed_error *err)
{
    int64_t words = 0;
    heed_arena_reset(e->passing);
    for (int64_t i = 0; i < sentences; i++)
        words += length[i];
    *parts = 0;
    *read = heed_arena_allocate(e->passing, (size_t)(words + 1) * sizeof **read);
    if (!*read)
        return no_memory(err);
    for (int64_t i = 0; i < sentences; word += length[i++])
        for (int64_t at = 0; at < length[i]; at += (*read)[(*parts)++].words) {
            heed_status status =
                heed__read_words(e->vocab, word + at, length[i] - at, e->config->longest,
                                 e->passing, &(*read)[*parts], err);
            if (status)
                return status;
        }
    return HEED_OK;
}

static int32_t likeliest(const heed_real *p, int64_t n)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        best = p[k] > p[best] ? k : best;
    return best;
}

heed_status heed_encoder_tag(heed_encoder *e, const char *const *word, const int64_t *length,
                             int64_t sentences, heed_arena *arena, const int32_t **tag,
                             const heed_real **probability, heed_error *err)
{
    heed_status status = heed_encoder_can(e, HEED_ENCODER_TAG, err);
    if (status)
        return status;
    const int64_t labels = e->config->labels;
    heed__read *read;
    heed_encoding found;
    int64_t parts, words = 0;
    for (int64_t i = 0; i < sentences; i++)
        words += length[i];
    int32_t *tags = heed_arena_allocate(arena, (size_t)(words + 1) * sizeof *tags);
    heed_real *p = heed_arena_allocate(arena, (size_t)(words + 1) * sizeof *p);
    *tag = tags;
    *probability = p;
    if (!tags || !p)
        return no_memory(err);
    if (!words || (status = read_sentences(e, word, length, sentences, &read, &parts, err)))
        return status;
    int32_t *row = heed_arena_allocate(e->passing, (size_t)words * sizeof *row);
    heed_real *all = heed_arena_allocate(e->passing, (size_t)labels * sizeof *all);
    if (!row || !all)
        return no_memory(err);
    int64_t n = 0;
    int32_t at = 0;
    for (int64_t i = 0; i < parts; at += (int32_t)read[i++].count)
        for (int64_t k = 0; k < read[i].words; k++)
            row[n++] = at + read[i].first[k];
    const heed_encode_options o = {.kind = HEED_ENCODE_LOGITS, .row = row, .count = words};
    if ((status = encode(e, read, parts, &o, &found, err)))
        return status;
    for (int64_t i = 0; i < words; i++) {
        softmax(found.value + i * labels, labels, all);
        tags[i] = likeliest(all, labels);
        p[i] = all[tags[i]];
    }
    return HEED_OK;
}

/* ---- what is masked ---- */

/* The n likeliest, likeliest first; of equal ones the first. */
static void find_top(const heed_real *p, int64_t count, heed_filled *top, int64_t n)
{
    int64_t held = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = held < n ? held++ : n;
        while (at > 0 && (double)p[i] > top[at - 1].probability) {
            if (at < n)
                top[at] = top[at - 1];
            at--;
        }
        if (at < n)
            top[at] = (heed_filled){.id = (int32_t)i, .probability = (double)p[i]};
    }
}

/* The line with pieces where its masks are; one that continues a word loses the blank before. */
static const char *filled_text(const heed_encoder *e, const char *text, const char *const *piece,
                               int64_t masks, heed_arena *arena)
{
    const char *mask = heed_vocab_piece(e->vocab, heed_vocab_special(e->vocab).mask);
    size_t size = strlen(text) + 1, n = 0;
    for (int64_t i = 0; i < masks; i++)
        size += strlen(piece[i]);
    char *out = heed_arena_allocate(arena, size);
    for (int64_t i = 0; out; i++) {
        const char *at = i < masks ? strstr(text, mask) : NULL;
        const size_t before = at ? (size_t)(at - text) : strlen(text);
        memcpy(out + n, text, before);
        n += before;
        if (!at)
            break;
        const bool inside = strncmp(piece[i], "##", 2) == 0 && piece[i][2];
        if (inside && n && out[n - 1] == ' ')
            n--;
        const char *p = piece[i] + (inside ? 2 : 0);
        memcpy(out + n, p, strlen(p));
        n += strlen(p);
        text = at + strlen(mask);
    }
    if (out)
        out[n] = '\0';
    return out;
}

static heed_status take_tops(const heed_encoder *e, const char *text, const heed_encoding *found,
                             int64_t top, heed_filled *filled, heed_arena *arena, heed_error *err)
{
    const int64_t masks = found->rows, pieces = heed_vocab_size(e->vocab);
    heed_real *p = heed_arena_allocate(e->passing, (size_t)found->columns * sizeof *p);
    const char **piece = heed_arena_allocate(e->passing, (size_t)masks * sizeof *piece);
    if (!p || !piece)
        return no_memory(err);
    for (int64_t i = 0; i < masks; i++) {
        softmax(found->value + i * found->columns, found->columns, p);
        find_top(p, pieces < found->columns ? pieces : found->columns, filled + i * top, top);
        piece[i] = heed_vocab_piece(e->vocab, filled[i * top].id);
    }
    for (int64_t i = 0; i < masks; i++) {
        const char *best = piece[i];
        for (int64_t k = 0; k < top; k++) {
            heed_filled *f = &filled[i * top + k];
            piece[i] = f->piece = heed_vocab_piece(e->vocab, f->id);
            if (!(f->text = filled_text(e, text, piece, masks, arena)))
                return no_memory(err);
        }
        piece[i] = best;
    }
    return HEED_OK;
}

heed_status heed_encoder_fill(heed_encoder *e, const char *text, int64_t top, heed_arena *arena,
                              const heed_filled **filled, int64_t *masks, heed_error *err)
{
    heed_status status = heed_encoder_can(e, HEED_ENCODER_MLM, err);
    if (status)
        return status;
    const int32_t mask = heed_vocab_special(e->vocab).mask;
    heed__read *read;
    heed_encoding found;
    if ((status = read_texts(e, &text, NULL, 1, &read, err)))
        return status;
    int32_t *row = heed_arena_allocate(e->passing, (size_t)read->count * sizeof *row);
    if (!row)
        return no_memory(err);
    int64_t n = 0;
    for (int64_t i = 0; i < read->count; i++)
        if (read->id[i] == mask)
            row[n++] = (int32_t)i;
    if (!n)
        return heed__fail(err, HEED_ARGUMENT, "there is no %s in the text%s",
                          heed_vocab_piece(e->vocab, mask),
                          read->cut ? ", as far as the model can read it" : "");
    top = top < heed_vocab_size(e->vocab) ? top : heed_vocab_size(e->vocab);
    heed_filled *all = heed_arena_allocate(arena, (size_t)(n * top) * sizeof *all);
    if (!all)
        return no_memory(err);
    *filled = all;
    *masks = n;
    const heed_encode_options o = {.kind = HEED_ENCODE_LOGITS, .row = row, .count = n};
    status = encode(e, read, 1, &o, &found, err);
    return status ? status : take_tops(e, text, &found, top, all, arena, err);
}
