/* caption_task.h (internal): a captioner's training, and what its model directory holds. */
#ifndef HEED_SEE_CAPTION_TASK_H
#define HEED_SEE_CAPTION_TASK_H

#include "see/captioned.h"

/* A model directory's config.json. */
heed_status heed__caption_config_write(const char *folder, const heed_caption_config *c,
                                       heed_arena *arena, heed_error *err);
heed_status heed__caption_config_read(const char *folder, heed_caption_config *c, heed_arena *arena,
                                      heed_error *err);

#endif
