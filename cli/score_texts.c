/* score_texts.c: `heed score --text`: how well a language model knows a text. */
#include "cmd_score.h"
#include "command.h"
#include "status_line.h"
#include "train_progress.h"

#include <heed/generate.h>
#include <math.h>
#include <stdio.h>

static bool show(void *context, int64_t done, int64_t all)
{
    struct progress *p = context;
    char line[96];
    if (status_due(&p->line)) {
        snprintf(line, sizeof line, "%lld of %lld tokens", (long long)done, (long long)all);
        status_show(&p->line, line);
    }
    return true;
}

static void print_score(const heed_text_score *s, bool json)
{
    const double tokens = (double)s->tokens, bytes = (double)s->bytes;
    const double mean = s->nll / tokens, bits = s->nll / log(2) / bytes;
    if (json)
        printf("{\"nll\": %.10g, \"tokens\": %lld, \"bytes\": %lld, \"unknown\": %lld, "
               "\"perplexity\": %.10g, \"bits_per_byte\": %.10g}\n",
               s->nll, (long long)s->tokens, (long long)s->bytes, (long long)s->unknown, exp(mean),
               bits);
    else
        printf("loss %.4f nats a token, perplexity %.4g, %.4f bits a byte (%lld tokens, %lld "
               "unknown, %lld bytes)\n",
               mean, exp(mean), bits, (long long)s->tokens, (long long)s->unknown,
               (long long)s->bytes);
}

bool score_texts(const char *model, const heed_option_list *files, int threads, bool json)
{
    heed_error err = {0};
    struct progress p;
    heed_text_score score;
    progress_begin(&p, json);
    p.line.shown = heed_clock_seconds(); /* nothing is said of what is done at once */
    const heed_log_sink log = {progress_line, &p};
    heed_generator *g = heed_generator_open(model, threads, NULL, &err);
    const bool good =
        g && !heed_generator_score(g, files->items, files->count, show, &p, &log, &score, &err);
    progress_end(&p);
    if (good)
        print_score(&score, json);
    else
        complain("%s", err.text);
    heed_generator_free(g);
    return good;
}
