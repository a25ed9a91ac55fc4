/* op_table.c: the list of operators, made from list.h. */
#include "base/error.h"
#include "ops/list.h"
#include "tensor/tape.h"

#define DECLARE(name) extern const heed_op heed__op_##name;
HEED_OP_LIST(DECLARE)
#undef DECLARE

static const heed_op *const ops[] = {
#define ROW(name) &heed__op_##name,
    HEED_OP_LIST(ROW)
#undef ROW
};

int heed_op_count(void)
{
    return (int)(sizeof ops / sizeof *ops);
}

heed_op_info heed_op_describe(int i)
{
    if (i < 0 || i >= heed_op_count() || !ops[i])
        return (heed_op_info){0};
    return (heed_op_info){ops[i]->name, ops[i]->formula, ops[i]->n_cases};
}

heed_status heed_op_check(int i, int c, int threads, heed_check_result *result, heed_error *err)
{
    if (!result)
        return heed__missing(err, "check result");
    if (i < 0 || i >= heed_op_count() || !ops[i] || c < 0 || c >= ops[i]->n_cases)
        return heed__fail(err, HEED_ARGUMENT, "there is no case %d of operator %d", c, i);
    return heed__check_case(ops[i], &ops[i]->cases[c], threads, result, err);
}
