/* option_groups.h: the groups of options in the help of train, translate and evaluate. */
#ifndef HEED_CLI_OPTION_GROUPS_H
#define HEED_CLI_OPTION_GROUPS_H

#include <heed/options.h>

extern const heed_option_group train_groups[], translate_groups[], evaluate_groups[];

#endif
