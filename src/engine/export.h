/* export.h (internal): a model that heed trained in another program's form: what the forms
 * share. */
#ifndef HEED_ENGINE_EXPORT_H
#define HEED_ENGINE_EXPORT_H

#include "base/path.h"
#include "engine/found_model.h"
#include "vocab/spm_order.h"

/* A vocabulary of the other program: which piece of the model's stands at each of its ids. */
typedef struct heed__export_vocab {
    heed__pathname path; /* of the model's */
    heed_special_ids ids;
    heed__spm_entry *entry;
    int32_t count;
} heed__export_vocab;

/* One tensor of the other program's. */
typedef struct heed__export_tensor {
    const char *name;
    int64_t rows, cols; /* rows 0: a vector */
    float *value;
    bool matrix, table;
    const heed_tensor *of; /* the parameter it is part of */
} heed__export_tensor;

typedef struct heed__export {
    const char *from, *to;
    heed_arena *arena;
    heed_model *model; /* in fp32, whatever the directory holds */
    heed_model_config config;
    heed_text_config text;
    heed__export_vocab vocab[2]; /* source, target; the first for both if shared */
    bool shared;
    heed__export_tensor *tensor;
    int64_t count, capacity;
    heed_error *err; /* the first error stays */
} heed__export;

void *heed__export_take(const heed__export *x, int64_t count, size_t size);
#define HEED__NEVER (-1e4f) /* the bias of pieces that heed's vocabulary has not */
/* Every parameter cut into the tensors of rules (found_model.h), matrices (in,out) or (out,in),
 * rows of tables and of the output's bias in the order of the vocabularies; pad is the bias of
 * pieces that the model has not. */
void heed__export_tensors(heed__export *x, const heed__name_rule *rules, size_t rule_count,
                          int first_layer, bool in_out, float pad);
/* A tensor of zeros, for biases that a model has not; rows 0: a vector. */
void heed__export_zeros(heed__export *x, const char *name, int64_t count);
bool heed__export_has(const heed__export *x, const char *name);
/* A file in the new folder. */
void heed__export_text(const heed__export *x, const char *name, const char *text);
/* The vocabulary of a side, its pieces in their order. */
void heed__export_vocabulary(const heed__export *x, int side, const char *name);

/* export_ranges.c: how large the rows get that each matrix is multiplied with, over the sentences
 * of a TSV: 127 / (mean + 1.1 standard deviations) of the largest of a sentence, as Bergamot
 * reckons it; by parameter, 0 for what is no matrix. */
typedef struct heed__export_range {
    const heed_tensor *of;
    float multiplier;
} heed__export_range;
heed__export_range *heed__export_ranges(const heed__export *x, const char *tsv, int64_t *count);

/* The forms. */
void heed__export_marian(heed__export *x, bool firefox, const char *sample);
void heed__export_hugging_face(heed__export *x);

/* found_marian.c, found_hugging_face.c: the names of tensors. */
const heed__name_rule *heed__marian_rules(size_t *count);
const heed__name_rule *heed__hugging_face_rules(size_t *count);

#endif
