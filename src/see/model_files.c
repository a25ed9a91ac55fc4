/* model_files.c: see model_files.h. */
#include "see/model_files.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/path.h"

#include <heed/io.h>
#include <heed/see.h>
#include <jansson.h>
#include <string.h>

heed_status heed__see_config_write(const char *folder, const heed_option_set *set,
                                   const void *values, heed_arena *arena, heed_error *err)
{
    heed__pathname path;
    const char *text = heed_option_config(set, values, arena);
    if (heed__pathname_format(path, err, "%s/config.json", folder))
        return HEED_ARGUMENT;
    return text ? heed_text_save(path, text, err)
                : heed__fail(err, HEED_MEMORY, "out of memory for '%s'", path);
}

heed_status heed__see_config_read(const char *folder, const heed_option_set *set, void *values,
                                  heed_arena *arena, heed_error *err)
{
    heed__pathname path;
    heed_option_result result;
    if (heed__pathname_format(path, err, "%s/config.json", folder))
        return HEED_ARGUMENT;
    const char *const words[] = {"--config", path};
    return heed_option_parse(set, 2, words, values, arena, &result, err);
}

heed_status heed__see_weights(heed_params *params, const char *folder, heed_error *err)
{
    heed__pathname path;
    if (heed__pathname_format(path, err, "%s/model.safetensors", folder) ||
        heed_params_finish(params, 1, err))
        return err->status;
    return heed_params_load(params, path, err);
}

heed_tape *heed__see_tape(int threads, const heed_allocator *a, heed_error *err)
{
    heed_tape *t = heed_tape_new(&(heed_tape_options){.allocator = a, .threads = threads}, err);
    heed_tape_set_recording(t, false);
    heed_tape_set_training(t, false);
    return t;
}

heed_status heed__see_scaled(const heed_image *image, int64_t side, int64_t channels,
                             const heed_allocator *a, heed_real *to, heed_error *err)
{
    const size_t n = (size_t)(side * side * channels);
    heed_image scaled = {side, side, channels, heed__allocate(a, n, 1)};
    if (!scaled.pixels)
        return heed__fail(err, HEED_MEMORY, "out of memory for a picture");
    heed_image_scale(image, &scaled);
    for (size_t i = 0; i < n; i++)
        to[i] = (heed_real)(scaled.pixels[i] / 127.5 - 1);
    heed__release(a, scaled.pixels, n, 1);
    return HEED_OK;
}

const char *heed_see_arch(const char *folder)
{
    static const char *const archs[] = {"caption", "retrieve", "vit"};
    heed__pathname path;
    const char *found = NULL;
    if (!folder || heed__pathname_format(path, NULL, "%s/config.json", folder))
        return NULL;
    json_t *root = json_load_file(path, 0, NULL);
    const char *arch = json_string_value(json_object_get(root, "arch"));
    for (size_t i = 0; arch && i < sizeof archs / sizeof *archs; i++)
        found = strcmp(arch, archs[i]) == 0 ? archs[i] : found;
    json_decref(root);
    return found;
}
