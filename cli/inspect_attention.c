/* inspect_attention.c: `heed inspect --attention`: translate one sentence, run the model over the
 * pair and show every head's weights. */
#include "cmd_inspect.h"
#include "command.h"

#include <heed/io.h>
#include <heed/show.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A pair of token sequences and what is shown of it; everything in the arena. */
struct view {
    heed_arena *arena;
    const heed_vocab *source, *target;
    heed_encoded_pair pair;
    const char *translation; /* NULL: there is one text */
    heed_attention_picture picture;
};

static heed_status out_of_memory(heed_error *err)
{
    if (!err->status) {
        err->status = HEED_MEMORY;
        snprintf(err->text, sizeof err->text, "out of memory");
    }
    return err->status;
}

/* ---- the pair ---- */

/* What the model writes.  A line that it took in parts has an EOS behind each, and each counts its
 * placeholders from 0; here they go on counting. */
static heed_status translate(struct view *v, const struct inspect_settings *s, heed_translator *tr,
                             heed_error *err)
{
    heed_search_options o = {
        .beam = s->beam, .length_penalty = 0.6, .n_best = 1, .extra_length = 50};
    heed_translation t;
    if (heed_translate(tr, &o, &s->attention, 1, v->arena, &t, err))
        return err->status;
    int32_t *id = heed_arena_allocate(v->arena, sizeof *id * (size_t)(t.tokens + 1));
    if (!id)
        return out_of_memory(err);
    const heed_special_ids ids = heed_vocab_special(v->target);
    int64_t n = 0;
    int32_t before = 0, here = 0; /* placeholders of the parts before, and of this one */
    for (int64_t i = 0; i < t.tokens; i++) {
        if (t.id[i] == ids.eos) {
            before += here;
            here = 0;
            continue;
        }
        id[n] = t.id[i];
        if (id[n] >= ids.placeholder && id[n] - ids.placeholder + before < v->pair.spans) {
            id[n] += before;
            here++;
        }
        n++;
    }
    v->pair.target = (heed_tokens){id, n};
    v->translation = t.text;
    return HEED_OK;
}

static heed_status encode(struct view *v, const struct inspect_settings *s, heed_translator *tr,
                          heed_error *err)
{
    if (heed_translator_encode(tr, s->attention, s->target, v->arena, &v->pair, err))
        return err->status;
    if (v->pair.repaired) {
        err->status = HEED_ARGUMENT;
        snprintf(err->text, sizeof err->text, "the text to look at is not UTF-8");
        return err->status;
    }
    v->translation = s->target;
    return s->target ? HEED_OK : translate(v, s, tr, err);
}

/* ---- labels ---- */

/* What a placeholder stands for; NULL: the token is none. */
static const char *span_of(const struct view *v, const heed_vocab *vocab, int32_t id)
{
    int32_t i = id - heed_vocab_special(vocab).placeholder;
    return i >= 0 && i < v->pair.spans ? v->pair.span[i] : NULL;
}

/* ids, which end with EOS or begin with BOS, as pieces. */
static heed_status piece_labels(const struct view *v, const heed_vocab *vocab, const int32_t *id,
                                int64_t n, heed_labels *out, heed_error *err)
{
    const char **text = heed_arena_allocate(v->arena, sizeof *text * (size_t)n);
    if (!text)
        return out_of_memory(err);
    for (int64_t i = 0; i < n; i++)
        if (!(text[i] = span_of(v, vocab, id[i])))
            text[i] = heed_vocab_piece(vocab, id[i]);
    *out = (heed_labels){text, n};
    return HEED_OK;
}

/* Pieces that are words of their own though no space says so: Chinese and Japanese (U+3000 to
 * U+9FFF is what begins with these bytes in UTF-8), and signs that only stand beside a word,
 * or between lines. */
static bool stands_apart(const char *piece)
{
    static const char space[] = "\u2581"; /* SentencePiece's */
    if (strncmp(piece, space, sizeof space - 1) == 0)
        piece += sizeof space - 1;
    if (*piece && piece[strspn(piece, ".,;:!?\"()\n")] == '\0')
        return true;
    for (; *piece; piece++)
        if ((unsigned char)*piece >= 0xE3 && (unsigned char)*piece <= 0xE9)
            return true;
    return false;
}

/* word[i]: which word piece i belongs to.  Where a whole side would be one word (a compound, a
 * number), joining would hide everything, and its pieces stay apart too. */
static void begin_words(const heed_vocab *v, const int32_t *id, int64_t n, int32_t *word)
{
    const heed_special_ids ids = heed_vocab_special(v);
    int64_t specials = 0;
    for (int64_t i = 0; i < n; i++)
        specials += id[i] == ids.start || id[i] == ids.eos;
    bool single = heed_vocab_words(v, id, n, word) <= specials + 1;
    int32_t words = 0, before = -1;
    bool was_apart = true;
    for (int64_t i = 0; i < n; i++) {
        bool apart = single || stands_apart(heed_vocab_piece(v, id[i]));
        words += apart || was_apart || word[i] != before;
        was_apart = apart;
        before = word[i];
        word[i] = words - 1;
    }
}

/* The text of a word; a placeholder in it gives way to what it stands for. */
static heed_status word_text(const struct view *v, const heed_vocab *vocab, const int32_t *id,
                             int64_t n, const char **text, heed_error *err)
{
    if (heed_vocab_decode(vocab, id, n, v->arena, text, err))
        return err->status;
    *text += strspn(*text, " ");
    for (int64_t i = 0; i < n; i++) {
        const char *span = span_of(v, vocab, id[i]), *piece = heed_vocab_piece(vocab, id[i]);
        const char *at = span ? strstr(*text, piece) : NULL;
        if (!at)
            continue;
        size_t size = strlen(*text) + strlen(span) + 1;
        char *whole = heed_arena_allocate(v->arena, size);
        if (!whole)
            return out_of_memory(err);
        snprintf(whole, size, "%.*s%s%s", (int)(at - *text), *text, span, at + strlen(piece));
        *text = whole;
    }
    if (!**text)
        *text = heed_vocab_piece(vocab, id[n - 1]);
    return HEED_OK;
}

/* Which word each of the ids belongs to, and the words. */
static heed_status word_labels(const struct view *v, const heed_vocab *vocab, const int32_t *id,
                               int64_t n, heed_label_words *out, heed_error *err)
{
    int32_t *word = heed_arena_allocate(v->arena, sizeof *word * (size_t)n);
    const char **text = heed_arena_allocate(v->arena, sizeof *text * (size_t)n);
    if (!word || !text)
        return out_of_memory(err);
    begin_words(vocab, id, n, word);
    for (int64_t i = 0, from = 0; i < n; i++) {
        if (i + 1 < n && word[i + 1] == word[i])
            continue;
        if (word_text(v, vocab, id + from, i + 1 - from, &text[word[i]], err))
            return err->status;
        from = i + 1;
    }
    *out = (heed_label_words){word, {text, word[n - 1] + 1}};
    return HEED_OK;
}

static heed_status label(struct view *v, const heed_batch *b, bool pieces, heed_error *err)
{
    const int64_t n = v->pair.source.count + 1, m = v->pair.target.count + 1;
    heed_attention_picture *p = &v->picture;
    if (piece_labels(v, v->source, b->source.ids, n, &p->source, err) ||
        piece_labels(v, v->target, b->wanted, m, &p->target, err) ||
        piece_labels(v, v->target, b->target.ids, m, &p->read, err) || pieces)
        return err->status;
    heed_label_words source, target, read;
    if (word_labels(v, v->source, b->source.ids, n, &source, err) ||
        word_labels(v, v->target, b->wanted, m, &target, err) ||
        word_labels(v, v->target, b->target.ids, m, &read, err))
        return err->status;
    return heed_attention_by_words(p, source, target, read, v->arena, p, err);
}

/* ---- out ---- */

/* -1: as the picture finds best; tr is NULL for a model that does not translate. */
static int64_t best_map(const heed_translator *tr, const heed_attention_picture *p, heed_error *err)
{
    int layer, head;
    int64_t best = -1;
    if (!tr || heed_translator_best_head(tr, &layer, &head, err))
        return -1;
    for (int64_t i = 0; i < p->count; i++)
        if (p->maps[i].kind == HEED_CROSS && p->maps[i].layer + 1 == layer &&
            p->maps[i].head + 1 == head)
            best = i;
    return best;
}

static int64_t find_map(const struct inspect_settings *s, const heed_attention_picture *p,
                        const heed_translator *tr, heed_error *err)
{
    if (!s->layer)
        return best_map(tr, p, err);
    int layers = 0, heads = 0;
    for (int64_t i = 0; i < p->count; i++) {
        const heed_attention_map *m = &p->maps[i];
        if ((int)m->kind != s->kind)
            continue;
        if (m->layer + 1 == s->layer && m->head + 1 == s->head)
            return i;
        layers = m->layer + 1 > layers ? m->layer + 1 : layers;
        heads = m->head + 1 > heads ? m->head + 1 : heads;
    }
    err->status = HEED_ARGUMENT;
    if (layers)
        snprintf(err->text, sizeof err->text,
                 "there is no layer %lld, head %lld: this attention has %d layers of %d heads",
                 (long long)s->layer, (long long)s->head, layers, heads);
    else
        snprintf(err->text, sizeof err->text, "this model has no such attention as '--kind' says");
    return -1;
}

static heed_status write_picture(const struct inspect_settings *s, struct view *v, int64_t large,
                                 heed_error *err)
{
    const char *text;
    heed_status status = ends_with(s->output, ".svg")
                             ? heed_attention_svg(&v->picture, large, v->arena, &text, err)
                             : heed_attention_html(&v->picture, large, v->arena, &text, err);
    return status ? status : heed_text_save(s->output, text, err);
}

static json_t *label_array(heed_labels l)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < l.count; i++)
        json_array_append_new(array, json_string(l.text[i]));
    return array;
}

static json_t *map_object(const heed_attention_map *m)
{
    static const char *const kinds[] = {"encoder", "decoder", "cross"};
    json_t *rows = json_array();
    for (int64_t i = 0; i < m->queries; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < m->keys; j++) {
            double w = (double)m->weight[i * m->keys + j];
            json_array_append_new(row, isfinite(w) ? json_real(w) : json_null());
        }
        json_array_append_new(rows, row);
    }
    return json_pack("{s:s, s:i, s:i, s:o}", "kind", kinds[m->kind], "layer", m->layer + 1, "head",
                     m->head + 1, "weights", rows);
}

static void print_json(const struct inspect_settings *s, const struct view *v)
{
    json_t *maps = json_array();
    for (int64_t i = 0; i < v->picture.count; i++)
        json_array_append_new(maps, map_object(&v->picture.maps[i]));
    json_t *all =
        json_pack("{s:s, s:s*, s:o, s:o, s:o, s:o}", v->translation ? "source" : "text",
                  s->attention, "translation", v->translation, "source_labels",
                  label_array(v->picture.source), "target_labels", label_array(v->picture.target),
                  "read_labels", label_array(v->picture.read), "maps", maps);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(5));
    putchar('\n');
    json_decref(all);
}

static int terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    return width > 0 && width <= 10000 ? width : 80;
}

static bool coloured(int colour)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    if (colour)
        return colour == 1;
    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static heed_status show(const struct inspect_settings *s, const heed_translator *tr, struct view *v,
                        heed_error *err)
{
    int64_t large = find_map(s, &v->picture, tr, err);
    if (err->status)
        return err->status;
    if (s->output && write_picture(s, v, large, err))
        return err->status;
    if (s->json) {
        print_json(s, v);
        return HEED_OK;
    }
    const char *text;
    int width = s->width ? (int)s->width : terminal_width();
    if (heed_attention_text(&v->picture, large, width, coloured(s->colour), v->arena, &text, err))
        return err->status;
    if (v->translation)
        printf("%s\n%s\n\n%s", s->attention, v->translation, text);
    else
        printf("%s\n\n%s", s->attention, text);
    return HEED_OK;
}

bool inspect_attention(const struct inspect_settings *s, heed_translator *tr, heed_arena *arena)
{
    struct view v = {
        .arena = arena, .source = heed_translator_source(tr), .target = heed_translator_target(tr)};
    heed_error err = {0};
    heed_batch batch;
    if (encode(&v, s, tr, &err) == HEED_OK &&
        heed_batch_pack(arena, &heed_engine_configuration(heed_translator_engine(tr))->ids,
                        &v.pair.source, &v.pair.target, 1, &batch, &err) == HEED_OK) {
        size_t room = strlen(s->attention) + strlen(v.translation) + 8;
        char *title = heed_arena_allocate(arena, room);
        if (title)
            snprintf(title, room, "%s → %s", s->attention, v.translation);
        v.picture.title = title ? title : s->attention;
        if (heed_engine_attention(heed_translator_engine(tr), &v.pair.source, &v.pair.target, arena,
                                  &v.picture.maps, &v.picture.count, &err) == HEED_OK &&
            label(&v, &batch, s->pieces, &err) == HEED_OK)
            show(s, tr, &v, &err);
    }
    if (err.status)
        complain("%s", err.text);
    return !err.status;
}

/* ---- one text ---- */

/* The tokens with those that stand around them: before and behind; -1: none does. */
static heed_status surround(heed_arena *arena, int32_t before, heed_tokens text, int32_t behind,
                            heed_tokens *out, heed_error *err)
{
    int32_t *id = heed_arena_allocate(arena, (size_t)(text.count + 2) * sizeof *id);
    int64_t n = 0;
    if (!id)
        return out_of_memory(err);
    if (before >= 0)
        id[n++] = before;
    memcpy(id + n, text.id, (size_t)text.count * sizeof *id);
    n += text.count;
    if (behind >= 0)
        id[n++] = behind;
    *out = (heed_tokens){id, n};
    return HEED_OK;
}

static heed_status label_side(const struct view *v, heed_tokens t, heed_labels *labels,
                              heed_label_words *words, bool pieces, heed_error *err)
{
    heed_status status = piece_labels(v, v->target, t.id, t.count, labels, err);
    return status || pieces ? status : word_labels(v, v->target, t.id, t.count, words, err);
}

/* A decoder reads what stands before a text and then the text, and its rows are labelled by what it
 * should say there; an encoder reads all of it. */
static heed_status look(struct view *v, const struct inspect_settings *s, const heed_engine *e,
                        heed_error *err)
{
    const heed_model_config *c = heed_engine_configuration(e);
    const bool encoder = c->arch == HEED_ARCH_ENCODER;
    const heed_special_ids *ids = encoder ? &c->ids.source : &c->ids.target;
    heed_attention_picture *p = &v->picture;
    heed_tokens text = {0}, read = {0}, wanted = {0};
    heed_label_words none = {0}, in = {0}, out = {0};
    if (heed_vocab_encode(v->target, s->attention, strlen(s->attention), v->arena, &text, err) ||
        surround(v->arena, encoder ? ids->cls : ids->start, text, encoder ? ids->sep : -1, &read,
                 err) ||
        surround(v->arena, -1, text,
                 encoder        ? -1
                 : ids->eos < 0 ? ids->sep
                                : ids->eos,
                 &wanted, err) ||
        heed_engine_attention(e, encoder ? &read : NULL, encoder ? NULL : &text, v->arena, &p->maps,
                              &p->count, err) ||
        label_side(v, read, encoder ? &p->source : &p->read, &in, s->pieces, err) ||
        (!encoder && label_side(v, wanted, &p->target, &out, s->pieces, err)) || s->pieces)
        return err->status;
    return heed_attention_by_words(p, encoder ? in : none, out, encoder ? none : in, v->arena, p,
                                   err);
}

bool inspect_text(const struct inspect_settings *s, heed_arena *arena)
{
    struct inspect_model m = {.engine = NULL};
    heed_error err = {0};
    if (s->target) {
        complain("'--target' is for translations: '%s' has one text", s->model);
        return false;
    }
    if (!inspect_open(&m, s->model, arena, &err)) {
        struct view v = {.arena = arena,
                         .source = m.source,
                         .target = m.target,
                         .picture = {.title = s->attention}};
        struct inspect_settings single = *s;
        single.kind = heed_engine_configuration(m.engine)->arch == HEED_ARCH_ENCODER
                          ? HEED_ENCODER_SELF
                          : HEED_DECODER_SELF;
        if (!look(&v, s, m.engine, &err))
            show(&single, NULL, &v, &err);
    }
    inspect_close(&m);
    if (err.status)
        complain("%s", err.text);
    return !err.status;
}
