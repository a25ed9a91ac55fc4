/* train_progress.c: the lines of a training. */
#include "train_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void progress_begin(struct progress *p, bool json)
{
    *p = (struct progress){.json = json, .fraction = -1};
    status_begin(&p->line);
}

void progress_end(struct progress *p)
{
    status_end(&p->line);
}

void progress_line(void *context, heed_log_level level, const char *line)
{
    progress_end(context);
    if (level != HEED_LOG_DEBUG)
        fprintf(stderr, "%s%s\n", level == HEED_LOG_WARNING ? "warning: " : "", line);
}

static const char *metric_name(const char *metric)
{
    return strcmp(metric, "bleu") == 0 ? "BLEU" : strcmp(metric, "chrf") == 0 ? "chrF" : metric;
}

/* What matters most comes first: a narrow terminal shows the fields that fit. */
static void show_update(struct progress *p, const heed_train_progress *t)
{
    char line[256], left[32];
    int n = snprintf(line, sizeof line, "epoch %lld  update %lld  loss %.3f  %.0f tok/s",
                     (long long)t->epoch, (long long)t->update, t->loss, t->speed);
    double gained = t->fraction - p->fraction, spent = heed_clock_seconds() - p->begun;
    if (gained > 0 && spent > 2)
        n += snprintf(line + n, sizeof line - (size_t)n, "  left %s",
                      status_duration(spent * (1 - t->fraction) / gained, left));
    if (isfinite(t->best))
        n += snprintf(line + n, sizeof line - (size_t)n, "  best %s %.*f", metric_name(t->metric),
                      strcmp(t->metric, "loss") == 0 ? 3 : 2, t->best);
    snprintf(line + n, sizeof line - (size_t)n, "  ppl %.4g  rate %.3g  norm %.3g", exp(t->loss),
             t->rate, t->norm);
    status_show(&p->line, line);
}

static void show_validation(struct progress *p, const heed_train_progress *t)
{
    progress_end(p);
    fprintf(stderr, "update %lld: validation loss %.4f, perplexity %.4g", (long long)t->update,
            t->valid_loss, exp(t->valid_loss));
    if (isfinite(t->bleu))
        fprintf(stderr, ", BLEU %.2f, chrF %.2f", t->bleu, t->chrf);
    if (t->best_update == t->update)
        fputs(" (the best so far)\n", stderr);
    else
        fprintf(stderr, " (best %s %.4g at update %lld)\n", metric_name(t->metric), t->best,
                (long long)t->best_update);
}

void progress_show(void *context, const heed_train_progress *t)
{
    struct progress *p = context;
    if (p->fraction < 0) {
        p->fraction = t->fraction;
        p->begun = heed_clock_seconds();
    }
    if (t->event == HEED_TRAIN_VALIDATION) {
        show_validation(p, t);
    } else if (t->event == HEED_TRAIN_UPDATE && status_due(&p->line)) {
        show_update(p, t);
    }
}

void progress_forecast(struct progress *p, const heed_train_forecast *f)
{
    progress_end(p);
    if (p->json) {
        printf("{\"pairs\": %lld, \"validation_pairs\": %lld, \"left_out\": %lld, "
               "\"source_vocabulary\": %lld, "
               "\"target_vocabulary\": %lld, \"parameters\": %lld, \"memory_bytes\": %zu, "
               "\"tokens_per_second\": %.0f, \"seconds_per_update\": %.4g, "
               "\"seconds_per_epoch\": %.4g, \"updates_per_epoch\": %lld}\n",
               (long long)f->pairs, (long long)f->valid_pairs, (long long)f->left_out,
               (long long)f->source_vocabulary, (long long)f->target_vocabulary,
               (long long)f->parameters, f->memory, f->tokens_per_second, f->seconds_per_update,
               f->seconds_per_epoch, (long long)f->updates_per_epoch);
        return;
    }
    char epoch[32];
    printf("pairs            %lld to train, %lld to validate\n", (long long)f->pairs,
           (long long)f->valid_pairs);
    if (f->left_out)
        printf("left out         %lld pairs that are too long\n", (long long)f->left_out);
    printf("vocabulary       %lld source, %lld target\n", (long long)f->source_vocabulary,
           (long long)f->target_vocabulary);
    printf("parameters       %lld\n", (long long)f->parameters);
    printf("memory           %.0f MB\n", (double)f->memory / 1e6);
    printf("speed            %.0f tokens/s, source and target\n", f->tokens_per_second);
    printf("update           %.3g s\n", f->seconds_per_update);
    printf("epoch            %lld updates, %s\n", (long long)f->updates_per_epoch,
           status_duration(f->seconds_per_epoch, epoch));
}

static const char *reason_text(heed_train_reason r)
{
    static const char *const texts[] = {
        [HEED_TRAIN_ASKED] = "asked to stop",
        [HEED_TRAIN_MAX_UPDATES] = "--max-updates reached",
        [HEED_TRAIN_MAX_EPOCHS] = "--max-epochs reached",
        [HEED_TRAIN_MAX_MINUTES] = "--max-minutes reached",
        [HEED_TRAIN_PATIENCE] = "validation no longer improves",
    };
    return texts[r];
}

void progress_summary(struct progress *p, const char *folder, const heed_train_result *r)
{
    const heed_train_progress *t = &r->last;
    char time[32];
    if (p->json) {
        char best[32] = "null";
        if (isfinite(t->best))
            snprintf(best, sizeof best, "%.6g", t->best);
        printf("{\"updates\": %lld, \"seconds\": %.1f, \"metric\": \"%s\", \"best\": %s, "
               "\"best_update\": %lld, \"averaged\": %d",
               (long long)t->update, t->seconds, t->metric, best, (long long)t->best_update,
               r->averaged);
        if (isfinite(r->average_score))
            printf(", \"average\": %.6g", r->average_score);
        puts("}");
        return;
    }
    printf("done: %s after %lld updates, %s\n", reason_text(r->reason), (long long)t->update,
           status_duration(t->seconds, time));
    printf("best on validation: %s %.4g at update %lld\n", metric_name(t->metric), t->best,
           (long long)t->best_update);
    if (isfinite(r->average_score))
        printf("average of saves: %s %.4g%s\n", metric_name(t->metric), r->average_score,
               r->averaged ? "" : ", not better: the best single one stays");
    printf("the model is in '%s'; curves in '%s/training/curves.svg'\n", folder, folder);
    printf("try: echo 'A sentence.' | heed translate --model %s\n", folder);
}
