/* train_signals.h: what SIGINT, SIGTERM, SIGHUP and SIGUSR1 do to `heed train` and `heed lab`. */
#ifndef HEED_CLI_TRAIN_SIGNALS_H
#define HEED_CLI_TRAIN_SIGNALS_H

#include <stdbool.h>

/* Before any other thread is made, so that none of them takes the signals. */
void signals_catch(void);
/* The folder that is being prepared, which a signal removes; NULL: it is there, or none is made. */
void signals_prepare(const char *folder);
/* Another process says what happens. */
void signals_silence(void);
/* A heed_train_hooks.stop. */
bool signals_stop(void *context);

#endif
