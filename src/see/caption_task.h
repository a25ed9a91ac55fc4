/* caption_task.h (internal): a captioner's training, and what its model directory holds. */
#ifndef HEED_SEE_CAPTION_TASK_H
#define HEED_SEE_CAPTION_TASK_H

#include <heed/see.h>
#include <heed/vocab.h>

#define HEED__CAPTION_WORDS "words.vocab"

/* A model directory's config.json. */
heed_status heed__caption_config_write(const char *folder, const heed_caption_config *c,
                                       heed_arena *arena, heed_error *err);
heed_status heed__caption_config_read(const char *folder, heed_caption_config *c, heed_arena *arena,
                                      heed_error *err);
/* The ids of a caption, its letters made small; in the arena. */
heed_status heed__caption_encode(const heed_vocab *v, const char *text, heed_arena *arena,
                                 heed_tokens *tokens, heed_error *err);
/* ASCII letters; in the arena, NULL when memory is short. */
char *heed__small_letters(const char *text, heed_arena *arena);

#endif
