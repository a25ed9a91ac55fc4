/* model_files.h (internal): what the directories of all networks that see have in common. */
#ifndef HEED_SEE_MODEL_FILES_H
#define HEED_SEE_MODEL_FILES_H

#include <heed/image.h>
#include <heed/nn.h>
#include <heed/options.h>

/* A directory's config.json: the values of an option set. */
heed_status heed__see_config_write(const char *folder, const heed_option_set *set,
                                   const void *values, heed_arena *arena, heed_error *err);
heed_status heed__see_config_read(const char *folder, const heed_option_set *set, void *values,
                                  heed_arena *arena, heed_error *err);
/* Makes declared parameters and reads them from model.safetensors. */
heed_status heed__see_weights(heed_params *params, const char *folder, heed_error *err);
/* A tape that neither trains nor records. */
heed_tape *heed__see_tape(int threads, const heed_allocator *a, heed_error *err);
/* A picture scaled to side x side, from -1 to 1. */
heed_status heed__see_scaled(const heed_image *image, int64_t side, int64_t channels,
                             const heed_allocator *a, heed_real *to, heed_error *err);

#endif
