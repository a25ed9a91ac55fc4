/* captioned.h (internal): training on pictures with captions, whatever it trains: the pictures, the
 * words, batches, the position in them.  What is trained begins with a heed__captioned. */
#ifndef HEED_SEE_CAPTIONED_H
#define HEED_SEE_CAPTIONED_H

#include <heed/see.h>
#include <heed/vocab.h>

#define HEED__CAPTION_WORDS "words.vocab"

/* Pictures begin .. begin + count of a set, and their captions as numbers. */
typedef struct heed__captions {
    heed_pictures *set;
    bool owned;
    int64_t begin, count, captions;
    heed_tokens *tokens; /* (captions) */
    int64_t *first;      /* (count + 1) of each picture */
} heed__captions;

typedef struct heed__captioned {
    heed_allocator allocator;
    heed_arena *arena, *update; /* update: of the batches at hand */
    heed_train_hooks hooks;
    heed_caption_train_options *o;  /* of the recipe */
    const int64_t *side, *channels; /* of the model's configuration */
    heed__captions train, valid;
    heed_vocab *vocab;
    heed_params *params;
    heed_picture_batches *train_batches, *valid_batches;
} heed__captioned;

/* Makes the arenas.  resume: reads the stored options of a folder into `recipe`, by the set. */
heed_status heed__captioned_begin(heed__captioned *t, const char *folder, bool resume,
                                  const heed_option_set *set, void *recipe,
                                  const heed_train_hooks *hooks, const heed_allocator *a,
                                  heed_error *err);
/* Checks what all of them share, and opens the pictures; a twentieth, or --hold-out, validates if
 * there is no set of its own. */
heed_status heed__captioned_check(const heed_caption_train_options *o, int64_t side,
                                  int64_t channels, int64_t stages, heed_error *err);
heed_status heed__captioned_open(heed__captioned *t, const heed_option_set *set, void *recipe,
                                 heed_error *err);
/* Learns the words of a new folder, reads them, and numbers the captions; makes t->params. */
heed_status heed__captioned_words(heed__captioned *t, const char *folder, bool new_folder,
                                  heed_error *err);
/* Finishes t->params and starts the batches. */
heed_status heed__captioned_start(heed__captioned *t, heed_error *err);
/* The next pictures, whose pixels are kept in t->update. */
heed_status heed__captioned_take(heed__captioned *t, heed_picture_batch *p, heed_error *err);
void heed__captioned_end(heed__captioned *t);

/* Of a heed_task whose self begins with a heed__captioned. */
heed_params *heed__captioned_params(void *self, int set);
int heed__captioned_data(void *self, heed_fingerprint *out);
heed_position heed__captioned_tell(void *self);
heed_status heed__captioned_seek(void *self, heed_position p, heed_error *err);

/* The ids of a caption, its letters made small; in the arena. */
heed_status heed__caption_encode(const heed_vocab *v, const char *text, heed_arena *arena,
                                 heed_tokens *tokens, heed_error *err);
/* The same of a text that somebody gives: unknown words are refused with their names. */
heed_status heed__caption_encode_known(const heed_vocab *v, const char *text, heed_arena *arena,
                                       heed_tokens *tokens, heed_error *err);

#endif
