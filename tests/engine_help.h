/* engine_help.h: engines and sessions of models in memory, fp32 and int8. */
#ifndef HEED_TESTS_ENGINE_HELP_H
#define HEED_TESTS_ENGINE_HELP_H

#include "engine/engine.h"

static inline heed_engine *new_engine(const heed_model *m)
{
    heed_error err = {0};
    heed_engine *e = heed_engine_new(m, NULL, &err);
    if (!e)
        fail_msg("%s", err.text);
    return e;
}

/* Quantised, as `heed convert` would store it. */
static inline heed_engine *new_int8_engine(const heed_model *m)
{
    heed_engine *e = new_engine(m);
    heed_error err = {0};
    heed__weights_free(e->weights);
    e->weights = heed__weights_of(m, 8, NULL, &err);
    if (!e->weights)
        fail_msg("%s", err.text);
    return e;
}

static inline heed_session *new_session(const heed_engine *e, int threads)
{
    heed_error err = {0};
    heed_session *s = heed_session_new(e, &(heed_session_options){.threads = threads}, NULL, &err);
    if (!s)
        fail_msg("%s", err.text);
    return s;
}

#endif
