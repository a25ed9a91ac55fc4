/* learn_words.c: learning vocabularies of characters, of bytes (byte-level BPE) and WordPiece,
 * which is learned as BPE over characters, those inside of a word with "##" before them. */
#include "base/error.h"
#include "text/utf8.h"
#include "vocab/bert_text.h"
#include "vocab/byte_letters.h"
#include "vocab/learn_merges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSIDE "##"
/* Longer words (data, not language) are not learned from. */
#define MOST_SYMBOLS 512

static heed_status no_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory for learning a vocabulary");
}

/* ---- counting ---- */

static bool count_text(heed__pieces *counts, const char *text, size_t length)
{
    const int32_t id = heed__pieces_add(counts, text, length);
    if (id >= 0)
        counts->item[id].count++;
    return id >= 0;
}

static int by_count(const void *a, const void *b)
{
    const heed__piece *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

/* The pieces cannot be found by their text after that. */
static void sort_by_count(heed__pieces *counts)
{
    if (counts->count)
        qsort(counts->item, (size_t)counts->count, sizeof *counts->item, by_count);
}

static bool add_special(heed__pieces *pieces, const char *text, heed__piece_type type)
{
    const int32_t id = heed__pieces_add(pieces, text, strlen(text));
    if (id >= 0)
        pieces->item[id].type = type;
    return id >= 0;
}

static bool add_own_specials(heed__pieces *pieces)
{
    for (int32_t i = 0; i < HEED__SPECIALS; i++)
        if (!add_special(pieces, heed__special(i), heed__special_type(i)))
            return false;
    return true;
}

/* How many of the sorted characters are this share of the text. */
static int32_t covered(const heed__pieces *characters, double coverage)
{
    int64_t all = 0, so_far = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < characters->count; i++)
        all += characters->item[i].count;
    for (; n < characters->count && (double)so_far < (coverage > 0 ? coverage : 1) * (double)all;
         n++)
        so_far += characters->item[n].count;
    return n;
}

static heed_status too_many(const heed_vocab_options *o, int64_t needed, heed_error *err)
{
    return heed__fail(err, HEED_ARGUMENT,
                      "cannot learn a vocabulary of %lld pieces: the text has so many different "
                      "characters that it takes %lld; raise the size or lower the coverage",
                      (long long)o->size, (long long)needed);
}

static heed_status nothing(heed_error *err)
{
    return heed__fail(err, HEED_ARGUMENT, "cannot learn a vocabulary: there is no usable line");
}

/* ---- characters ---- */

static heed_status count_characters(heed__pieces *characters, const heed_line_source *lines,
                                    heed_error *err)
{
    for (;;) {
        const char *line;
        size_t length, n;
        heed_status status = lines->next(lines->context, &line, &length, err);
        if (status || !line)
            return status;
        for (size_t at = 0; at < length; at += n) {
            int32_t c;
            n = heed__utf8_next(line + at, length - at, &c);
            const bool space = line[at] == ' ';
            if (!count_text(characters, space ? HEED__SPACE : line + at,
                            space ? HEED__SPACE_LENGTH : n))
                return no_memory(err);
        }
    }
}

/* A newline is always a piece: lines are what the text comes in. */
heed_status heed__characters_learn(const heed_vocab_options *options, const heed_line_source *lines,
                                   const char *path, int32_t *count, heed_error *err)
{
    heed__learner l = {0};
    heed__pieces characters = {0};
    heed_status status = heed__learner_init(&l, NULL, err);
    if (!status)
        status = heed__pieces_init(&characters, NULL, err);
    if (!status)
        status = count_characters(&characters, lines, err);
    if (!status && characters.count == 0)
        status = nothing(err);
    if (!status && (!add_own_specials(&l.pieces) || heed__pieces_add(&l.pieces, "\n", 1) < 0))
        status = no_memory(err);
    sort_by_count(&characters);
    const int32_t n = covered(&characters, options->coverage);
    for (int32_t i = 0; !status && i < n; i++)
        if ((options->size == 0 || l.pieces.count < options->size) &&
            heed__pieces_add(&l.pieces, characters.item[i].text, characters.item[i].length) < 0)
            status = no_memory(err);
    *count = l.pieces.count;
    if (!status)
        status = heed__tokenizer_write(&l, HEED_CHARACTERS, true, path, err);
    heed__pieces_deinit(&characters);
    heed__learner_deinit(&l);
    return status;
}

/* ---- byte-level BPE ---- */

static heed_status count_byte_words(heed__pieces *words, const heed_line_source *lines,
                                    heed_error *err)
{
    for (;;) {
        const char *line;
        size_t length, n;
        heed_status status = lines->next(lines->context, &line, &length, err);
        if (status || !line)
            return status;
        for (; length; line += n, length -= n) {
            n = heed__split_next(HEED__SPLIT_GPT2, line, length);
            if (n <= MOST_SYMBOLS && !count_text(words, line, n))
                return no_memory(err);
        }
    }
}

static heed_status add_byte_words(heed__learner *l, const heed__pieces *words, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int32_t i = 0; !status && i < words->count; i++) {
        const heed__piece *word = &words->item[i];
        int32_t symbols[MOST_SYMBOLS];
        for (uint32_t k = 0; k < word->length; k++)
            symbols[k] = HEED__SPECIALS + (unsigned char)word->text[k];
        status = heed__learner_add(l, symbols, (int32_t)word->length, word->count, err);
    }
    return status;
}

heed_status heed__bytes_learn(const heed_vocab_options *options, const heed_line_source *lines,
                              const char *path, int32_t *count, heed_error *err)
{
    heed__learner l = {0};
    heed__pieces words = {0};
    heed_status status = heed__learner_init(&l, NULL, err);
    if (!status)
        status = heed__pieces_init(&words, NULL, err);
    if (!status)
        status = count_byte_words(&words, lines, err);
    if (!status && words.count == 0)
        status = nothing(err);
    if (!status && !add_own_specials(&l.pieces))
        status = no_memory(err);
    for (int i = 0; !status && i < 256; i++) {
        char letter[3];
        const size_t n = heed__byte_letter((unsigned char)i, letter);
        if (heed__pieces_add(&l.pieces, letter, n) < 0)
            status = no_memory(err);
    }
    if (!status)
        status = add_byte_words(&l, &words, err);
    if (!status)
        status = heed__learner_run(&l, (int32_t)options->size, "", err);
    *count = l.pieces.count;
    if (!status)
        status = heed__tokenizer_write(&l, HEED_BYTES, true, path, err);
    heed__pieces_deinit(&words);
    heed__learner_deinit(&l);
    return status;
}

/* ---- WordPiece ---- */

static heed_status count_bert_words(heed__pieces *words, bool cased, const heed_line_source *lines,
                                    heed_error *err)
{
    const heed__bert_options o = {!cased, !cased, true, true};
    heed_arena *arena = heed_arena_new(NULL, err);
    heed_status status = arena ? HEED_OK : HEED_MEMORY;
    while (!status) {
        const char *line, *text;
        size_t length, size;
        status = lines->next(lines->context, &line, &length, err);
        if (status || !line)
            break;
        heed_arena_reset(arena);
        text = heed__bert_words(&o, line, length, arena, &size);
        if (!text)
            status = no_memory(err);
        for (size_t at = 0; !status && at < size;) {
            const char *space = memchr(text + at, ' ', size - at);
            const size_t end = space ? (size_t)(space - text) : size;
            if (end - at <= MOST_SYMBOLS && !count_text(words, text + at, end - at))
                status = no_memory(err);
            at = end + 1;
        }
    }
    heed_arena_free(arena);
    return status;
}

/* A character as it stands in a word, "##" before it inside; returns its bytes in the word. */
static size_t piece_at(const heed__piece *word, size_t at, char out[8], size_t *length)
{
    int32_t c;
    const size_t prefix = at ? sizeof INSIDE - 1 : 0;
    const size_t n = heed__utf8_next(word->text + at, word->length - at, &c);
    memcpy(out, INSIDE, prefix);
    memcpy(out + prefix, word->text + at, n);
    *length = prefix + n;
    return n;
}

static heed_status add_alphabet(heed__learner *l, const heed__pieces *words,
                                const heed_vocab_options *options, heed_error *err)
{
    heed__pieces alphabet = {0};
    char piece[8];
    size_t length, n;
    heed_status status = heed__pieces_init(&alphabet, NULL, err);
    for (int32_t i = 0; !status && i < words->count; i++)
        for (size_t at = 0; !status && at < words->item[i].length; at += n) {
            n = piece_at(&words->item[i], at, piece, &length);
            const int32_t id = heed__pieces_add(&alphabet, piece, length);
            if (id < 0)
                status = no_memory(err);
            else
                alphabet.item[id].count += words->item[i].count;
        }
    sort_by_count(&alphabet);
    const int32_t most = status ? 0 : covered(&alphabet, options->coverage);
    if (!status && l->pieces.count + most > options->size)
        status = too_many(options, l->pieces.count + most, err);
    for (int32_t i = 0; !status && i < most; i++)
        if (heed__pieces_add(&l->pieces, alphabet.item[i].text, alphabet.item[i].length) < 0)
            status = no_memory(err);
    heed__pieces_deinit(&alphabet);
    return status;
}

/* Words with a character that is not in the alphabet would be unknown. */
static heed_status add_bert_words(heed__learner *l, const heed__pieces *words, heed_error *err)
{
    heed_status status = HEED_OK;
    for (int32_t i = 0; !status && i < words->count; i++) {
        const heed__piece *word = &words->item[i];
        int32_t symbols[MOST_SYMBOLS], n = 0;
        bool known = true;
        char piece[8];
        size_t length;
        for (size_t at = 0; known && at < word->length; n++) {
            at += piece_at(word, at, piece, &length);
            symbols[n] = heed__pieces_find(&l->pieces, piece, length);
            known = symbols[n] >= 0;
        }
        if (known)
            status = heed__learner_add(l, symbols, n, word->count, err);
    }
    return status;
}

heed_status heed__wordpiece_learn(const heed_vocab_options *options, const heed_line_source *lines,
                                  const char *path, int32_t *count, heed_error *err)
{
    heed__learner l = {0};
    heed__pieces words = {0};
    heed_status status = heed__learner_init(&l, NULL, err);
    if (!status)
        status = heed__pieces_init(&words, NULL, err);
    if (!status)
        status = count_bert_words(&words, options->cased, lines, err);
    if (!status && words.count == 0)
        status = nothing(err);
    if (!status && !(add_special(&l.pieces, "[PAD]", HEED__PIECE_CONTROL) &&
                     add_special(&l.pieces, "[UNK]", HEED__PIECE_UNKNOWN) &&
                     add_special(&l.pieces, "[CLS]", HEED__PIECE_CONTROL) &&
                     add_special(&l.pieces, "[SEP]", HEED__PIECE_CONTROL) &&
                     add_special(&l.pieces, "[MASK]", HEED__PIECE_USER)))
        status = no_memory(err);
    if (!status)
        status = add_alphabet(&l, &words, options, err);
    if (!status)
        status = add_bert_words(&l, &words, err);
    if (!status)
        status = heed__learner_run(&l, (int32_t)options->size, INSIDE, err);
    *count = l.pieces.count;
    if (!status)
        status = heed__tokenizer_write(&l, HEED_WORDPIECE, options->cased, path, err);
    heed__pieces_deinit(&words);
    heed__learner_deinit(&l);
    return status;
}
