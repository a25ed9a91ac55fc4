/* lex.h: Bergamot's and Firefox's lexical shortlist, lex.50.50.*.s2t.bin.
 *
 *     u64 magic | u64 checksum | u64 firstNum | u64 bestNum | u64 offsets | u64 entries
 *     | u64 offset[offsets] | u32 id[entries]
 *
 * The likely target pieces of source piece s are id[offset[s]] .. id[offset[s+1]], ascending. */
#ifndef HEED_FILES_LEX_H
#define HEED_FILES_LEX_H

#include "files/found.h"

#define HEED__LEX_MAGIC 0xF11A48D5013417F5u

typedef struct heed__lex {
    int64_t first, best;      /* pieces that are always on the list; kept for each source piece */
    int64_t sources, entries; /* pieces of the source vocabulary; all ids */
    const unsigned char *offset; /* (sources+1) u64, unaligned, in the bytes of the file */
    const unsigned char *id;     /* (entries) u32 */
} heed__lex;

/* The bytes are borrowed; name is for messages.  Every offset and id has been checked: ids are
 * below `targets`, and there are offsets for `sources` pieces (0: any number). */
heed_status heed__lex_open(heed__lex *l, const char *name, const void *bytes, size_t size,
                           int64_t sources, int64_t targets, heed_error *err);
static inline bool heed__is_lex(const void *bytes, size_t size)
{
    heed__byte_cursor c = heed__bytes_over(bytes, size);
    return heed__read_u64(&c) == HEED__LEX_MAGIC;
}
/* The i-th offset, 0 to sources, and the k-th id. */
int64_t heed__lex_offset(const heed__lex *l, int64_t i);
int32_t heed__lex_id(const heed__lex *l, int64_t k);

#endif
