/* translate_output.c: what `heed translate` prints of a line. */
#include "cmd_translate.h"
#include "command.h"
#include "json_fields.h"

#include <stdio.h>
#include <string.h>

static void print_tokens(const heed_vocab *v, const heed_translation *t)
{
    fputs(",\"tokens\":[", stdout);
    for (int64_t i = 0; i < t->tokens; i++) {
        if (i)
            putchar(',');
        print_json_text(heed_vocab_piece(v, t->id[i]));
    }
    fputs("],\"log_p\":[", stdout);
    for (int64_t i = 0; i < t->tokens; i++)
        printf("%s%.6g", i ? "," : "", (double)t->token_log_p[i]);
    putchar(']');
}

/* The fields of one translation. */
static void print_fields(const heed_vocab *v, const heed_translation *t)
{
    fputs("\"text\":", stdout);
    print_json_text(t->text);
    printf(",\"score\":%.6g", t->score);
    print_tokens(v, t);
    if (t->loop)
        fputs(",\"loop\":true", stdout);
    if (t->alignment)
        printf(",\"alignment\":\"%s\"", t->alignment);
}

/* Fields that came in and mean nothing here go out again, as they are written. */
static void print_others(const char *object)
{
    static const char *const own[] = {"text",  "prefix", "line",   "score", "tokens",
                                      "log_p", "loop",   "n_best", "error", "alignment"};
    json_field f;
    for (const char *at = object; json_next_field(&at, &f);) {
        bool known = false;
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            known |= json_field_is(&f, own[i]);
        if (!known)
            printf(",%.*s:%.*s", (int)f.name_length, f.name, (int)f.value_length, f.value);
    }
}

static void print_object(const struct translate_settings *s, const heed_vocab *v,
                         const struct translate_line *l, const heed_translation *t)
{
    printf("{\"line\":%lld,", (long long)l->number + 1);
    if (l->wrong[0]) {
        fputs("\"error\":", stdout);
        print_json_text(l->wrong);
    } else {
        print_fields(v, t);
    }
    if (s->search.n_best > 1 && !l->wrong[0]) {
        fputs(",\"n_best\":[", stdout);
        for (int64_t k = 0; k < s->search.n_best && t[k].text; k++) {
            fputs(k ? ",{" : "{", stdout);
            print_fields(v, &t[k]);
            putchar('}');
        }
        putchar(']');
    }
    if (l->object)
        print_others(l->object);
    puts("}");
}

void translate_print(const struct translate_settings *s, const heed_vocab *target,
                     const struct translate_line *l, const heed_translation *t)
{
    if (s->json) {
        print_object(s, target, l, t);
        return;
    }
    for (int64_t k = 0; k < s->search.n_best && t[k].text; k++) {
        if (s->search.n_best > 1)
            printf("%lld ||| %s ||| %.4f", (long long)l->number, t[k].text, t[k].score);
        else if (s->scores)
            printf("%.4f\t%s", t->score, t->text);
        else
            fputs(t->text, stdout);
        if (t[k].alignment)
            printf(" ||| %s", t[k].alignment);
        putchar('\n');
    }
}
