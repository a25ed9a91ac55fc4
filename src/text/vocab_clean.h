/* vocab_clean.h: what happens to every text before SentencePiece sees it, in learning and in use.
 */
#ifndef HEED_TEXT_VOCAB_CLEAN_H
#define HEED_TEXT_VOCAB_CLEAN_H

#include <heed/base.h>

/* Spaces of every kind become U+0020, control characters vanish, and letters and their accents are
 * composed (NFC).  Nothing else changes: quotes, dots and full-width signs are part of how a
 * language is written, and a translation shall have them (NFKC, the usual choice, takes the comma
 * out of Chinese).  text must be UTF-8.  The result is the text itself if there was nothing to do;
 * otherwise it lives in the arena.  NULL when memory is short. */
const char *heed__clean(const char *text, size_t length, heed_arena *arena, size_t *clean_length);

#endif
