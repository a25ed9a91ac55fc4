/* sagan_game.c: see sagan_game.h. */
#include "sagan_game.h"

/* Where z and the classes asked for stand in a stream whose beginning real pictures use. */
static const uint64_t noise_at = (uint64_t)1 << 40, classes_at = (uint64_t)1 << 41;

void sagan_game_build(sagan_game *g, int set, heed_scope s)
{
    if (set == SAGAN_GENERATOR)
        sagan_generator_build(&g->generator, s, &g->sizes);
    else
        sagan_discriminator_build(&g->discriminator, s, &g->sizes);
}

/* z (count,noise) */
static heed_tensor *draw(heed_tape *t, const sagan_game *g, const heed_rng *rng, int64_t first,
                         int64_t count, int32_t *classes)
{
    const int64_t n = g->sizes.noise;
    heed_tensor *z = heed_input(t, HEED_SHAPE(count, n), NULL);
    for (int64_t i = 0; z && i < count * n; i++)
        heed_tensor_data(z)[i] =
            (heed_real)heed_rng_normal(rng, noise_at + (uint64_t)(first * n + i));
    for (int64_t i = 0; i < count; i++)
        if (classes[i] < 0)
            classes[i] =
                (int32_t)heed_rng_below(rng, classes_at + (uint64_t)(first + i), g->data.classes);
    return z;
}

heed_tensor *sagan_game_loss(heed_tape *t, const sagan_game *g, int set, int64_t batch,
                             const heed_rng *rng)
{
    const int64_t size = g->data.side * g->data.side;
    const bool makes = set == SAGAN_GENERATOR;
    /* Real pictures' classes, then those asked for. */
    int32_t *classes = heed_arena_allocate(heed_tape_arena(t), 2 * (size_t)batch * sizeof *classes);
    if (!classes)
        return heed_tape_fail(t, HEED_MEMORY, "out of memory for a batch");
    for (int64_t i = 0; i < 2 * batch; i++)
        classes[i] = -1;
    heed_tensor *z = draw(t, g, rng, 0, batch, classes + batch);
    heed_tensor *made = sagan_generate(t, &g->generator, z, classes + batch, makes, NULL);
    if (makes)
        return sagan_generator_loss(
            t, sagan_discriminate(t, &g->discriminator, made, classes + batch, false, NULL));
    heed_tensor *real = heed_input(t, HEED_SHAPE(batch * size, 1), NULL);
    for (int64_t i = 0; real && i < batch; i++)
        classes[i] = sagan_data_take(&g->data, PICTURES_TRAIN, i, rng,
                                     heed_tensor_data(real) + i * size, NULL);
    heed_tensor *both = heed_concat_rows(t, (heed_tensor *[]){real, made}, 2);
    heed_tensor *said = sagan_discriminate(t, &g->discriminator, both, classes, true, NULL);
    return sagan_discriminator_loss(t, heed_slice_rows(t, said, 0, batch),
                                    heed_slice_rows(t, said, batch, 2 * batch));
}

heed_tensor *sagan_game_make(heed_tape *t, const sagan_game *g, int64_t first, int64_t count,
                             int32_t *classes, heed_tensor **look)
{
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 3000017});
    heed_tensor *z = draw(t, g, &rng, first, count, classes);
    return sagan_generate(t, &g->generator, z, classes, false, look);
}
