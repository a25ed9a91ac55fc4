/* align.h (internal): which word of the source each word of a translation comes from, as attention
 * has it. */
#ifndef HEED_TRANSLATE_ALIGN_H
#define HEED_TRANSLATE_ALIGN_H

#include "translate/protect.h"

#include <heed/translate.h>

typedef struct heed__word_pair {
    int32_t source, target; /* words, from 0 */
} heed__word_pair;
typedef struct heed__alignment {
    const heed__word_pair *pair; /* (pairs) one for each word of the translation, in its order */
    int64_t pairs;
    int64_t source_words, target_words;
} heed__alignment;

/* One side: its tokens, with EOS at the end or without. */
typedef struct heed__side {
    const heed_vocab *vocab;
    heed_tokens tokens;
    const heed__protected *span; /* (spans) what its placeholders stand for */
    int64_t spans;
    bool written; /* as the target language writes them */
} heed__side;

/* weight (target tokens, source tokens), rows ld apart: where the model looked when it wrote each
 * token.  Lives in the arena. */
heed_status heed__align(const heed__side *source, const heed__side *target, const heed_real *weight,
                        int64_t ld, heed_arena *arena, heed__alignment *out, heed_error *err);
/* Pharaoh's form, "0-0 1-2": source and target word of each pair, of all parts of a line, one
 * behind the other.  Lives in the arena; NULL after an error. */
const char *heed__pharaoh(const heed__alignment *part, int64_t parts, heed_arena *arena,
                          heed_error *err);
/* Of a text that is its own translation: each word with itself. */
const char *heed__pharaoh_same(const char *text, heed_arena *arena, heed_error *err);

#endif
