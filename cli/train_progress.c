/* train_progress.c: the lines of a training. */
#include "train_progress.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define HOUR 3600.0

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

/* "%.2f" of a score of hundred, "%.4f" of a loss. */
static int measure_text(char *text, size_t room, const heed_measure *m)
{
    return snprintf(text, room, m->larger_is_better ? "%s %.2f" : "%s %.4f", m->name, m->value);
}

static int losses_text(char *text, size_t room, const heed_train_progress *t)
{
    int n = 0;
    if (t->task->sets < 2)
        return snprintf(text, room, "loss %.3f", t->loss[0]);
    for (int k = 0; k < t->task->sets; k++)
        n += snprintf(text + n, room - (size_t)n, "%sloss %.24s %.3f", k ? "  " : "",
                      t->task->set_names[k], t->loss[k]);
    return n;
}

/* "  ranks 5120 4970* 5090, wait 2%": of each while it does not wait, and which is the slowest; of
 * many, only that one. */
static int ranks_text(char *text, size_t room, const heed_train_progress *t)
{
    enum { EACH = 8 };
    int slowest = 0, n = 0;
    if (t->ranks < 2)
        return 0;
    for (int i = 1; i < t->ranks; i++)
        slowest = t->rank_speed[i] < t->rank_speed[slowest] ? i : slowest;
    n = snprintf(text, room, t->ranks > EACH ? "  %d ranks" : "  ranks", t->ranks);
    for (int i = 0; i < t->ranks && t->ranks <= EACH; i++)
        n += snprintf(text + n, room - (size_t)n, t->rank_speed[i] < 100 ? " %.1f%s" : " %.0f%s",
                      t->rank_speed[i], i == slowest ? "*" : "");
    if (t->ranks > EACH)
        n += snprintf(text + n, room - (size_t)n, ", slowest %d (%.4g)", slowest,
                      t->rank_speed[slowest]);
    return n + snprintf(text + n, room - (size_t)n, ", wait %.0f%%", 100 * t->waiting);
}

/* What matters most comes first: a narrow terminal shows the fields that fit. */
/* Once, when enough updates have been timed. */
static void advise_once(struct progress *p, const heed_train_progress *t)
{
    const double spent = heed_clock_seconds() - p->begun;
    const int64_t updates = t->update - p->from;
    if (p->advised || updates < 5 || spent < 3)
        return;
    const heed_train_forecast pace = {.seconds_per_update = spent / (double)updates};
    p->advised = true;
    progress_advise(p, t->task->loop, &pace);
}

static void show_update(struct progress *p, const heed_train_progress *t)
{
    char line[512], left[32];
    const char *items = t->task->items ? t->task->items : "updates";
    int n = 0;
    if (t->epoch > 1 || strcmp(items, "tokens") == 0)
        n = snprintf(line, sizeof line, "epoch %lld  ", (long long)t->epoch);
    n += snprintf(line + n, sizeof line - (size_t)n, "update %lld  ", (long long)t->update);
    n += losses_text(line + n, sizeof line - (size_t)n, t);
    n += snprintf(line + n, sizeof line - (size_t)n,
                  t->speed < 100 ? "  %.1f %.24s/s" : "  %.0f %.24s/s", t->speed,
                  strcmp(items, "tokens") == 0 ? "tok" : items);
    n += ranks_text(line + n, sizeof line - (size_t)n, t);
    double gained = t->fraction - p->fraction, spent = heed_clock_seconds() - p->begun;
    if (gained > 0 && spent > 2)
        n += snprintf(line + n, sizeof line - (size_t)n, "  left %s",
                      status_duration(spent * (1 - t->fraction) / gained, left));
    if (t->best.name && isfinite(t->best.value)) {
        n += snprintf(line + n, sizeof line - (size_t)n, "  best ");
        n += measure_text(line + n, sizeof line - (size_t)n, &t->best);
    }
    if (t->task->perplexity)
        n += snprintf(line + n, sizeof line - (size_t)n, "  ppl %.4g", exp(t->loss[0]));
    snprintf(line + n, sizeof line - (size_t)n, "  rate %.3g  norm %.3g", t->rate, t->norm[0]);
    status_show(&p->line, line);
}

static void show_validation(struct progress *p, const heed_train_progress *t)
{
    const char *between = "";
    progress_end(p);
    fprintf(stderr, "update %lld: validation ", (long long)t->update);
    for (int i = 0; i < t->measures; i++) {
        char text[128];
        if (!isfinite(t->measure[i].value))
            continue;
        measure_text(text, sizeof text, &t->measure[i]);
        fprintf(stderr, "%s%s", between, text);
        if (i == 0 && t->task->perplexity)
            fprintf(stderr, ", perplexity %.4g", exp(t->measure[i].value));
        between = ", ";
    }
    if (t->best_update == t->update)
        fputs(" (the best so far)\n", stderr);
    else
        fprintf(stderr, " (best %s %.4g at update %lld)\n", t->best.name, t->best.value,
                (long long)t->best_update);
}

static void show_preparing(struct progress *p, double fraction)
{
    char line[64];
    if (!status_due(&p->line))
        return;
    snprintf(line, sizeof line, "translated %.0f%%", 100 * fraction);
    status_show(&p->line, line);
}

void progress_show(void *context, const heed_train_progress *t)
{
    struct progress *p = context;
    if (t->event == HEED_TRAIN_PREPARE) {
        show_preparing(p, t->fraction);
        return;
    }
    if (p->fraction < 0) {
        p->fraction = t->fraction;
        p->from = t->update;
        p->begun = heed_clock_seconds();
    }
    if (t->event == HEED_TRAIN_VALIDATION) {
        show_validation(p, t);
    } else if (t->event == HEED_TRAIN_UPDATE && status_due(&p->line)) {
        advise_once(p, t);
        show_update(p, t);
    }
}

/* ---- what makes no sense together ---- */

/* 3 h 2 min. */
static const char *words_of(double seconds, char text[48])
{
    const long long minutes = (long long)(seconds / 60 + 0.5);
    if (seconds < 60)
        snprintf(text, 48, "%.0f s", seconds);
    else if (minutes < 60)
        snprintf(text, 48, "%lld min", minutes);
    else
        snprintf(text, 48, "%lld h %lld min", minutes / 60, minutes % 60);
    return text;
}

static void warn(struct progress *p, const char *what)
{
    progress_end(p);
    fprintf(stderr, "warning: %s\n", what);
}

void progress_advise(struct progress *p, const heed_loop_options *o,
                     const heed_train_forecast *pace)
{
    const double limit = 60 * o->max_minutes, peak = (double)o->warmup * pace->seconds_per_update;
    const double all = (double)o->max_updates * pace->seconds_per_update;
    const bool falls = o->schedule == HEED_SCHEDULE_LINEAR || o->schedule == HEED_SCHEDULE_COSINE;
    char line[192], time[48];
    if (o->max_updates > 0 && o->warmup > o->max_updates) {
        snprintf(line, sizeof line, "the learning rate peaks at update %lld; --max-updates is %lld",
                 (long long)o->warmup, (long long)o->max_updates);
        warn(p, line);
    }
    if (limit > 0 && peak > limit) {
        snprintf(line, sizeof line, "the learning rate peaks after %s; --max-minutes is %g",
                 words_of(peak, time), o->max_minutes);
        warn(p, line);
    } else if (limit > 0 && falls && all > 1.5 * limit) {
        snprintf(line, sizeof line,
                 "%lld updates take %s; --max-minutes is %g: it ends at a high learning rate",
                 (long long)o->max_updates, words_of(all, time), o->max_minutes);
        warn(p, line);
    } else if (limit == 0 && peak > HOUR && (!o->max_updates || o->warmup <= o->max_updates)) {
        snprintf(line, sizeof line, "the learning rate peaks only after %s: a smaller --warmup?",
                 words_of(peak, time));
        warn(p, line);
    }
    if (limit > 0 && pace->seconds_per_epoch > limit) {
        snprintf(line, sizeof line,
                 "an epoch takes %s; --max-minutes is %g: a part of the text is never read",
                 words_of(pace->seconds_per_epoch, time), o->max_minutes);
        warn(p, line);
    }
}

void progress_forecast(const struct progress *p, const heed_train_forecast *f, const char *speed)
{
    if (p->json) {
        printf("\"parameters\": %lld, \"memory_bytes\": %zu, "
               "\"tokens_per_second\": %.0f, \"seconds_per_update\": %.4g, "
               "\"seconds_per_epoch\": %.4g, \"updates_per_epoch\": %lld}\n",
               (long long)f->parameters, f->memory, f->items_per_second, f->seconds_per_update,
               f->seconds_per_epoch, (long long)f->updates_per_epoch);
        return;
    }
    char epoch[32];
    printf("parameters       %lld\n", (long long)f->parameters);
    printf("memory           %.0f MB\n", (double)f->memory / 1e6);
    printf("speed            %.0f %s\n", f->items_per_second, speed);
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

/* Names are as a reader knows them, "BLEU"; JSON has small letters. */
static void print_json(const heed_train_result *r)
{
    const heed_train_progress *t = &r->last;
    char best[32] = "null", name[32] = "";
    for (size_t i = 0; t->best.name && t->best.name[i] && i + 1 < sizeof name; i++)
        name[i] = (char)tolower((unsigned char)t->best.name[i]);
    if (isfinite(t->best.value))
        snprintf(best, sizeof best, "%.6g", t->best.value);
    printf("{\"updates\": %lld, \"seconds\": %.1f, \"metric\": \"%s\", \"best\": %s, "
           "\"best_update\": %lld, \"averaged\": %d",
           (long long)t->update, t->seconds, name, best, (long long)t->best_update, r->averaged);
    if (isfinite(r->average_score))
        printf(", \"average\": %.6g", r->average_score);
    puts("}");
}

void progress_summary(const struct progress *p, const char *folder, const heed_train_result *r,
                      const char *then)
{
    const heed_train_progress *t = &r->last;
    char time[32];
    if (p->json) {
        print_json(r);
        return;
    }
    printf("done: %s after %lld updates, %s\n", reason_text(r->reason), (long long)t->update,
           status_duration(t->seconds, time));
    printf("best on validation: %s %.4g at update %lld\n", t->best.name, t->best.value,
           (long long)t->best_update);
    if (isfinite(r->average_score))
        printf("average of saves: %s %.4g%s\n", t->best.name, r->average_score,
               r->averaged ? "" : ", not better: the best single one stays");
    printf("the model is in '%s'; curves in '%s/training/curves.svg'\n", folder, folder);
    printf("try: %s %s\n", then, folder);
}
