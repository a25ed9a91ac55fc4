/* found_model.h (internal): a model of another program as one of heed's: its configuration, which
 * tensors its parameters are, its vocabularies. */
#ifndef HEED_ENGINE_FOUND_MODEL_H
#define HEED_ENGINE_FOUND_MODEL_H

#include "base/path.h"
#include "engine/shortlist.h"
#include "files/found.h"
#include "files/recognise.h"
#include "kernel/panels.h"

#include <heed/engine.h>

/* Where a parameter of heed's comes from.  Both names may hold one %d, the layer.  Several tensors
 * with | between them stand side by side along the output. */
typedef struct heed__name_rule {
    const char *to, *from;
} heed__name_rule;

/* How vocabularies lie beside a model. */
typedef enum heed__found_lists {
    HEED__FOUND_LIST,   /* tokens, one a line or an array */
    HEED__FOUND_FILE,   /* what heed_vocab_open opens */
    HEED__FOUND_MAPPED, /* SentencePiece models, whose pieces have the ids of another file */
} heed__found_lists;

typedef struct heed__found_model {
    heed__recognised where;
    heed__found *found;
    heed_model_config config;
    heed_text_config text;
    heed__found_lists lists;
    heed__pathname vocabulary[2]; /* source, target; one file twice if it is shared */
    heed__pathname pieces[2];     /* mapped: the ids */
    int32_t start;                /* what a decoder reads first; -1: as the vocabulary says */
    const heed__name_rule *rules;
    size_t rule_count;
    int first_layer;    /* the number of the first layer in names */
    bool own_int8;      /* products are computed with the file's int8 values and multipliers */
    bool in_out;        /* matrices are (in, out), not (out, in) */
    bool ends_at_10000; /* sinusoids: the slowest frequency is 1/10000 */
    int64_t first;      /* position of the first token */
    bool source_ends;   /* in EOS */
    /* The name that a tensor has in this file; NULL: its own. */
    void (*rename)(const struct heed__found_model *m, const char *name, char *out, size_t capacity);
} heed__found_model;

/* Whether a path holds a model of another program. */
bool heed__is_found(const char *path);
const char *heed__publisher_name(heed__publisher publisher);
/* Recognises and reads, of Hugging Face's directories the weights and config.json.  The model must
 * be closed, also after an error. */
heed_status heed__found_read(heed__found_model *m, const char *path,
                             const heed_allocator *allocator, heed_error *err);
/* Finds out the configuration and the rules; refuses what heed does not compute. */
heed_status heed__found_understand(heed__found_model *m, heed_error *err);
/* Both. */
heed_status heed__found_open(heed__found_model *m, const char *path,
                             const heed_allocator *allocator, heed_error *err);
void heed__found_close(heed__found_model *m);
/* convert_found.c: the vocabularies and the shortlist, under heed's names in the directory `to`. */
heed_status heed__found_write_text(const heed__found_model *m, const heed_model_config *config,
                                   const char *to, heed_error *err);
/* The parameters of a model that was built from m->config. */
heed_status heed__found_fill(const heed__found_model *m, heed_params *p, heed_error *err);
/* Whether both sides have one vocabulary. */
bool heed__found_shared(const heed__found_model *m);
heed_status heed__found_vocabs(const heed__found_model *m, const heed_allocator *allocator,
                               heed_vocab **source, heed_vocab **target, heed_error *err);
/* The tensors that a parameter is made of; 0: nothing gives it, or one of them is missing. */
#define HEED__FOUND_PARTS 4
int heed__found_parts(const heed__found_model *m, const char *name,
                      const heed__found_tensor *part[HEED__FOUND_PARTS], heed_error *err);
/* found_int8.c: matrices that a file holds as int8 with one scale, as they are: heed__given_int8;
 * the context is the found model. */
bool heed__found_int8(const void *model, const heed_tensor *x, bool table, heed__panel_weights *p,
                      heed_arena *arena, heed_error *err);
/* A tensor by the name that rules give it, or NULL. */
const heed__found_tensor *heed__found_named(const heed__found_model *m, const char *name);

heed_status heed__found_read_config(const char *path, heed_model_config *config,
                                    heed_text_config *text, heed_error *err);
/* The lex.*.bin beside a model of Marian's. */
heed_status heed__found_shortlist(const char *path, const heed_model_config *config,
                                  heed__shortlist *s, const heed_allocator *allocator,
                                  heed_error *err);
heed_engine *heed__found_engine(const char *path, const heed_model_config *config,
                                const heed_allocator *allocator, heed_error *err);

/* ---- each kind: fills config, text, vocabulary and rules ---- */

heed_status heed__describe_ct2(heed__found_model *m, heed_error *err);
heed_status heed__describe_argos(heed__found_model *m, heed_error *err);
heed_status heed__describe_hugging_face(heed__found_model *m, heed_error *err);
heed_status heed__describe_marian(heed__found_model *m, heed_error *err);
heed_status heed__describe_llama2c(heed__found_model *m, heed_error *err);
heed_status heed__describe_gguf(heed__found_model *m, heed_error *err);
/* Of Hugging Face: configuration and rules, not the vocabulary. */
heed_status heed__describe_llama(heed__found_model *m, heed_error *err);

/* The tensors beside a config.json of Hugging Face. */
heed_status heed__hugging_face_weights(heed__found_model *m, heed_error *err);

#endif
