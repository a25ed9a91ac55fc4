/* grid.c: from a picture to a grid of places.  A picture is a segment of rows, so a place is a row,
 * and attention over places is attention over rows. */
#include <heed/see.h>

void heed_grid_build(heed_grid_layer *l, heed_scope s, const heed_grid_options *options)
{
    if (!l)
        return;
    *l = (heed_grid_layer){.options = *options, .size = {options->height, options->width}};
    int64_t in = options->channels, filters = options->filters;
    for (int64_t i = 0; i <= options->stages && i <= HEED_GRID_STAGES; i++) {
        heed_scope here = heed_scope_enter(s, "%d", (int)i);
        l->weight[i] = heed_param(here, "weight", HEED_SHAPE(9 * in, filters),
                                  (heed_init){HEED_INIT_KAIMING, 1});
        heed_norm_build(&l->norm[i], heed_scope_enter(here, "norm"), HEED_NORM_BATCH, filters,
                        1e-5);
        l->d = in = filters;
        if (i == options->stages)
            break;
        l->size = (heed_image_size){(l->size.y + 1) / 2, (l->size.x + 1) / 2};
        if (i + 1 < options->stages)
            filters *= 2;
    }
}

heed_tensor *heed_grid_apply(heed_tape *t, const heed_grid_layer *l, heed_tensor *pixels)
{
    if (!t || !l)
        return NULL;
    heed_image_size size = {l->options.height, l->options.width};
    heed_tensor *x = pixels;
    for (int64_t i = 0; i <= l->options.stages && i <= HEED_GRID_STAGES; i++) {
        const int64_t by = i < l->options.stages ? 2 : 1;
        const heed_conv2d_options o = {
            .image = size, .kernel = {3, 3}, .stride = {by, by}, .padding = {1, 1}};
        x = heed_conv2d(t, x, l->weight[i], NULL, &o);
        x = heed_relu(t, heed_norm_apply(t, &l->norm[i], x));
        size = heed_conv2d_size(&o);
    }
    return x;
}
