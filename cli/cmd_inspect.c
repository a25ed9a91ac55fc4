/* cmd_inspect.c: `heed inspect`: what a model directory holds. */
#include "cmd_inspect.h"
#include "cmd_models.h"
#include "command.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const heed_option fields[] = {
    MODEL_OPTION(struct inspect_settings),
    HEED_OPTION_TEXT(struct inspect_settings, attention, "attention", NULL, "TEXT",
                     "translate this sentence and show where the model looked; a language model "
                     "and an encoder look at it as it stands"),
    HEED_OPTION_TEXT(struct inspect_settings, target, "target", NULL, "TEXT",
                     "take this as the translation instead of the model's own"),
    HEED_OPTION_TEXT(struct inspect_settings, image, "image", NULL, "FILE",
                     "of a captioner: show where each word of this picture's caption looked, or of "
                     "the one that --attention gives; of a picture classifier: where it looks"),
    HEED_OPTION_TEXT(struct inspect_settings, output, "output", NULL, "FILE",
                     "write all heads to FILE, which ends in .svg or .html"),
    HEED_OPTION_CHOICE(struct inspect_settings, kind, "kind", "cross",
                       HEED_WORDS("encoder", "decoder", "cross"),
                       "with --layer and --head: which attention of a translation"),
    HEED_OPTION_INT(struct inspect_settings, layer, "layer", "0", 0, 256, "N",
                    "show this layer's head, from 1; 0: the heads that align best"),
    HEED_OPTION_INT(struct inspect_settings, head, "head", "0", 0, 1024, "N",
                    "which head of the layer, from 1"),
    HEED_OPTION_BOOL(struct inspect_settings, pieces, "pieces", NULL,
                     "show pieces as they are instead of joining them to words"),
    PROTECT_OPTION(struct inspect_settings),
    CAPITALS_OPTION(struct inspect_settings),
    HEED_OPTION_INT(struct inspect_settings, beam, "beam", "4", 1, 1000, "N",
                    "hypotheses kept while translating; 1 is greedy"),
    HEED_OPTION_INT(struct inspect_settings, width, "width", "0", 0, 10000, "N",
                    "columns of the terminal; 0: its width"),
    HEED_OPTION_CHOICE(struct inspect_settings, colour, "colour", "auto",
                       HEED_WORDS("auto", "always", "never"), "colours in the terminal"),
    HEED_OPTION_BOOL(struct inspect_settings, json, "json", NULL,
                     "print facts or weights as one JSON object"),
};
static const char *const examples[] = {
    "heed inspect --model m",
    "heed inspect --model m --attention 'A man is eating an apple.'",
    "heed inspect --model m --attention 'A green apple.' --output apple.html",
    "heed inspect --model m --attention 'Hello.' --layer 2 --head 1 --pieces",
    "heed inspect --model captioner --image photo.jpg --output looks.svg",
    "heed inspect --model lm --attention 'Once upon a time' --output a.html",
    NULL};
const heed_option_set inspect_options = {
    .command = "heed inspect",
    .summary = "Say what a model is made of, or show what its heads attend to",
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

static const char *const kinds[] = {"unigram",    "bpe",   "whitespace",
                                    "characters", "bytes", "wordpiece"};

/* ---- what there is to know ---- */

/* The parameters by the first part of their names: "encoder", "decoder". */
static json_t *parameters(const heed_params *p)
{
    json_t *parts = json_object();
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_param_info info = heed_params_entry(p, i);
        if (info.is_state)
            continue;
        const char *name = info.name;
        size_t n = strcspn(name, ".");
        /* An embedding is a part of its own, wherever it is declared. */
        const char *embedding = strstr(name, "embedding");
        char part[64];
        snprintf(part, sizeof part, "%.*s%s", (int)n, name,
                 embedding && embedding != name ? " embedding" : "");
        json_int_t before = json_integer_value(json_object_get(parts, part));
        json_object_set_new(parts, part,
                            json_integer(before + (json_int_t)heed_tensor_count(info.tensor)));
    }
    return parts;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The regular files of the folder itself. */
static json_t *files(const char *folder)
{
    json_t *found = json_object();
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            json_object_set_new(found, entry[i]->d_name, json_integer((json_int_t)st.st_size));
        free(entry[i]);
    }
    free(entry);
    return found;
}

static void take(json_t *to, const char *name, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (value)
        json_object_set(to, name, value);
}

/* What training/log.jsonl ends with; NULL if there is none. */
static json_t *training(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/training/log.jsonl", folder);
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    json_t *found = json_object();
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, f) > 0) {
        json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        take(found, "updates", event, "update");
        take(found, "epoch", event, "epoch");
        take(found, "seconds", event, "seconds");
        take(found, "metric", event, "metric");
        take(found, "best", event, "best");
        take(found, "best_update", event, "best_update");
        json_decref(event);
    }
    free(line);
    fclose(f);
    return found;
}

static json_t *configuration(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/config.json", folder);
    return json_load_file(path, 0, NULL);
}

heed_status inspect_open(struct inspect_model *m, const char *folder, heed_arena *arena,
                         heed_error *err)
{
    heed_model_config model;
    if (!heed_model_read_config(folder, arena, &model, &m->text, err) &&
        (m->engine = heed_engine_open(folder, NULL, err)) &&
        (model.features ||
         !heed_vocabs_open(folder, m->text.bpe_joiner, NULL, &m->source, &m->target, err)))
        m->outline = heed_model_outline(&model, NULL, err);
    return err->status;
}

void inspect_close(struct inspect_model *m)
{
    heed_model_free(m->outline);
    heed_vocabs_free(m->source, m->target);
    heed_engine_free(m->engine);
}

bool inspect_is_single(const char *folder, heed_arena *arena)
{
    heed_model_config c;
    heed_text_config text;
    return !heed_model_read_config(folder, arena, &c, &text, NULL) &&
           (c.arch == HEED_ARCH_DECODER || c.arch == HEED_ARCH_ENCODER);
}

static json_t *facts(const struct inspect_settings *s, const struct inspect_model *m)
{
    char summary[HEED_MODEL_SUMMARY];
    const heed_vocab *source = m->source, *target = m->target;
    const heed_model *outline = m->outline;
    json_t *all =
        json_pack("{s:o, s:s, s:o}", "model", json_string_nocheck(s->model), "summary",
                  heed_model_summary(outline, summary), "config", configuration(s->model));
    json_object_set_new(all, "vocabulary",
                        json_pack("{s:s, s:b, s:i, s:i}", "tokens", kinds[m->text.tokens], "shared",
                                  source == target, "source", (int)heed_vocab_size(source),
                                  "target", (int)heed_vocab_size(target)));
    const heed_params *p = heed_model_params(outline);
    json_object_set_new(all, "parameters", json_integer((json_int_t)heed_params_trainable(p)));
    json_object_set_new(all, "parts", parameters(p));
    json_object_set_new(all, "files", files(s->model));
    int bits = heed_engine_weight_bits(m->engine);
    if (bits)
        json_object_set_new(all, "weight_bits", json_integer(bits));
    json_t *run = training(s->model);
    if (run)
        json_object_set_new(all, "training", run);
    return all;
}

/* ---- and how it is said ---- */

static long long number(const json_t *of, const char *name)
{
    return (long long)json_integer_value(json_object_get(of, name));
}

/* 8417280 as "8 417 280", right-aligned in 15 columns. */
static void print_count(const char *name, long long n)
{
    char digits[32], spaced[48];
    int length = snprintf(digits, sizeof digits, "%lld", n), to = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            spaced[to++] = ' ';
        spaced[to++] = digits[i];
    }
    spaced[to] = '\0';
    printf("  %-22s%15s\n", name, spaced);
}

static void print_counts(const char *title, const char *total, const json_t *counts)
{
    printf("\n%s\n", title);
    const char *name;
    json_t *value;
    long long sum = 0;
    json_object_foreach((json_t *)counts, name, value)
    {
        print_count(name, (long long)json_integer_value(value));
        sum += (long long)json_integer_value(value);
    }
    print_count(total, sum);
}

static void print_training(const json_t *run)
{
    double seconds = json_number_value(json_object_get(run, "seconds"));
    const char *metric = json_string_value(json_object_get(run, "metric"));
    printf("\ntraining\n");
    print_count("updates", number(run, "updates"));
    printf("  %-22s%15.1f\n", "minutes", seconds / 60);
    if (metric)
        printf("  best %-17s%15.2f  at update %lld\n", metric,
               json_number_value(json_object_get(run, "best")), number(run, "best_update"));
}

static void print_facts(const json_t *all)
{
    const json_t *v = json_object_get(all, "vocabulary");
    printf("%s: %s\n", json_string_value(json_object_get(all, "model")),
           json_string_value(json_object_get(all, "summary")));
    const json_t *config = json_object_get(all, "config");
    const char *tokens = json_string_value(json_object_get(v, "tokens"));
    const bool one = !number(config, "source-vocabulary") || !number(config, "target-vocabulary");
    if (one)
        printf("vocabulary: %s, %lld pieces\n", tokens, number(v, "source"));
    else if (json_is_true(json_object_get(v, "shared")))
        printf("vocabulary: %s, %lld pieces for both sides\n", tokens, number(v, "source"));
    else
        printf("vocabulary: %s, %lld source and %lld target pieces\n", tokens, number(v, "source"),
               number(v, "target"));
    if (number(all, "weight_bits"))
        printf("weights: int8\n");
    printf("%s: up to %lld tokens\n", one ? "text" : "sentences", number(config, "longest"));
    print_counts("parameters", "all", json_object_get(all, "parts"));
    print_counts("bytes", "all", json_object_get(all, "files"));
    const json_t *run = json_object_get(all, "training");
    if (run)
        print_training(run);
}

/* A directory may have a name that JSON cannot hold. */
static bool print_json(const json_t *all)
{
    char *text = json_dumps(all, JSON_INDENT(1));
    if (text)
        puts(text);
    else
        complain("cannot print the facts as JSON: the name of the model directory is not UTF-8");
    free(text);
    return text != NULL;
}

bool inspect_facts(const struct inspect_settings *s)
{
    heed_error err = {0};
    heed_arena *arena = heed_arena_new(NULL, &err);
    struct inspect_model m = {.engine = NULL};
    bool good = arena && !inspect_open(&m, s->model, arena, &err);
    if (!good) {
        complain("%s", err.text);
    } else {
        json_t *all = facts(s, &m);
        good = !s->json || print_json(all);
        if (!s->json)
            print_facts(all);
        json_decref(all);
    }
    inspect_close(&m);
    heed_arena_free(arena);
    return good;
}

/* ---- the command ---- */

/* What the option table cannot say; the complaint, or NULL. */
static const char *wrong(const struct inspect_settings *s)
{
    if (s->image && (!s->output || !ends_with(s->output, ".svg")))
        return "option '--image' needs '--output' and a file that ends in .svg";
    if (s->image && (s->target || s->layer || s->head || s->json))
        return "'--target', '--layer', '--head' and '--json' have no effect with '--image'";
    if (!s->image && !s->attention && (s->target || s->output || s->layer || s->head))
        return "'--target', '--output', '--layer' and '--head' need '--attention' and a sentence";
    if (s->output && !ends_with(s->output, ".svg") && !ends_with(s->output, ".html"))
        return "option '--output' must end in .svg or .html";
    if ((s->layer == 0) != (s->head == 0))
        return "'--layer' and '--head' go together";
    if (s->kind != HEED_CROSS && !s->layer)
        return "option '--kind' needs '--layer' and '--head'";
    if (s->attention && s->attention[strspn(s->attention, " \t\r\n")] == '\0')
        return "option '--attention' is empty, expected a sentence";
    return NULL;
}

int inspect_run(int argc, const char *const *argv)
{
    invocation in;
    struct inspect_settings s;
    int code = EXIT_FAILED;
    if (!invocation_begin(&in, &inspect_options, argc, argv, &s)) {
        code = in.exit_code;
    } else if (wrong(&s)) {
        complain("%s", wrong(&s));
        fprintf(stderr, "try 'heed inspect --help'\n");
        code = EXIT_USAGE;
    } else if (!(s.model = find_model(s.model, NULL, in.arena))) {
        code = EXIT_USAGE;
    } else if (s.image) {
        code = inspect_image(&s, in.arena) ? EXIT_DONE : EXIT_FAILED;
    } else if (!s.attention && heed_found_is(s.model)) {
        code = inspect_found(&s, in.arena) ? EXIT_DONE : EXIT_FAILED;
    } else if (!s.attention) {
        code = inspect_facts(&s) ? EXIT_DONE : EXIT_FAILED;
    } else if (inspect_is_single(s.model, in.arena)) {
        code = inspect_text(&s, in.arena) ? EXIT_DONE : EXIT_FAILED;
    } else {
        heed_error err = {0};
        heed_translator *tr = heed_translator_open(s.model, 1, NULL, &err);
        if (tr) {
            heed_translator_protect(tr, s.protect);
            heed_translator_capitals(tr, s.capitals);
            if (inspect_attention(&s, tr, in.arena))
                code = EXIT_DONE;
        } else {
            complain("%s", err.text);
        }
        heed_translator_free(tr);
    }
    invocation_end(&in);
    return code;
}
