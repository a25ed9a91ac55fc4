/* cmd_caption.c: `heed caption`: a sentence for each picture. */
#include "command.h"

#include <heed/see.h>
#include <stdio.h>

struct settings {
    const char *model, *captions, *images;
    int64_t beam, longest, threads;
    bool json;
};
static const heed_option fields[] = {
    HEED_OPTION_TEXT(struct settings, model, "model", NULL, "DIR",
                     "the directory of a model of `heed train --arch caption`"),
    HEED_OPTION_TEXT(struct settings, captions, "captions", NULL, "F.tsv",
                     "the pictures that its lines name, in their order, in place of FILE"),
    HEED_OPTION_TEXT(struct settings, images, "images", NULL, "DIR|TAR.GZ",
                     "where those pictures are"),
    HEED_OPTION_INT(struct settings, beam, "beam", "3", 1, 64, "N",
                    "captions kept at each step; 1 is greedy"),
    HEED_OPTION_INT(struct settings, longest, "longest", "30", 1, 1000, "N", "words, at most"),
    HEED_OPTION_BOOL(struct settings, json, "json", NULL,
                     "one JSON object a line: file, caption, log_p, score"),
    HEED_OPTION_INT(struct settings, threads, "threads", "1", 1, 64, "N", "threads to use"),
};
static const char *const examples[] = {
    "heed caption --model m photo.jpg other.png",
    "heed caption --model m --captions test.tsv --images test.tar.gz >said.txt", NULL};
const heed_option_set caption_options = {
    .command = "heed caption",
    .summary = "Say what is on a picture, one line each",
    .arguments = "[FILE...]",
    .most = -1,
    .fields = fields,
    .count = sizeof fields / sizeof *fields,
    .examples = examples,
};

struct run {
    const struct settings *s;
    heed_captioner *captioner;
    heed_arena *arena; /* of one picture */
    bool failed;
};

static void print_caption(const struct run *r, const char *name, const heed_caption *c)
{
    if (!r->s->json) {
        puts(c->text);
        return;
    }
    fputs("{\"file\": ", stdout);
    print_json_text(name);
    fputs(", \"caption\": ", stdout);
    print_json_text(c->text);
    printf(", \"log_p\": %.4f, \"score\": %.4f}\n", c->log_p, c->score);
}

/* A picture that cannot be read leaves an empty line: the others keep their places. */
static void tell(struct run *r, const char *name, heed_image *image, heed_error *err)
{
    heed_caption c;
    const heed_caption_options o = {.beam = r->s->beam, .longest = r->s->longest};
    heed_arena_reset(r->arena);
    if (!err->status)
        heed_captioner_tell(r->captioner, image, &o, r->arena, &c, err);
    if (!err->status) {
        print_caption(r, name, &c);
        return;
    }
    complain("%s", err->text);
    if (!r->s->json)
        putchar('\n');
    r->failed = true;
}

static void tell_files(struct run *r, const heed_option_list *files)
{
    for (int i = 0; i < files->count && results_written(); i++) {
        heed_error err = {0};
        heed_image image = {0};
        heed_image_read(files->items[i], NULL, &image, &err);
        tell(r, files->items[i], &image, &err);
        heed_image_free(&image, NULL);
    }
}

static void tell_set(struct run *r)
{
    heed_error err = {0};
    heed_arena *memory = heed_arena_new(NULL, &err);
    heed_pictures *p =
        memory ? heed_pictures_captions(r->s->captions, r->s->images, NULL, NULL, &err) : NULL;
    const heed_pictures_report n = heed_pictures_describe(p);
    heed_image image = {n.height, n.width, n.channels, NULL};
    if (p)
        image.pixels = heed_arena_allocate(memory, (size_t)(n.height * n.width * n.channels));
    if (!image.pixels) {
        complain("%s", p ? "out of memory for a picture" : err.text);
        r->failed = true;
    }
    for (int64_t i = 0; image.pixels && i < n.count && results_written(); i++) {
        heed_error own = {0};
        heed_pictures_load(p, i, image.pixels, &own);
        tell(r, heed_pictures_name(p, i), &image, &own);
    }
    heed_pictures_free(p);
    heed_arena_free(memory);
}

static bool usage_is_right(const struct settings *s, const invocation *in)
{
    if (!s->model)
        complain("missing option '--model': a captioner's directory");
    else if (!s->captions && !in->words.count)
        complain("there is no picture to say something about");
    else if (s->captions && in->words.count)
        complain("give pictures, or --captions, not both");
    else if (!s->captions != !s->images)
        complain("--captions and --images belong together");
    else
        return true;
    fprintf(stderr, "try 'heed caption --help'\n");
    return false;
}

int caption_run(int argc, const char *const *argv)
{
    struct settings s;
    invocation in;
    heed_error err = {0};
    int code = EXIT_USAGE;
    if (!invocation_begin(&in, &caption_options, argc, argv, &s)) {
        code = in.exit_code;
    } else if (usage_is_right(&s, &in)) {
        struct run r = {.s = &s, .arena = heed_arena_new(NULL, &err)};
        r.captioner = heed_captioner_open(s.model, (int)s.threads, NULL, &err);
        if (!r.captioner || !r.arena) {
            complain("%s", err.text);
            r.failed = true;
        } else if (s.captions) {
            tell_set(&r);
        } else {
            tell_files(&r, &in.words);
        }
        heed_captioner_free(r.captioner);
        heed_arena_free(r.arena);
        code = r.failed ? EXIT_FAILED : EXIT_DONE;
    }
    invocation_end(&in);
    return code;
}
