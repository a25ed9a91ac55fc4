/* model_directory.h: the files of a model directory. */
#ifndef HEED_ENGINE_MODEL_DIRECTORY_H
#define HEED_ENGINE_MODEL_DIRECTORY_H

#include "base/path.h"
#include <heed/engine.h>

/* A part of its training text. */
#define HEED__SAMPLE_FILE "sample.tsv"

/* The files of a directory's vocabularies; both paths are the same where they are one. */
heed_status heed__vocabs_find(const char *folder, heed__pathname path[2], heed_error *err);

#endif
