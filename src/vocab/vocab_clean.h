/* vocab_clean.h: normalising text before SentencePiece, in training and in use. */
#ifndef HEED_VOCAB_VOCAB_CLEAN_H
#define HEED_VOCAB_VOCAB_CLEAN_H

#include <heed/base.h>

/* Spaces of every kind become U+0020, control characters are removed, and letters and accents are
 * composed (NFC).  Nothing else changes: quotes, ellipses and full-width punctuation belong to a
 * language, and a translation should have them (NFKC, the usual choice, would change the comma of
 * Chinese).  text must be UTF-8.  The result is the text itself if nothing changes; otherwise it
 * lives in the arena.  NULL when memory is short. */
const char *heed__clean(const char *text, size_t length, heed_arena *arena, size_t *clean_length);

#endif
