/* vit.h: the Vision Transformer: which of some classes a picture is of, and where it looks.
 *
 *     heed_vit *v = heed_vit_open("m", 1, NULL, &err);
 *     heed_vit_classify(v, &image, 1, arena, &p, &err);
 *     puts(heed_vit_labels(v).text[0]);
 *
 * In libheed-files, as image.h. */
#ifndef HEED_VIT_H
#define HEED_VIT_H

#include <heed/image.h>
#include <heed/stack.h>
#include <heed/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the network ---- */

#define HEED_VIT_LAYERS 48
typedef struct heed_vit_config {
    int arch;                      /* 0: "vit", the only one */
    int64_t side, channels, patch; /* side x side pixels, in patches of patch x patch */
    int64_t d, ff, layers, heads;
    double dropout;
    bool positions;  /* false: the order of the patches says nothing */
    int64_t classes; /* filled in */
} heed_vit_config;
#define HEED_VIT_MODEL_OPTIONS(owner, at)                                                          \
    HEED_OPTION_CHOICE(owner, at.arch, "arch", "vit", HEED_WORDS("vit"),                           \
                       "Vision Transformer (Dosovitskiy et al. 2021)"),                            \
        HEED_OPTION_INT(owner, at.side, "side", "0", 0, 1024, "N",                                 \
                        "pictures are scaled to N x N pixels; 0: as the first picture is, if "     \
                        "that is a small square, else a size up to 64"),                           \
        HEED_OPTION_INT(owner, at.channels, "channels", "0", 0, 3, "N",                            \
                        "1: grey; 3: colours; 0: as the first picture is"),                        \
        HEED_OPTION_INT(owner, at.patch, "patch", "0", 0, 1024, "N",                               \
                        "pixels in a line of a patch; 0: so that there are up to 8 in a line"),    \
        HEED_OPTION_INT(owner, at.d, "d", "96", 2, 8192, "N", "width of the model"),               \
        HEED_OPTION_INT(owner, at.ff, "ff", "192", 1, 65536, "N", "width of the MLP"),             \
        HEED_OPTION_INT(owner, at.layers, "layers", "6", 1, HEED_VIT_LAYERS, "N", "layers"),       \
        HEED_OPTION_INT(owner, at.heads, "heads", "4", 1, 256, "N", "heads of attention"),         \
        HEED_OPTION_REAL(owner, at.dropout, "dropout", "0.1", 0, 0.9, "P", "dropout"),             \
        HEED_OPTION_BOOL(owner, at.positions, "positions", "true",                                 \
                         "learn an embedding of each patch's position")
typedef struct heed_vit_net {
    heed_vit_config config;
    heed_tensor *patch, *patch_bias; /* E (patch*patch*C,D) and its bias (D) */
    heed_tensor *start;              /* x_class (1,D) */
    heed_tensor *positions;          /* E_pos (1+P,D), or NULL */
    heed_stack stack;
    heed_linear_layer head;
} heed_vit_net;
/* Patches in a line; a picture has the square of that. */
int64_t heed_vit_patches(const heed_vit_config *c);
/* arena holds the list of layers as long as the network is used. */
void heed_vit_build(heed_vit_net *m, heed_scope s, const heed_vit_config *config,
                    heed_arena *arena);
/* pixels (B*side*side,C) -> logits (B,classes); recorder may be NULL. */
heed_tensor *heed_vit_logits(heed_tape *t, const heed_vit_net *m, heed_tensor *pixels,
                             heed_attention_recorder *recorder);
/* Attention roll-out (Abnar and Zuidema 2020): how much of each patch arrives in the class row, out
 * (B,P).  False when memory is short. */
bool heed_vit_rollout(heed_tape *t, const heed_attention_recorder *recorder, heed_real *out);
/* In place: the least of n weights, which every patch has, taken from all, so that a picture shows
 * what differs. */
void heed_vit_above_least(heed_real *weights, int64_t n);
/* The paper's figure 7: for each patch, how alike the other positions' embeddings are to its
 * own. */
heed_status heed_vit_positions_svg(const heed_vit_net *m, heed_arena *arena, const char **svg,
                                   heed_error *err);

/* ---- at work: a model directory of `heed train --arch vit` ---- */

/* One thread at a time. */
typedef struct heed_vit heed_vit;
heed_vit *heed_vit_open(const char *folder, int threads, const heed_allocator *allocator,
                        heed_error *err);
void heed_vit_free(heed_vit *v);
const heed_vit_net *heed_vit_network(const heed_vit *v);
/* The names of the classes, (*count); they live as long as v. */
const char *const *heed_vit_labels(const heed_vit *v, int64_t *count);
/* Of pictures of any size, which are scaled: p (count, classes), in the arena. */
heed_status heed_vit_classify(heed_vit *v, const heed_image *images, int64_t count,
                              heed_arena *arena, const heed_real **p, heed_error *err);
/* The picture, and beside it the picture bright where the class row's attention comes from. */
heed_status heed_vit_looks_svg(heed_vit *v, const heed_image *image, heed_arena *arena,
                               const char **svg, heed_error *err);
/* Which class of the model each class of a set is: in the arena.  Refuses one that the model does
 * not have, by name. */
heed_status heed_vit_match_classes(const heed_vit *v, const heed_pictures *p, heed_arena *arena,
                                   const int32_t **label, heed_error *err);

/* ---- training ---- */

/* The words in HEED_VIT_OPTIONS say what each is. */
typedef struct heed_vit_train_options {
    const char *images, *valid_images;
    heed_option_list idx, valid_idx;
    double hold_out;
    int64_t batch;
    double turn, zoom, shift;
    bool mirror;
    double label_smoothing;
    heed_loop_options loop;
} heed_vit_train_options;
#define HEED_VIT_OPTIONS(owner, at)                                                                \
    HEED_OPTION_TEXT(owner, at.images, "images", NULL, "DIR",                                      \
                     "a folder for each class, its pictures inside (PNG, JPEG, PPM)"),             \
        HEED_OPTION_WORDS(owner, at.idx, "idx", 2, "IMAGES LABELS",                                \
                          "in place of --images: two IDX files, plain or gzip, as MNIST's"),       \
        HEED_OPTION_TEXT(owner, at.valid_images, "valid-images", NULL, "DIR",                      \
                         "folders of the same classes to validate with"),                          \
        HEED_OPTION_WORDS(owner, at.valid_idx, "valid-idx", 2, "IMAGES LABELS",                    \
                          "IDX files to validate with"),                                           \
        HEED_OPTION_REAL(owner, at.hold_out, "hold-out", "0.1", 0.001, 0.9, "P",                   \
                         "without pictures to validate with: hold out this share of each class, "  \
                         "one picture at least"),                                                  \
        HEED_OPTION_INT(owner, at.batch, "batch", "64", 1, 100000, "N", "pictures in a batch"),    \
        HEED_OPTION_REAL(owner, at.turn, "turn", "10", 0, 180, "X",                                \
                         "training pictures are turned by up to X degrees"),                       \
        HEED_OPTION_REAL(owner, at.zoom, "zoom", "0.1", 0, 1, "X",                                 \
                         "and enlarged or reduced by up to this share"),                           \
        HEED_OPTION_REAL(owner, at.shift, "shift", "0.07", 0, 1, "X",                              \
                         "and moved by up to this share of their size"),                           \
        HEED_OPTION_BOOL(owner, at.mirror, "mirror", NULL, "and mirrored"),                        \
        HEED_OPTION_REAL(owner, at.label_smoothing, "label-smoothing", "0.1", 0, 0.9, "X",         \
                         "share of the probability that is spread over all classes"),              \
        HEED_LOOP_OPTIONS(owner, at.loop)
/* What it has otherwise than HEED_LOOP_OPTIONS: for option sets. */
#define HEED_VIT_DEFAULTS                                                                          \
    "optimizer", "adamw", "schedule", "cosine", "rate", "0.001", "rate-floor", "0.00001",          \
        "warmup", "100", "beta2", "0.999", "eps", "1e-8", "weight-decay", "0.05", "clip", "1"
typedef struct heed_vit_recipe {
    heed_vit_config model;
    heed_vit_train_options train;
    heed_option_origins origins; /* what was asked for; the rest follows from the data */
} heed_vit_recipe;
/* Opens the pictures and chooses what was not given.  The folder must not exist or be empty; it
 * appears, complete, when run begins. */
heed_trainer *heed_vit_trainer_new(const char *folder, const heed_vit_recipe *recipe,
                                   const heed_train_hooks *hooks, const heed_allocator *allocator,
                                   heed_error *err);
/* Goes on from the newest whole save.  recipe: NULL, or the stored one with other limits. */
heed_trainer *heed_vit_trainer_resume(const char *folder, const heed_vit_recipe *recipe,
                                      const heed_train_hooks *hooks,
                                      const heed_allocator *allocator, heed_error *err);
/* Fills in what heed_vit_trainer_new would choose, and says it. */
heed_status heed_vit_recipe_choose(heed_vit_recipe *recipe, const heed_log_sink *log,
                                   const heed_allocator *allocator, heed_error *err);
/* The data of a trainer made by one of these; all zero of any other. */
typedef struct heed_vit_report {
    int64_t pictures, valid_pictures, classes, side, channels;
} heed_vit_report;
heed_vit_report heed_vit_trainer_report(const heed_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
