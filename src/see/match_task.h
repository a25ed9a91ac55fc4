/* match_task.h (internal): a model of pictures and texts that ask each other: its directory, and
 * scores of more of them than fit on a tape. */
#ifndef HEED_SEE_MATCH_TASK_H
#define HEED_SEE_MATCH_TASK_H

#include "see/captioned.h"

/* A model directory's config.json. */
heed_status heed__match_config_write(const char *folder, const heed_match_config *c,
                                     heed_arena *arena, heed_error *err);
heed_status heed__match_config_read(const char *folder, heed_match_config *c, heed_arena *arena,
                                    heed_error *err);
/* What stays of pictures and texts when the tape, which neither trains nor records, is reset:
 * places (pictures*L,d), words (N,d), rows one for each text. */
heed_status heed__match_see(heed_tape *t, const heed_match_net *m, const heed_real *pixels,
                            int64_t pictures, heed_real *places, heed_error *err);
heed_status heed__match_read(heed_tape *t, const heed_match_net *m, const int32_t *ids,
                             const heed_segments *rows, heed_real *words, heed_error *err);
/* scores (pictures, texts), block by block. */
heed_status heed__match_all(heed_tape *t, const heed_match_net *m, const heed_real *places,
                            int64_t pictures, const heed_real *words, const heed_segments *rows,
                            heed_real *scores, heed_error *err);

#endif
