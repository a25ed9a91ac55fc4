/* spool.h: an unnamed temporary file (in TMPDIR, else /tmp) that is written once from end to end
 * and then mapped: what may be larger than memory. */
#ifndef HEED_DATA_SPOOL_H
#define HEED_DATA_SPOOL_H

#include <stddef.h>

#define HEED__SPOOL_BUFFER ((size_t)1 << 16)
typedef struct heed__spool {
    int fd;     /* -1: none */
    int failed; /* errno of the first failure, or 0 */
    size_t held, size;
    char buffer[HEED__SPOOL_BUFFER];
} heed__spool;

/* Where temporary files are made. */
const char *heed__spool_folder(void);
/* Failures stay in s->failed until somebody asks. */
void heed__spool_open(heed__spool *s);
void heed__spool_add(heed__spool *s, const void *bytes, size_t size);
/* All that was added, for heed__file_unmap; "" and 0 where there is nothing. */
const void *heed__spool_map(heed__spool *s, size_t *size);
/* What is mapped stays. */
void heed__spool_close(heed__spool *s);

#endif
