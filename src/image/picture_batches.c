/* picture_batches.c: batches of pictures, made by a thread a few ahead.  Batch n of epoch e is a
 * function of the options, the set, e and n: the order of an epoch and each picture's augmentation
 * are drawn from (seed, epoch, picture).  Only finished batches are exchanged, in order. */
#include "base/error.h"
#include "base/memory.h"
#include "image/image_scale.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define AHEAD 3
#define RADIANS (3.14159265358979323846 / 180)

/* What a random number is drawn for. */
enum { FOR_ORDER = 1, FOR_PICTURE = 2 };

typedef struct slot {
    heed_picture_position position;
    int64_t count; /* 0: the end */
    heed_real *features;
    int32_t *labels;
    int64_t *example;
    heed_error err;
} slot;

struct heed_picture_batches {
    heed_allocator allocator;
    heed_arena *arena;
    const heed_pictures *set;
    heed_pictures_report report;
    heed_picture_batches_options o;
    int64_t per_epoch; /* batches */
    slot slots[AHEAD];
    slot *taken;     /* what the caller reads now */
    int64_t *order;  /* (count) of epoch `ordered` */
    int64_t ordered; /* -1: none */
    uint8_t *pixels; /* of one picture */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;              /* under the lock, as the next */
    int64_t made, returned; /* batches */
    heed_picture_position begin, at;
    heed_error failed;
};

/* ---- the maker's thread ---- */

static heed_rng stream(const heed_picture_batches *b, int64_t epoch, int64_t what, int64_t of)
{
    return heed_rng_stream(&(heed_rng_key){
        .seed = b->o.seed, .step = (uint64_t)epoch, .set = (uint32_t)what, .node = (uint64_t)of});
}

static void make_order(heed_picture_batches *b, int64_t epoch)
{
    if (b->ordered == epoch)
        return;
    b->ordered = epoch;
    for (int64_t i = 0; i < b->o.count; i++)
        b->order[i] = b->o.only ? b->o.only[i] : b->o.begin + i;
    if (b->o.in_order)
        return;
    const heed_rng rng = stream(b, epoch, FOR_ORDER, 0);
    for (int64_t i = b->o.count - 1; i > 0; i--) {
        const int64_t j = heed_rng_below(&rng, (uint64_t)i, i + 1), kept = b->order[i];
        b->order[i] = b->order[j];
        b->order[j] = kept;
    }
}

static heed__movement movement(const heed_picture_batches *b, int64_t epoch, int64_t picture)
{
    const heed_picture_augment *a = &b->o.augment;
    const heed_rng rng = stream(b, epoch, FOR_PICTURE, picture);
    double d[4];
    for (int i = 0; i < 4; i++)
        d[i] = 2 * heed_rng_uniform(&rng, (uint64_t)i) - 1;
    return (heed__movement){.turn = d[0] * a->turn * RADIANS,
                            .zoom = exp(d[1] * log(1 + a->zoom)),
                            .down = d[2] * a->shift * (double)b->report.height,
                            .right = d[3] * a->shift * (double)b->report.width,
                            .mirror = a->mirror && heed_rng_bits(&rng, 4) & 1};
}

static heed_status make_picture(heed_picture_batches *b, slot *s, int64_t k, int64_t picture)
{
    const heed_pictures_report *r = &b->report;
    const heed_picture_augment *a = &b->o.augment;
    const int64_t size = r->height * r->width * r->channels;
    heed_real *to = s->features + k * size;
    s->example[k] = picture;
    s->labels[k] = (int32_t)heed_pictures_label(b->set, picture);
    heed_status status = heed_pictures_load(b->set, picture, b->pixels, &s->err);
    if (status)
        return status;
    if (a->turn > 0 || a->zoom > 0 || a->shift > 0 || a->mirror) {
        const heed__movement m = movement(b, s->position.epoch, picture);
        heed__image_move(b->pixels, to, r->height, r->width, r->channels, &m);
    } else {
        for (int64_t i = 0; i < size; i++)
            to[i] = b->pixels[i];
    }
    const double scale = 1 / (255 * b->o.deviation), shift = -b->o.mean / b->o.deviation;
    for (int64_t i = 0; i < size; i++)
        to[i] = (heed_real)((double)to[i] * scale + shift);
    return HEED_OK;
}

static void make(heed_picture_batches *b, slot *s, heed_picture_position p)
{
    s->position = p;
    s->count = 0;
    s->err.status = HEED_OK;
    if (b->o.epochs && p.epoch >= b->o.epochs)
        return;
    make_order(b, p.epoch);
    const int64_t first = p.batch * b->o.batch, left = b->o.count - first;
    s->count = left < b->o.batch ? left : b->o.batch;
    for (int64_t k = 0; k < s->count; k++)
        if (make_picture(b, s, k, b->order[first + k]))
            return;
}

static heed_picture_position after(const heed_picture_batches *b, heed_picture_position p)
{
    return p.batch + 1 < b->per_epoch ? (heed_picture_position){p.epoch, p.batch + 1}
                                      : (heed_picture_position){p.epoch + 1, 0};
}

static void *run(void *context)
{
    heed_picture_batches *b = context;
    heed_picture_position p = b->begin;
    slot *s = NULL;
    for (int64_t n = 0; !s || (s->count && !s->err.status); n++) {
        pthread_mutex_lock(&b->lock);
        while (!b->stop && b->made - b->returned == AHEAD)
            pthread_cond_wait(&b->changed, &b->lock);
        const bool stop = b->stop;
        pthread_mutex_unlock(&b->lock);
        if (stop)
            break;
        make(b, s = &b->slots[n % AHEAD], p);
        p = after(b, p);
        pthread_mutex_lock(&b->lock);
        b->made++;
        pthread_cond_broadcast(&b->changed);
        pthread_mutex_unlock(&b->lock);
    }
    return NULL;
}

/* ---- the caller's thread ---- */

static void stop_thread(heed_picture_batches *b)
{
    if (!b->running)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    b->running = false;
}

static heed_status start_thread(heed_picture_batches *b, heed_picture_position p, heed_error *err)
{
    stop_thread(b);
    b->stop = false;
    b->made = b->returned = 0;
    b->taken = NULL;
    b->begin = b->at = p;
    b->failed.status = HEED_OK;
    const int number = pthread_create(&b->thread, NULL, run, b);
    if (number)
        return heed__fail(err, HEED_MEMORY, "cannot start the thread that makes batches: %s",
                          strerror(number));
    b->running = true;
    return HEED_OK;
}

heed_status heed_picture_batches_next(heed_picture_batches *b, heed_picture_batch *batch,
                                      heed_error *err)
{
    if (!b)
        return heed__missing(err, "picture batches");
    *batch = (heed_picture_batch){0};
    if (b->failed.status)
        return heed__fail(err, b->failed.status, "%s", b->failed.text);
    pthread_mutex_lock(&b->lock);
    /* The last one stays at the end. */
    if (b->taken && b->taken->count) {
        b->taken = NULL;
        b->returned++;
        pthread_cond_broadcast(&b->changed);
    }
    while (b->running && b->made == b->returned)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
    if (!b->running)
        return heed__fail(err, HEED_STATE, "the thread that makes batches does not run");
    const slot *s = b->taken = &b->slots[b->returned % AHEAD];
    if (s->err.status) {
        b->failed = s->err;
        return heed__fail(err, s->err.status, "%s", s->err.text);
    }
    *batch = (heed_picture_batch){.epoch = s->position.epoch,
                                  .count = s->count,
                                  .features = s->features,
                                  .labels = s->labels,
                                  .example = s->example};
    b->at = s->count ? after(b, s->position) : s->position;
    return HEED_OK;
}

heed_picture_position heed_picture_batches_tell(const heed_picture_batches *b)
{
    if (!b)
        return (heed_picture_position){0};
    return b->at;
}

heed_status heed_picture_batches_seek(heed_picture_batches *b, heed_picture_position p,
                                      heed_error *err)
{
    if (!b)
        return heed__missing(err, "picture batches");
    const int64_t epochs = b->o.epochs;
    const bool end = epochs && p.epoch == epochs && p.batch == 0;
    if (p.epoch < 0 || p.batch < 0 || p.batch >= b->per_epoch ||
        (epochs && p.epoch >= epochs && !end))
        return heed__fail(err, HEED_ARGUMENT,
                          "cannot go to epoch %lld, batch %lld: there are %lld epochs (0: no end) "
                          "of %lld batches",
                          (long long)p.epoch, (long long)p.batch, (long long)epochs,
                          (long long)b->per_epoch);
    return start_thread(b, p, err);
}

static bool in_range(const heed_picture_batches_options *o, int64_t count)
{
    const heed_picture_augment *a = &o->augment;
    for (int64_t i = 0; o->only && i < o->count; i++)
        if (o->only[i] < 0 || o->only[i] >= count)
            return false;
    return o->batch >= 1 && o->begin >= 0 && o->count >= 1 && o->begin <= count - o->count &&
           o->epochs >= 0 && o->deviation > 0 && a->turn >= 0 && a->turn <= 180 && a->zoom >= 0 &&
           a->zoom <= 1 && a->shift >= 0 && a->shift <= 1;
}

static heed_status allocate(heed_picture_batches *b, heed_error *err)
{
    const int64_t size = b->report.height * b->report.width * b->report.channels;
    const int64_t batch = b->o.batch < b->o.count ? b->o.batch : b->o.count;
    int64_t all;
    bool whole =
        heed__multiply(size, batch, &all) && heed__multiply(all, (int64_t)sizeof(heed_real), &all);
    b->arena = whole ? heed_arena_new(&b->allocator, err) : NULL;
    whole = b->arena != NULL;
    for (int i = 0; whole && i < AHEAD; i++) {
        slot *s = &b->slots[i];
        s->features = heed_arena_allocate(b->arena, (size_t)all);
        s->labels = heed_arena_allocate(b->arena, (size_t)batch * sizeof *s->labels);
        s->example = heed_arena_allocate(b->arena, (size_t)batch * sizeof *s->example);
        whole = s->features && s->labels && s->example;
    }
    if (whole) {
        b->order = heed_arena_allocate(b->arena, (size_t)b->o.count * sizeof *b->order);
        b->pixels = heed_arena_allocate(b->arena, (size_t)size);
        whole = b->order && b->pixels;
    }
    return whole ? HEED_OK
                 : heed__fail(err, HEED_MEMORY, "out of memory for batches of %lld pictures",
                              (long long)b->o.batch);
}

heed_picture_batches *heed_picture_batches_new(const heed_pictures *p,
                                               const heed_picture_batches_options *options,
                                               const heed_allocator *allocator, heed_error *err)
{
    if (!p)
        return heed__missing(err, "pictures"), NULL;
    const heed_allocator a = heed__allocator_or_default(allocator);
    const heed_pictures_report report = heed_pictures_describe(p);
    heed_picture_batches_options o = *options;
    o.count = o.count ? o.count : report.count - o.begin;
    o.deviation = o.deviation == 0 ? 1 : o.deviation;
    if (!in_range(&o, report.count)) {
        heed__fail(err, HEED_ARGUMENT,
                   "batches of %lld out of pictures %lld to %lld of %lld cannot be made: expected "
                   "at least 1 of pictures that exist, deviation above 0, turn 0 to 180, zoom and "
                   "shift 0 to 1",
                   (long long)o.batch, (long long)o.begin, (long long)(o.begin + o.count),
                   (long long)report.count);
        return NULL;
    }
    heed_picture_batches *b = heed__allocate_zeroed(&a, 1, sizeof *b);
    if (!b) {
        heed__fail(err, HEED_MEMORY, "out of memory for batches of pictures");
        return NULL;
    }
    b->allocator = a;
    b->set = p;
    b->report = report;
    b->o = o;
    b->per_epoch = (o.count + o.batch - 1) / o.batch;
    b->ordered = -1;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    if (allocate(b, err) || start_thread(b, (heed_picture_position){0, 0}, err)) {
        heed_picture_batches_free(b);
        return NULL;
    }
    return b;
}

void heed_picture_batches_free(heed_picture_batches *b)
{
    if (!b)
        return;
    const heed_allocator a = b->allocator;
    stop_thread(b);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    heed_arena_free(b->arena);
    heed__release(&a, b, 1, sizeof *b);
}
