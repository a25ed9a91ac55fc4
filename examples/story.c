/* story.c: a language model writes a text, which appears as it is drawn.
 *
 *     story MODEL [PROMPT]
 */
#include <heed/generate.h>

#include <stdio.h>
#include <string.h>

static bool show(void *context, int64_t sample, const char *text, size_t size)
{
    (void)context, (void)sample;
    fwrite(text, 1, size, stdout);
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    heed_error err = {0};
    const char *prompt = argc > 2 ? argv[2] : "";
    heed_generate_options options = {
        .max_tokens = 200, .temperature = 0.8, .top_p = 0.95, .repetition_penalty = 1, .seed = 1};
    heed_generate_sink sink = {show, NULL};
    heed_generation out;
    heed_arena *arena = heed_arena_new(NULL, &err);
    heed_generator *g = heed_generator_open(argc > 1 ? argv[1] : NULL, 1, NULL, &err);
    if (g)
        fputs(prompt, stdout);
    if (g && !heed_generate(g, prompt, strlen(prompt), &options, 1, &sink, arena, &out, &err))
        printf("\n-- %lld tokens\n", (long long)out.count);
    else
        fprintf(stderr, "story: %s\n", err.text);
    heed_generator_free(g);
    heed_arena_free(arena);
    return err.status != HEED_OK;
}
