/* see.h: networks that see: a caption for a picture (Show, Attend and Tell), and where each of its
 * words looks; and how well a picture and a text match, which of its parts each word means.
 *
 *     heed_captioner *c = heed_captioner_open("m", 1, NULL, &err);
 *     heed_captioner_tell(c, &image, &(heed_caption_options){.beam = 5}, arena, &caption, &err);
 *     puts(caption.text);
 *
 * In libheed-files, as image.h. */
#ifndef HEED_SEE_H
#define HEED_SEE_H

#include <heed/attention.h>
#include <heed/image.h>
#include <heed/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "caption", "retrieve" or "vit": what the network of a model directory is for, by its config.json;
 * NULL: it is none that sees.  The text is a constant. */
const char *heed_see_arch(const char *folder);

/* ---- from a picture to places ---- */

/* Convolutions of 3 x 3, each with batch norm and ReLU: `stages` of them halve the picture and
 * double the filters, one more leaves it as it is.  What comes out is a grid of places, (B*L,A):
 * the annotation vectors a_i of section 3.1.1, trained with the rest. */
#define HEED_GRID_STAGES 6
typedef struct heed_grid_options {
    int64_t height, width, channels;
    int64_t stages, filters; /* filters of the first one */
} heed_grid_options;
typedef struct heed_grid_layer {
    heed_grid_options options;
    heed_image_size size; /* L = y x */
    int64_t d;            /* A: columns of a place */
    heed_tensor *weight[HEED_GRID_STAGES + 1];
    heed_norm_layer norm[HEED_GRID_STAGES + 1];
} heed_grid_layer;
void heed_grid_build(heed_grid_layer *l, heed_scope s, const heed_grid_options *options);
/* pixels (B*height*width, channels), from -1 to 1. */
heed_tensor *heed_grid_apply(heed_tape *t, const heed_grid_layer *l, heed_tensor *pixels);

/* ---- Show, Attend and Tell ---- */

typedef enum heed_caption_look {
    HEED_LOOK_SOFT,  /* z: the mean of the places, weighed by attention */
    HEED_LOOK_HARD,  /* one place, drawn in training, else the likeliest */
    HEED_LOOK_MEAN,  /* no attention: the mean of all places, the same for each word */
    HEED_LOOK_BLIND, /* no picture at all */
} heed_caption_look;
typedef struct heed_caption_config {
    int arch;                /* 0: "caption", the only one */
    int64_t side;            /* pictures are scaled to side x side pixels */
    int64_t channels;        /* 1: grey, 3: RGB */
    int64_t stages, filters; /* of the grid of places */
    int look;                /* heed_caption_look */
    int64_t embedding, d;    /* columns of words, of the LSTM */
    bool gate;               /* z is multiplied with beta_t = sigmoid(f(h)) */
    double doubly;           /* lambda of sum_i (1 - sum_t alpha_ti)^2; 0: none */
    double reward, entropy;  /* hard: lambda_r, lambda_e */
    double expectation;      /* hard: the share of captions that are trained with the mean */
    double dropout;
    int64_t vocabulary; /* filled in */
} heed_caption_config;
#define HEED_CAPTION_MODEL_OPTIONS(owner, at)                                                      \
    HEED_OPTION_CHOICE(owner, at.arch, "arch", "caption", HEED_WORDS("caption"),                   \
                       "Show, Attend and Tell (Xu et al. 2015)"),                                  \
        HEED_OPTION_INT(owner, at.side, "side", "96", 8, 1024, "N",                                \
                        "pictures are scaled to N x N pixels"),                                    \
        HEED_OPTION_INT(owner, at.channels, "channels", "3", 1, 3, "N", "1: grey; 3: colours"),    \
        HEED_OPTION_INT(owner, at.stages, "stages", "3", 1, HEED_GRID_STAGES, "N",                 \
                        "convolutions that halve the picture; attention looks at what is left"),   \
        HEED_OPTION_INT(owner, at.filters, "filters", "32", 1, 1024, "N",                          \
                        "of the first convolution; each one has twice those of the one before"),   \
        HEED_OPTION_CHOICE(owner, at.look, "look", "soft",                                         \
                           HEED_WORDS("soft", "hard", "mean", "blind"),                            \
                           "a weighed mean of the places, one of them by REINFORCE; without "      \
                           "attention: the mean of all; without the picture"),                     \
        HEED_OPTION_INT(owner, at.embedding, "embedding", "128", 1, 4096, "N",                     \
                        "columns of a word"),                                                      \
        HEED_OPTION_INT(owner, at.d, "d", "256", 1, 8192, "N", "units of the LSTM"),               \
        HEED_OPTION_BOOL(owner, at.gate, "gate", "true",                                           \
                         "each word decides how much the picture says"),                           \
        HEED_OPTION_REAL(owner, at.doubly, "doubly", "1", 0, 100, "L",                             \
                         "weight of looking at every place at some time; 0: none"),                \
        HEED_OPTION_REAL(owner, at.reward, "reward", "0.2", 0, 100, "L", "hard: of REINFORCE"),    \
        HEED_OPTION_REAL(owner, at.entropy, "entropy", "0.002", 0, 100, "L",                       \
                         "hard: of the entropy of attention"),                                     \
        HEED_OPTION_REAL(owner, at.expectation, "expectation", "0.5", 0, 1, "P",                   \
                         "hard: share of the captions that are trained with the mean"),            \
        HEED_OPTION_REAL(owner, at.dropout, "dropout", "0.3", 0, 0.9, "P", "dropout")
typedef struct heed_caption_net {
    heed_caption_config config;
    heed_grid_layer grid;
    heed_tensor *words;                  /* E (V,embedding) */
    heed_linear_layer start_h, start_c;  /* of the mean of the places */
    heed_attend_layer attend;            /* f_att */
    heed_linear_layer gate;              /* beta */
    heed_linear_layer input, from_place; /* to the LSTM's gates */
    heed_tensor *recurrent;
    heed_linear_layer say_word, say_state, say_place; /* deep output */
    heed_tensor *out, *bias;                          /* L_o (V,embedding), (V) */
    heed_reinforce_layer choice;
} heed_caption_net;
void heed_caption_build(heed_caption_net *m, heed_scope s, const heed_caption_config *config);

/* Captions of pictures; a picture may have several. */
typedef struct heed_caption_batch {
    const heed_real *pixels; /* (pictures*height*width, channels) */
    int64_t pictures;
    const heed_segments *rows; /* one for each caption */
    const int32_t *picture;    /* (captions) */
    const int32_t *read;       /* (N) the start mark, w1 .. wn */
    const int32_t *wanted;     /* (N) w1 .. wn, the end mark */
    const uint8_t *expect;     /* hard: (captions), whether it is trained with the mean, or NULL */
} heed_caption_batch;
/* weight * (the sum over words of - log p, and what the configuration adds while the tape trains);
 * nll, unless it is NULL, receives the sum alone.  looks, unless it is NULL, receives where each
 * row looks, (N,L), NULL without attention. */
heed_tensor *heed_caption_loss(heed_tape *t, const heed_caption_net *m, const heed_caption_batch *b,
                               double weight, double *nll, heed_tensor **looks);

/* A caption that is found.  Of drawn or forced ones, too. */
typedef struct heed_caption {
    const int32_t *id; /* without marks */
    int64_t count;
    double log_p, score;      /* the end mark counted; divided by the number of tokens */
    const heed_real *weights; /* (count + 1, L): where each word, and the end, looked; or NULL */
    const char *text;         /* of a captioner, else NULL */
} heed_caption;
typedef struct heed_caption_options {
    int64_t beam;    /* 0 means 3; 1 is greedy */
    int64_t longest; /* words; 0 means 30 */
    int32_t start, end,
        unknown; /* marks; the unknown word is never said; of a captioner not used */
} heed_caption_options;
/* For one picture, on a tape that neither trains nor records; the tape is reset. */
heed_status heed_caption_find(heed_tape *t, const heed_caption_net *m, const heed_real *pixels,
                              const heed_caption_options *o, heed_arena *arena, heed_caption *out,
                              heed_error *err);

/* ---- pictures and texts that ask each other ---- */

/* Stacked cross attention (Lee et al. 2018): the places v of a picture and the words w of a text
 * are vectors of one space.  Each word asks the picture, and each place asks the text:
 *     s(word) = cos(w, sum_i p_i v_i),   p = softmax_i(sharpness cos(w, v_i))
 * and the other way round; the score of a pair is the mean over its words and over its places. */
typedef struct heed_match_config {
    int arch;                                /* 0: "retrieve", the only one */
    int64_t side, channels, stages, filters; /* as in heed_caption_config */
    int64_t vocabulary, embedding;
    int64_t d;        /* of the space; even */
    double sharpness; /* of attention; 0 means 9 */
    double contrast;  /* scores are multiplied with it in the loss; 0 means 20 */
    double dropout;
} heed_match_config;
#define HEED_MATCH_MODEL_OPTIONS(owner, at)                                                        \
    HEED_OPTION_CHOICE(owner, at.arch, "arch", "retrieve", HEED_WORDS("retrieve"),                 \
                       "stacked cross attention (Lee et al. 2018)"),                               \
        HEED_OPTION_INT(owner, at.side, "side", "96", 8, 1024, "N",                                \
                        "pictures are scaled to N x N pixels"),                                    \
        HEED_OPTION_INT(owner, at.channels, "channels", "3", 1, 3, "N", "1: grey; 3: colours"),    \
        HEED_OPTION_INT(owner, at.stages, "stages", "4", 1, HEED_GRID_STAGES, "N",                 \
                        "convolutions that halve the picture; words look at what is left"),        \
        HEED_OPTION_INT(owner, at.filters, "filters", "32", 1, 1024, "N",                          \
                        "of the first convolution; each one has twice those of the one before"),   \
        HEED_OPTION_INT(owner, at.embedding, "embedding", "128", 1, 4096, "N",                     \
                        "columns of a word"),                                                      \
        HEED_OPTION_INT(owner, at.d, "d", "128", 2, 8192, "N",                                     \
                        "columns of the space of words and places; even"),                         \
        HEED_OPTION_REAL(owner, at.sharpness, "sharpness", "9", 0.01, 1000, "X",                   \
                         "of attention between them"),                                             \
        HEED_OPTION_REAL(owner, at.contrast, "contrast", "20", 0.01, 1000, "X",                    \
                         "what scores are multiplied with in the loss"),                           \
        HEED_OPTION_REAL(owner, at.dropout, "dropout", "0.2", 0, 0.9, "P", "dropout")
typedef struct heed_match_net {
    heed_match_config config;
    heed_grid_layer grid;
    heed_linear_layer place; /* (A,d) */
    heed_tensor *words;      /* (V,embedding) */
    heed_rnn_layer reader;   /* GRU both ways */
} heed_match_net;
void heed_match_build(heed_match_net *m, heed_scope s, const heed_match_config *config);
/* (pictures*L,d) and (N,d). */
heed_tensor *heed_match_places(heed_tape *t, const heed_match_net *m, const heed_real *pixels,
                               int64_t pictures);
heed_tensor *heed_match_words(heed_tape *t, const heed_match_net *m, const int32_t *ids,
                              const heed_segments *rows);
/* Every picture with every text: (pictures, texts), from -1 to 1. */
heed_tensor *heed_match_scores(heed_tape *t, const heed_match_net *m, heed_tensor *places,
                               int64_t pictures, heed_tensor *words, const heed_segments *rows);
/* Contrast: text i belongs to picture i and to no other.  weight * the sum over pictures and texts
 * of - log softmax of its own partner. */
heed_tensor *heed_match_loss(heed_tape *t, const heed_match_net *m, const heed_real *pixels,
                             const int32_t *ids, const heed_segments *rows, double weight);
/* Of one picture and one text: where each word looks (words,L), and which words each place means
 * (L,words). */
bool heed_match_looks(heed_tape *t, const heed_match_net *m, heed_tensor *places,
                      heed_tensor *words, const heed_real **word_looks,
                      const heed_real **place_looks);

/* Of scores (n,n): how many of 100 find their partner among their first `within`; pictures: texts
 * look for pictures, else pictures for texts. */
double heed_match_recall(const heed_real *scores, int64_t n, bool pictures, int64_t within);

/* ---- the same at work: a model directory of `heed train --arch retrieve` ---- */

/* One thread at a time. */
typedef struct heed_retriever heed_retriever;
heed_retriever *heed_retriever_open(const char *folder, int threads,
                                    const heed_allocator *allocator, heed_error *err);
void heed_retriever_free(heed_retriever *r);
/* One more picture, of any size, to look among. */
heed_status heed_retriever_add(heed_retriever *r, const heed_image *image, heed_error *err);
/* The text's score with each picture, in the order in which they were added; in the arena. */
heed_status heed_retriever_find(heed_retriever *r, const char *text, heed_arena *arena,
                                const heed_real **scores, heed_error *err);
/* The picture once for each word, bright where that word looks, and once for each of its quarters,
 * with the word that the quarter means most. */
heed_status heed_retriever_svg(heed_retriever *r, const heed_image *image, const char *text,
                               heed_arena *arena, const char **svg, heed_error *err);

/* ---- a captioner: a model directory of `heed train --arch caption` ---- */

/* One thread at a time. */
typedef struct heed_captioner heed_captioner;
heed_captioner *heed_captioner_open(const char *folder, int threads,
                                    const heed_allocator *allocator, heed_error *err);
void heed_captioner_free(heed_captioner *c);
const heed_caption_net *heed_captioner_net(const heed_captioner *c);
/* A caption for a picture of any size; text and the rest live in the arena. */
heed_status heed_captioner_tell(heed_captioner *c, const heed_image *image,
                                const heed_caption_options *o, heed_arena *arena, heed_caption *out,
                                heed_error *err);
/* Where each word of a given caption, and its end, looks: out->weights; unknown words are refused
 * with their names. */
heed_status heed_captioner_read(heed_captioner *c, const heed_image *image, const char *text,
                                heed_arena *arena, heed_caption *out, heed_error *err);
/* The words of a caption as labels, "." for its end last. */
heed_status heed_captioner_words(const heed_captioner *c, const heed_caption *caption,
                                 heed_arena *arena, const char *const **words, heed_error *err);
/* The paper's figure 7: the picture once for each word, what it looked at bright. */
heed_status heed_captioner_svg(heed_captioner *c, const heed_image *image,
                               const heed_caption *caption, heed_arena *arena, const char **svg,
                               heed_error *err);

/* ---- training ---- */

/* The words in HEED_CAPTION_OPTIONS say what each is. */
typedef struct heed_caption_train_options {
    const char *captions, *images, *valid_captions, *valid_images;
    int64_t hold_out, vocab_min_count, vocab_size, batch;
    bool mirror;
    heed_loop_options loop;
} heed_caption_train_options;
#define HEED_CAPTION_OPTIONS(owner, at)                                                            \
    HEED_OPTION_TEXT(owner, at.captions, "captions", NULL, "F.tsv",                                \
                     "FILE TAB CAPTION [TAB CAPTION ...], a line for each picture"),               \
        HEED_OPTION_TEXT(owner, at.images, "images", NULL, "DIR|TAR.GZ",                           \
                         "where its pictures are: a folder, .tar or .tar.gz"),                     \
        HEED_OPTION_TEXT(owner, at.valid_captions, "valid-captions", NULL, "F.tsv",                \
                         "the same to validate with"),                                             \
        HEED_OPTION_TEXT(owner, at.valid_images, "valid-images", NULL, "DIR|TAR.GZ",               \
                         "its pictures; those of --images if not given"),                          \
        HEED_OPTION_INT(owner, at.hold_out, "hold-out", "0", 0, 1000000, "N",                      \
                        "without --valid-captions: hold out the last N pictures; 0: a twentieth"), \
        HEED_OPTION_INT(owner, at.vocab_min_count, "vocab-min-count", "3", 1, 1000000, "N",        \
                        "rarer words are unknown"),                                                \
        HEED_OPTION_INT(owner, at.vocab_size, "vocab-size", "0", 0, 10000000, "N",                 \
                        "words at most; 0: all"),                                                  \
        HEED_OPTION_INT(owner, at.batch, "batch", "16", 1, 100000, "N", "pictures in a batch"),    \
        HEED_OPTION_BOOL(owner, at.mirror, "mirror", "true",                                       \
                         "show pictures mirrored, too, while training"),                           \
        HEED_LOOP_OPTIONS(owner, at.loop)
/* What it has otherwise than HEED_LOOP_OPTIONS: for option sets. */
#define HEED_CAPTION_DEFAULTS                                                                      \
    "schedule", "cosine", "rate", "0.001", "rate-floor", "0.00001", "warmup", "100",               \
        "max-updates", "6000", "beta2", "0.999", "eps", "1e-8", "clip", "5"
typedef struct heed_caption_recipe {
    heed_caption_config model;
    heed_caption_train_options train;
} heed_caption_recipe;
/* Reads captions and pictures and learns the vocabulary.  The folder must not exist or be empty; it
 * appears, complete, when run begins. */
heed_trainer *heed_caption_trainer_new(const char *folder, const heed_caption_recipe *recipe,
                                       const heed_train_hooks *hooks,
                                       const heed_allocator *allocator, heed_error *err);
/* Goes on from the newest whole save.  recipe: NULL, or the stored one with other limits. */
heed_trainer *heed_caption_trainer_resume(const char *folder, const heed_caption_recipe *recipe,
                                          const heed_train_hooks *hooks,
                                          const heed_allocator *allocator, heed_error *err);
/* The data of a trainer made by one of these two; all zero of any other. */
typedef struct heed_caption_report {
    int64_t pictures, valid_pictures, captions, vocabulary;
} heed_caption_report;
heed_caption_report heed_caption_trainer_report(const heed_trainer *t);

/* Pictures and texts that find each other learn from the same data, with the same options. */
#define HEED_MATCH_DEFAULTS HEED_CAPTION_DEFAULTS, "batch", "32"
typedef struct heed_match_recipe {
    heed_match_config model;
    heed_caption_train_options train;
} heed_match_recipe;
heed_trainer *heed_match_trainer_new(const char *folder, const heed_match_recipe *recipe,
                                     const heed_train_hooks *hooks, const heed_allocator *allocator,
                                     heed_error *err);
heed_trainer *heed_match_trainer_resume(const char *folder, const heed_match_recipe *recipe,
                                        const heed_train_hooks *hooks,
                                        const heed_allocator *allocator, heed_error *err);
heed_caption_report heed_match_trainer_report(const heed_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
