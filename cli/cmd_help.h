/* cmd_help.h: the completion scripts of `heed help --completion`. */
#ifndef HEED_CLI_CMD_HELP_H
#define HEED_CLI_CMD_HELP_H

void print_bash_completion(void);
void print_zsh_completion(void);

#endif
