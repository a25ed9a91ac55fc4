/* known_positions.h (internal): something of each position from 0 on (sinusoids, angles), computed
 * as far as sentences reach: all that a model could take would cost more than opening it. */
#ifndef HEED_ENGINE_KNOWN_POSITIONS_H
#define HEED_ENGINE_KNOWN_POSITIONS_H

#include <heed/base.h>

typedef struct heed__known_positions {
    heed_real *at; /* (known,columns) */
    int64_t known;
} heed__known_positions;

/* Writes (count,columns), of positions from `first` on. */
typedef void heed__position_rows(heed_real *to, int64_t first, int64_t count, int64_t columns,
                                 const void *context);
/* Positions below count are known, or memory is short. */
heed_status heed__positions_reserve(heed__known_positions *p, int64_t count, int64_t columns,
                                    heed__position_rows *rows, const void *context,
                                    const heed_allocator *allocator, heed_error *err);
void heed__positions_release(heed__known_positions *p, int64_t columns,
                             const heed_allocator *allocator);

#endif
