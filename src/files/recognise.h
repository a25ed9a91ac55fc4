/* recognise.h: which files of a directory make a model of another program, and which program's. */
#ifndef HEED_FILES_RECOGNISE_H
#define HEED_FILES_RECOGNISE_H

#include "base/path.h"
#include "files/found.h"

typedef enum heed__publisher {
    HEED__NOT_FOUND_AS_SUCH, /* heed's own, or nothing that heed knows */
    HEED__CTRANSLATE2,       /* model.bin and vocabularies */
    HEED__ARGOS,             /* metadata.json, sentencepiece.model and CTranslate2's in model/ */
    HEED__HUGGING_FACE,      /* config.json with a model_type */
    HEED__GGUF_FILE,
    HEED__LLAMA2C,       /* NAME.bin and tok*.bin */
    HEED__MARIAN,        /* NAME.npz or NAME.bin of Marian, with vocabularies */
    HEED__WEIGHTS_ALONE, /* a file of tensors: .npz, .npy, .onnx, PyTorch's */
} heed__publisher;

typedef struct heed__recognised {
    heed__publisher publisher;
    heed__pathname folder, weights; /* the file that holds them; of Hugging Face: config.json */
    heed__found_reader *read;       /* of weights */
} heed__recognised;

/* What lies at a path, a file or a directory. */
heed_status heed__recognise(const char *path, heed__recognised *r, heed_error *err);

#endif
