/* train_signals.c: signals of the commands that train. */
#include "train_signals.h"
#include "command.h"

#include <heed/train.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A thread waits for them.  The first asks the trainer to save and stop; while there is nothing to
 * save yet, it removes what is prepared and ends the program, because learning a vocabulary cannot
 * be interrupted.  The second does not wait. */
static struct {
    pthread_mutex_t lock;
    bool asked, silent;
    const char *preparing; /* the folder; NULL: it is there, or none is made */
} stop = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool signals_stop(void *context)
{
    (void)context;
    pthread_mutex_lock(&stop.lock);
    bool asked = stop.asked;
    pthread_mutex_unlock(&stop.lock);
    return asked;
}

void signals_prepare(const char *folder)
{
    pthread_mutex_lock(&stop.lock);
    stop.preparing = folder;
    pthread_mutex_unlock(&stop.lock);
}

void signals_silence(void)
{
    pthread_mutex_lock(&stop.lock);
    stop.silent = true;
    pthread_mutex_unlock(&stop.lock);
}

static void *wait_for_signals(void *context)
{
    const sigset_t *signals = context;
    for (int number;;) {
        if (sigwait(signals, &number) != 0)
            continue;
        pthread_mutex_lock(&stop.lock);
        if (stop.asked)
            _exit(EXIT_INTERRUPTED);
        stop.asked = true;
        /* Behind the ^C that a terminal shows. */
        if (!stop.silent)
            fprintf(stderr, "%sstopping ...%s\n", isatty(STDERR_FILENO) ? "\n" : "",
                    stop.preparing ? "" : " (a second time: without a save)");
        if (stop.preparing) {
            heed_trainer_discard(stop.preparing, NULL);
            _exit(EXIT_INTERRUPTED);
        }
        pthread_mutex_unlock(&stop.lock);
    }
    return NULL;
}

void signals_catch(void)
{
    static sigset_t signals;
    pthread_t thread;
    signal(SIGINT, SIG_DFL); /* a shell may have it ignored in the background */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);           /* which mpirun and Slurm pass on */
    if (signal(SIGHUP, SIG_DFL) == SIG_IGN) /* nohup: goes on without its terminal */
        signal(SIGHUP, SIG_IGN);
    else
        sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, &signals) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}
