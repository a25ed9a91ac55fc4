/* encoder_data.c: what an encoder learns from: examples, or plain text cut into blocks, as
 * sequences of tokens; the vocabulary, learned from the same text where none is given. */
#include "base/file.h"
#include "base/min_max.h"
#include "task/encoder_task.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

#define LEAST_LONGEST 16

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for examples");
}

/* ---- examples ---- */

static heed_examples *open_examples(const heed__encoding *t, const heed_option_list *files,
                                    const heed_examples *labels, heed_error *err)
{
    static const heed_examples_kind kinds[] = {
        [HEED_ENCODER_CLASSIFY] = HEED_EXAMPLES_LABELS,
        [HEED_ENCODER_TAG] = HEED_EXAMPLES_TAGS,
        [HEED_ENCODER_EMBED] = HEED_EXAMPLES_PAIRS,
    };
    heed_examples_options o = {.kind = kinds[t->recipe.train.task],
                               .tag_column = t->recipe.train.tag_column};
    if (labels && o.kind != HEED_EXAMPLES_PAIRS)
        o.labels = heed_examples_labels(labels, &o.label_count);
    return heed_examples_open(files->items, files->count, &o, &t->hooks.log, &t->allocator, err);
}

static void find_scores(heed__encoding *t)
{
    const heed_examples *x = t->train.examples;
    t->least_score = INFINITY;
    t->most_score = -INFINITY;
    for (int64_t i = 0; i < heed_examples_count(x); i++) {
        const double score = heed_examples_at(x, i).score;
        t->least_score = fmin(t->least_score, score);
        t->most_score = fmax(t->most_score, score);
    }
}

heed_status heed__encoder_open_examples(heed__encoding *t, heed_error *err)
{
    const heed_encoder_options *o = &t->recipe.train;
    const heed_option_list *valid = heed__encoder_valid_files(o);
    if (o->task == HEED_ENCODER_MLM)
        return HEED_OK;
    if (!(t->train.examples = open_examples(t, heed__encoder_files(o), NULL, err)) ||
        (valid->count && !(t->valid.examples = open_examples(t, valid, t->train.examples, err))))
        return err->status;
    const heed_examples *x = t->train.examples;
    if (o->task != HEED_ENCODER_EMBED)
        t->labels = heed_examples_labels(x, &t->label_count);
    if (o->task != HEED_ENCODER_EMBED && t->label_count < 2)
        return heed__fail(err, HEED_FORMAT,
                          "all examples have the label '%.60s': there is nothing to tell apart",
                          t->labels[0]);
    if (t->valid.examples &&
        (heed_examples_are_pairs(x) != heed_examples_are_pairs(t->valid.examples) ||
         heed_examples_are_scored(x) != heed_examples_are_scored(t->valid.examples)))
        return heed__fail(err, HEED_FORMAT,
                          "the validation file '%.200s' has other columns than "
                          "'%.200s'",
                          valid->items[0], heed__encoder_files(o)->items[0]);
    t->spans = o->task == HEED_ENCODER_TAG && heed_tags_are_spans(t->labels, t->label_count);
    find_scores(t);
    return HEED_OK;
}

/* ---- vocabulary ---- */

/* The texts of examples, and lines of words with blanks between them; or the lines of the files. */
struct texts {
    const heed__encoding *t;
    heed_lines *lines; /* of plain text */
    int64_t at;        /* text 2 i or 2 i + 1 of example i */
    heed_arena *arena;
};

static heed_status join_words(struct texts *x, const heed_example *e, const char **text,
                              size_t *length, heed_error *err)
{
    size_t size = 1, n = 0;
    for (int64_t i = 0; i < e->words; i++)
        size += strlen(e->word[i]) + 1;
    heed_arena_reset(x->arena);
    char *line = heed_arena_allocate(x->arena, size);
    if (!line)
        return no_memory(err);
    for (int64_t i = 0; i < e->words; i++) {
        const size_t word = strlen(e->word[i]);
        if (i)
            line[n++] = ' ';
        memcpy(line + n, e->word[i], word);
        n += word;
    }
    line[n] = '\0';
    *text = line;
    *length = n;
    return HEED_OK;
}

static heed_status next_text(void *context, const char **text, size_t *length, heed_error *err)
{
    struct texts *x = context;
    const heed_examples *all = x->t->train.examples;
    if (x->lines)
        return heed_lines_next(x->lines, text, length, err);
    *text = NULL;
    while (x->at < 2 * heed_examples_count(all)) {
        const heed_example e = heed_examples_at(all, x->at / 2);
        const int side = (int)(x->at++ % 2);
        if (e.word && side == 0)
            return join_words(x, &e, text, length, err);
        if (e.text[side]) {
            *text = e.text[side];
            *length = strlen(*text);
            return HEED_OK;
        }
    }
    return HEED_OK;
}

static heed_status learn(const heed__encoding *t, const char *path, heed_error *err)
{
    const heed_encoder_options *o = &t->recipe.train;
    const heed_vocab_options options = {.kind = o->tokens == HEED_ENCODER_WORDS ? HEED_WHITESPACE
                                                                                : HEED_WORDPIECE,
                                        .size = o->vocab_size,
                                        .min_count = o->vocab_min_count,
                                        .cased = o->cased,
                                        .seed = (uint64_t)o->loop.seed};
    struct texts x = {.t = t};
    heed_status status = HEED_OK;
    heed__encoding_say(t, HEED_LOG_INFO, "learning the vocabulary");
    x.arena = heed_arena_new(&t->allocator, err);
    if (x.arena && o->task == HEED_ENCODER_MLM)
        x.lines = heed_lines_open(o->text.items, o->text.count, &t->allocator, err);
    const heed_line_source source = {next_text, &x};
    status = x.arena && (x.lines || o->task != HEED_ENCODER_MLM)
                 ? heed_vocab_train(&options, &source, path, &t->hooks.log, err)
                 : HEED_MEMORY;
    heed_lines_free(x.lines);
    heed_arena_free(x.arena);
    return status;
}

/* What the head answers. */
static void shape_head(heed__encoding *t)
{
    heed_model_config *m = &t->recipe.model;
    const int task = t->recipe.train.task;
    m->labels = task == HEED_ENCODER_CLASSIFY || task == HEED_ENCODER_TAG ? t->label_count : 0;
    m->tying = HEED_TIE_ALL;
    m->transformer.head_transform = task == HEED_ENCODER_CLASSIFY || task == HEED_ENCODER_MLM;
    m->transformer.output_bias = task != HEED_ENCODER_EMBED;
}

heed_status heed__encoder_open_vocabulary(heed__encoding *t, bool new_folder, heed_error *err)
{
    const heed_encoder_options *o = &t->recipe.train;
    heed__pathname path;
    heed_status status = heed__pathname_in(path, t->folder, "shared.vocab", err);
    if (!status && new_folder)
        status = o->from    ? heed__encoder_copy_vocabulary(t, path, err)
                 : o->vocab ? heed__file_copy(o->vocab, path, &t->allocator, err)
                            : learn(t, path, err);
    if (status)
        return status;
    t->vocab = heed_vocab_open(path, t->text.bpe_joiner, &t->allocator, err);
    if (!t->vocab)
        return err->status;
    const heed_special_ids ids = heed_vocab_special(t->vocab);
    heed_model_config *m = &t->recipe.model;
    if (o->task == HEED_ENCODER_MLM && ids.mask < 0)
        return heed__fail(err, HEED_ARGUMENT,
                          "the vocabulary has no [MASK], which --task mlm needs: leave --tokens "
                          "and --vocab out");
    /* Published tables may have more rows than their vocabulary has pieces. */
    m->source_vocabulary = o->from ? heed__max(m->source_vocabulary, heed_vocab_size(t->vocab))
                                   : heed_vocab_size(t->vocab);
    m->ids.source = ids;
    shape_head(t);
    t->text.tokens = o->tokens == HEED_ENCODER_WORDS && !o->from ? HEED_WHITESPACE : HEED_WORDPIECE;
    return HEED_OK;
}

/* ---- items ---- */

static void count_item(heed__item_set *set, const heed__item *x)
{
    for (int i = 0; i < 2; i++) {
        const heed__read *r = &x->read[i];
        set->tokens += r->count;
        set->checksum = (uint32_t)crc32(set->checksum, (const Bytef *)r->id,
                                        (uInt)((size_t)r->count * sizeof *r->id));
    }
    const int64_t answer[2] = {x->label, x->score > 0 ? (int64_t)(x->score * 1e6) : 0};
    set->checksum = (uint32_t)crc32(set->checksum, (const Bytef *)answer, sizeof answer);
    if (x->read[0].words && x->tag)
        set->checksum = (uint32_t)crc32(set->checksum, (const Bytef *)x->tag,
                                        (uInt)((size_t)x->read[0].words * sizeof *x->tag));
    set->cut += x->read[0].cut || x->read[1].cut;
}

static heed_status make_item(heed__encoding *t, const heed_example *e, heed__item *x,
                             heed_error *err)
{
    const int64_t longest = t->recipe.model.longest;
    *x = (heed__item){.label = e->label, .tag = e->tag, .score = NAN};
    if (e->word)
        return heed__read_words(t->vocab, e->word, e->words, longest, t->arena, &x->read[0], err);
    if (t->recipe.train.task == HEED_ENCODER_CLASSIFY)
        return heed__read_texts(t->vocab, e->text, longest, t->arena, &x->read[0], err);
    heed_status status = HEED_OK;
    for (int i = 0; !status && i < 2; i++) {
        const char *const one[2] = {e->text[i], NULL};
        status = heed__read_texts(t->vocab, one, longest, t->arena, &x->read[i], err);
    }
    const double range = t->most_score - t->least_score;
    if (heed_examples_are_scored(t->train.examples))
        x->score = range > 0 ? (e->score - t->least_score) / range : 0;
    return status;
}

static heed_status from_examples(heed__encoding *t, heed__item_set *set, heed_error *err)
{
    heed_status status = HEED_OK;
    set->item = heed_arena_allocate(t->arena,
                                    (size_t)heed_examples_count(set->examples) * sizeof *set->item);
    if (!set->item)
        return no_memory(err);
    for (; !status && set->count < heed_examples_count(set->examples); set->count++) {
        const heed_example e = heed_examples_at(set->examples, set->count);
        status = make_item(t, &e, &set->item[set->count], err);
        if (!status)
            count_item(set, &set->item[set->count]);
    }
    return status;
}

/* ---- plain text ---- */

struct stream {
    int32_t *id;
    int64_t count, capacity;
};

static heed_status append(struct stream *s, const heed_allocator *a, const heed_tokens *line,
                          heed_error *err)
{
    if (s->count + line->count > s->capacity) {
        const int64_t capacity = heed__max(2 * s->capacity, s->count + line->count + 4096);
        int32_t *id = heed__allocate(a, (size_t)capacity, sizeof *id);
        if (!id)
            return no_memory(err);
        if (s->count)
            memcpy(id, s->id, (size_t)s->count * sizeof *id);
        heed__release(a, s->id, (size_t)s->capacity, sizeof *id);
        s->id = id;
        s->capacity = capacity;
    }
    if (line->count)
        memcpy(s->id + s->count, line->id, (size_t)line->count * sizeof *s->id);
    s->count += line->count;
    return HEED_OK;
}

static heed_status read_stream(const heed__encoding *t, const heed_option_list *files,
                               struct stream *s, heed_error *err)
{
    const char *text = "", *path;
    size_t length, bad;
    heed_status status = HEED_OK;
    heed_arena *arena = heed_arena_new(&t->allocator, err);
    heed_lines *lines =
        arena ? heed_lines_open(files->items, files->count, &t->allocator, err) : NULL;
    if (!lines)
        status = HEED_MEMORY;
    while (!status && !(status = heed_lines_next(lines, &text, &length, err)) && text) {
        heed_tokens line;
        const int64_t number = heed_lines_where(lines, &path);
        heed_arena_reset(arena);
        if (!heed_utf8_valid(text, length, &bad))
            status = heed__fail(err, HEED_FORMAT, "'%.300s' line %lld: byte %zu is not UTF-8", path,
                                (long long)number, bad + 1);
        if (!status)
            status = heed_vocab_encode(t->vocab, text, length, arena, &line, err);
        if (!status)
            status = append(s, &t->allocator, &line, err);
    }
    heed_lines_free(lines);
    heed_arena_free(arena);
    return status;
}

/* [CLS] block [SEP], or [CLS] half [SEP] half [SEP]; the last block has what is left. */
static heed_status cut_blocks(heed__encoding *t, const struct stream *s, heed__item_set *set,
                              heed_error *err)
{
    const heed_special_ids ids = heed_vocab_special(t->vocab);
    const heed__surround around = heed__surround_of(&ids);
    const bool halves = t->recipe.train.next_sentence;
    const int64_t most = t->recipe.model.longest - 2 - halves;
    set->item = heed_arena_allocate(t->arena, (size_t)(s->count / most + 1) * sizeof *set->item);
    if (!set->item)
        return no_memory(err);
    for (int64_t at = 0; at < s->count; at += most) {
        const int64_t n = heed__min(most, s->count - at);
        if (n < 4 && at > 0) /* too little to say anything about */
            break;
        heed__item *x = &set->item[set->count++];
        *x = (heed__item){.label = -1, .score = NAN};
        heed__read *r = &x->read[0];
        int32_t *id = r->id = heed_arena_allocate(t->arena, (size_t)(n + 3) * sizeof *id);
        if (!id)
            return no_memory(err);
        const int64_t first = halves ? (n + 1) / 2 : n;
        *id++ = around.cls;
        memcpy(id, s->id + at, (size_t)first * sizeof *id);
        id += first;
        *id++ = around.sep;
        r->second = id - r->id;
        if (halves) {
            memcpy(id, s->id + at + first, (size_t)(n - first) * sizeof *id);
            id += n - first;
            *id++ = around.sep;
        }
        r->count = id - r->id;
        count_item(set, x);
    }
    return HEED_OK;
}

static heed_status from_text(heed__encoding *t, const heed_option_list *files, heed__item_set *set,
                             heed_error *err)
{
    struct stream s = {0};
    heed_status status = read_stream(t, files, &s, err);
    if (!status && s.count < 4)
        status = heed__fail(err, HEED_FORMAT, "'%.300s': there is no text in it", files->items[0]);
    if (!status)
        status = cut_blocks(t, &s, set, err);
    heed__release(&t->allocator, s.id, (size_t)s.capacity, sizeof *s.id);
    return status;
}

/* ---- both sets ---- */

/* One item of each of n stretches of the set, drawn by the seed, goes to validation. */
static heed_status hold_out(heed__encoding *t, heed_error *err)
{
    heed__item_set *a = &t->train, *v = &t->valid;
    const int64_t all = a->count, asked = t->recipe.train.hold_out;
    int64_t n = asked ? heed__min(asked, all / 2) : heed__min(all / 10, 1000);
    n = heed__max(n, 1);
    if (all < 2)
        return heed__fail(err, HEED_FORMAT, "one %s is too little to train and validate with",
                          a->examples ? "example" : "block of text");
    v->item = heed_arena_allocate(t->arena, (size_t)n * sizeof *v->item);
    if (!v->item)
        return no_memory(err);
    const heed_rng rng = heed_rng_stream(
        &(heed_rng_key){.seed = (uint64_t)t->recipe.train.loop.seed, .node = HEED_TASK_NODE});
    *a = (heed__item_set){.examples = a->examples, .item = a->item};
    for (int64_t i = 0, k = 0, drawn = -1; i < all; i++) {
        const heed__item x = a->item[i];
        if (i == k * all / n) { /* stretch k begins */
            const int64_t length = (k + 1) * all / n - i;
            drawn = i + heed_rng_below(&rng, (uint64_t)k++, length);
        }
        heed__item_set *to = i == drawn ? v : a;
        to->item[to->count++] = x;
        count_item(to, &x);
    }
    heed__encoding_say(t, HEED_LOG_INFO, "no validation files: %lld of %lld %s are held out",
                       (long long)v->count, (long long)all,
                       a->examples ? "examples" : "blocks of text");
    return HEED_OK;
}

/* Positions that no example reaches would never be learned: unless somebody asked for them, the
 * model reads as far as the examples go.  What is longer then loses its end, or is read in
 * parts. */
static void fit_longest(heed__encoding *t)
{
    const bool free =
        heed_option_origin_of(&t->recipe.origins, "longest") == HEED_OPTION_BY_DEFAULT;
    int64_t longest = LEAST_LONGEST;
    for (int64_t i = 0; i < t->train.count; i++)
        for (int side = 0; side < 2; side++)
            longest = heed__max(longest, t->train.item[i].read[side].count);
    if (free && !t->recipe.train.from && !t->recipe.train.recipe)
        t->recipe.model.longest = heed__min(t->recipe.model.longest, longest);
}

heed_status heed__encoder_make_items(heed__encoding *t, heed_error *err)
{
    const heed_encoder_options *o = &t->recipe.train;
    const heed_option_list *valid = heed__encoder_valid_files(o);
    const bool text = o->task == HEED_ENCODER_MLM;
    heed_status status =
        text ? from_text(t, &o->text, &t->train, err) : from_examples(t, &t->train, err);
    if (!status && !text)
        fit_longest(t);
    if (!status && !valid->count)
        status = hold_out(t, err);
    else if (!status)
        status = text ? from_text(t, valid, &t->valid, err) : from_examples(t, &t->valid, err);
    if (!status && t->train.cut)
        heed__encoding_say(t, HEED_LOG_WARNING,
                           "%lld of %lld examples have more than %lld tokens (--longest) and lose "
                           "their end",
                           (long long)t->train.cut, (long long)t->train.count,
                           (long long)t->recipe.model.longest);
    return status;
}
