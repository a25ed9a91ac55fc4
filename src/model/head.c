/* head.c: from hidden states to logits, section 3.4: h W^T + b, W (V,D) as an embedding table is
 * stored so that it can be one.  BERT's transform, norm(activation(h W_t + b_t)), may stand before
 * it.  h (N,D) -> (N,V); losses never make all of it (heed_project_cross_entropy). */
#include <heed/stack.h>

#include <math.h>

void heed_head_build(heed_head_layer *l, heed_scope s, const heed_head_options *options)
{
    if (!l)
        return;
    const heed_head_options *o = options;
    *l = (heed_head_layer){.table = o->table};
    if (o->transform) {
        heed_linear_build(&l->transform, heed_scope_enter(s, "transform"), o->d, o->d,
                          o->activation, true);
        if (o->normed)
            heed_norm_build(&l->norm, heed_scope_enter(s, "norm"), o->norm, o->d, o->eps);
    }
    if (o->classes && !l->table)
        l->table = heed_param_with_role(s, "weight", HEED_SHAPE(o->classes, o->d),
                                        (heed_init){HEED_INIT_NORMAL, 1 / sqrt((double)o->d)},
                                        HEED_ROLE_TABLE);
    if (o->bias)
        l->bias = heed_param(s, "bias", HEED_SHAPE(o->classes), (heed_init){HEED_INIT_ZERO, 0});
}

heed_tensor *heed_head_transform(heed_tape *t, const heed_head_layer *l, heed_tensor *h)
{
    if (!t)
        return NULL;
    if (!l->transform.weight)
        return h;
    h = heed_linear_apply(t, &l->transform, h);
    return l->norm.gain ? heed_norm_apply(t, &l->norm, h) : h; /* (N,D) */
}

heed_tensor *heed_head_logits(heed_tape *t, const heed_head_layer *l, heed_tensor *h)
{
    if (!t)
        return NULL;
    heed_tensor *y = heed_matmul(t, heed_head_transform(t, l, h), l->table, HEED_NT);
    return l->bias ? heed_add(t, y, l->bias) : y; /* (N,V) */
}

int64_t heed_head_cost(const heed_head_layer *l)
{
    if (!l)
        return 0;
    return heed_tensor_count(l->transform.weight) + heed_tensor_count(l->table);
}
