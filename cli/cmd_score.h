/* cmd_score.h: the two halves of `heed score`: translations, and texts by language models. */
#ifndef HEED_CLI_CMD_SCORE_H
#define HEED_CLI_CMD_SCORE_H

#include <heed/options.h>

/* -log P of text files; false after saying what went wrong. */
bool score_texts(const char *model, const heed_option_list *files, int threads, bool json);

#endif
