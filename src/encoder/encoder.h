/* encoder.h (internal): what lies in the directory of an encoder beside the usual. */
#ifndef HEED_ENCODER_ENCODER_H
#define HEED_ENCODER_ENCODER_H

#include <heed/encoder.h>

#define HEED__LABELS_FILE "labels.txt" /* one a line, in the order of their numbers */
heed_status heed__labels_write(const char *folder, const char *const *labels, int64_t count,
                               heed_error *err);
/* *labels is NULL where the directory has none.  They live in the arena. */
heed_status heed__labels_read(const char *folder, heed_arena *arena, const char *const **labels,
                              int64_t *count, heed_error *err);

#endif
