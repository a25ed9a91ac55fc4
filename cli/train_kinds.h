/* train_kinds.h: what `heed train` can train: a table with a row for each kind of training.
 *
 * A kind is one file cli/train_NAME.c with its row, `const train_kind train_kind_NAME`, and its
 * options, `const heed_option_set train_NAME_options`, and a line in TRAIN_OTHERS_LIST.  NAME is
 * the last word of the options' command.  cmd_train.c does the rest for all: words, signals,
 * progress, forecast, summary.  Help, manual page, completion and docs/OPTIONS.md follow from the
 * rows. */
#ifndef HEED_CLI_TRAIN_KINDS_H
#define HEED_CLI_TRAIN_KINDS_H

#include "command.h"

#include <heed/see.h>

/* What the settings of every kind begin with. */
struct train_common {
    const char *folder, *resume;
    bool dry_run, json;
};
#define TRAIN_COMMON_OPTIONS(owner, at)                                                            \
    HEED_OPTION_TEXT(owner, at.folder, "model", NULL, "DIR",                                       \
                     "where the model is made; must not be there yet"),                            \
        HEED_OPTION_TEXT(owner, at.resume, "resume", NULL, "DIR",                                  \
                         "go on with a training that was interrupted, or raise its limits"),       \
        HEED_OPTION_BOOL(owner, at.dry_run, "dry-run", NULL,                                       \
                         "check the data, say what training would need, and leave nothing "        \
                         "behind"),                                                                \
        HEED_OPTION_BOOL(owner, at.json, "json", NULL,                                             \
                         "results as JSON objects on stdout, one a line")

typedef struct train_kind {
    /* The words of --arch, and of --task, that choose this kind; ended by NULL.  tasks NULL: it has
     * no --task.  The options have `arch` (and `task`), so that training/options.json says which
     * kind a run is of. */
    const char *const *archs, *const *tasks;
    /* Of a struct that begins with struct train_common.  The first kind's command is "heed train",
     * any other's "heed train --arch WORD" (or "heed train --arch WORD --task WORD"). */
    const heed_option_set *options;
    size_t settings; /* bytes of that struct, which is zero before the options are read */
    /* The trainer, of common.resume if that is given, else a new one in common.folder. */
    heed_trainer *(*open)(void *settings, const invocation *in, const heed_train_hooks *hooks,
                          heed_error *err);
    /* Fills in what would be chosen, for --print-config, if there are data to choose for.  NULL:
     * nothing ever is. */
    heed_status (*choose)(void *settings, const invocation *in, const heed_log_sink *log,
                          heed_error *err);
    /* The data of a trainer, for --dry-run: lines of 16 columns of name and the rest; json: fields,
     * each with ", " behind it. */
    void (*report)(const heed_trainer *t, bool json);
    const char *speed; /* what the speed of --dry-run counts: "tokens/s, source and target" */
    const char *then;  /* what to try with the model, whose directory is put behind: "heed translate
                          --model" */
} train_kind;

/* The kinds beside translation, which is what `heed train` does where nothing says otherwise. */
#define TRAIN_OTHERS_LIST(X)                                                                       \
    X(decoder)                                                                                     \
    X(encoder)                                                                                     \
    X(caption)                                                                                     \
    X(retrieve)                                                                                    \
    X(vit)

/* What --dry-run says of captioned pictures. */
void train_report_captions(heed_caption_report r, bool json);

#define TRAIN_KIND_LIST(X)                                                                         \
    X(translation)                                                                                 \
    TRAIN_OTHERS_LIST(X)
#define TRAIN_KIND_DECLARE(name) extern const train_kind train_kind_##name;
TRAIN_KIND_LIST(TRAIN_KIND_DECLARE)
#define TRAIN_OPTIONS_DECLARE(name) extern const heed_option_set train_##name##_options;
TRAIN_OTHERS_LIST(TRAIN_OPTIONS_DECLARE)

/* The kind that the words ask for: --arch and --task; else those that a stored run (--resume) or a
 * config file (--config) names; else a --preset that one kind alone has; else the architecture of
 * the model of --from; else the first.  NULL after saying what is wrong. */
const train_kind *train_kind_find(int argc, const char *const *argv);

#endif
