/* one_stack.h: models of one stack, a decoder or an encoder alone, in every form that a sublayer,
 * an input or a head may have; and what the tape says about them. */
#ifndef HEED_TESTS_ONE_STACK_H
#define HEED_TESTS_ONE_STACK_H

#include "attention_table.h"
#include "small_transformer.h"

static inline heed_model_config one_stack_config(heed_arch arch)
{
    heed_model_config c = small_config();
    c.arch = arch;
    if (arch == HEED_ARCH_DECODER)
        c.source_vocabulary = 0;
    else
        c.target_vocabulary = 0;
    c.label_smoothing = 0;
    c.dropout = c.attention.dropout = 0.3; /* must not act outside of training */
    return c;
}

/* Form i of `arch`; its name in *name.  Returns false behind the last. */
static inline bool one_stack_form(heed_arch arch, int i, heed_model_config *config,
                                  const char **name)
{
    *config = one_stack_config(arch);
    heed_transformer_config *c = &config->transformer;
    switch (i) {
    case 0:
        *name = "the paper's";
        return true;
    case 1:
        *name = "before, rms, learned, gated without biases, output bias";
        c->pre_norm = c->ff_gated = c->output_bias = true;
        c->ff_bias = false;
        c->norm = HEED_NORM_RMS;
        c->positions = HEED_POSITIONS_LEARNED;
        c->activation = HEED_SILU;
        return true;
    case 2:
        *name = "head transform, embedding norm, attention biases, not tied";
        c->head_transform = c->embedding_norm = c->attention_bias = c->output_bias = true;
        c->activation = HEED_GELU;
        c->embedding_scale = false;
        config->tying = HEED_TIE_NONE;
        return true;
    case 3:
        *name = "batch norm, own widths, no positions, no scale";
        c->norm = HEED_NORM_BATCH;
        c->d_k = 3;
        c->d_v = 5;
        c->positions = HEED_POSITIONS_NONE;
        c->scale_scores = false;
        return true;
    case 4:
        *name = "cosine, more persistent rows than keys, no residual, halves";
        config->attention.score = HEED_SCORE_COSINE;
        config->attention.memory = (heed_slot_spec)HEED_ONE(HEED_MEMORY_PERSISTENT, {256});
        c->residual = false;
        c->positions = HEED_POSITIONS_SINUSOID_HALVES;
        return true;
    case 5:
        *name = "rotary, before, rms, gated without biases, output bias, not tied";
        c->pre_norm = c->ff_gated = c->output_bias = true;
        c->ff_bias = false;
        c->norm = HEED_NORM_RMS;
        c->positions = HEED_POSITIONS_ROTARY;
        c->activation = HEED_SILU;
        c->embedding_scale = false;
        config->tying = HEED_TIE_NONE;
        return true;
    case 6:
        *name = "rotary neighbours, own widths and base, cosine";
        config->attention.score = HEED_SCORE_COSINE;
        c->positions = HEED_POSITIONS_ROTARY_NEIGHBOURS;
        c->rope_base = 50;
        c->d_k = 6;
        c->d_v = 5;
        return true;
    case 7:
        *name = "elu, rotary";
        config->attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_ELU, {0});
        config->attention.dropout = 0;
        c->positions = HEED_POSITIONS_ROTARY;
        return true;
    case 8:
        *name = "elu, own widths, before, learned";
        config->attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_ELU, {0});
        config->attention.dropout = 0;
        c->positions = HEED_POSITIONS_LEARNED;
        c->pre_norm = true;
        c->d_k = 3;
        c->d_v = 9;
        return true;
    case 9:
        *name = "a band";
        config->attention.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_BAND, {5});
        return true;
    case 10:
        *name = "a band and the first two";
        config->attention.pattern = (heed_slot_spec){
            .count = 2, .term = {{HEED_PATTERN_BAND, {4}}, {HEED_PATTERN_GLOBAL, {2}}}};
        c->positions = HEED_POSITIONS_ROTARY;
        return true;
    case 11:
        *name = "local-m";
        config->attention.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_LOCAL_M, {3});
        config->attention.score = HEED_SCORE_COSINE;
        return true;
    case 12:
        *name = "shared heads of keys, alibi, own widths";
        c->kv_heads = 2;
        c->d_k = 6;
        c->d_v = 3;
        c->positions = HEED_POSITIONS_NONE;
        config->attention.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_ALIBI, {0});
        return true;
    case 13:
        *name = "one head of keys, a table, persistent rows, a band";
        c->kv_heads = 1;
        config->attention.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_TABLE, {3});
        config->attention.memory = (heed_slot_spec)HEED_ONE(HEED_MEMORY_PERSISTENT, {3});
        config->attention.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_BAND, {6});
        return true;
    case 14:
        *name = "elu, shared heads of keys";
        c->kv_heads = 2;
        config->attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_ELU, {0});
        config->attention.dropout = 0;
        return true;
    case 15:
        *name = "ssru in a decoder, Marian's positions";
        c->decoder_unit = HEED_DECODER_UNIT_SSRU;
        c->positions = HEED_POSITIONS_SINUSOID_MARIAN;
        return true;
    case 16:
        *name = "ssru in a decoder, before";
        c->decoder_unit = HEED_DECODER_UNIT_SSRU;
        c->pre_norm = true;
        return true;
    case 17:
        *name = "general, own widths, biases";
        config->attention.score = HEED_SCORE_GENERAL;
        c->attention_bias = true;
        c->d_k = 5;
        c->d_v = 7;
        return true;
    case 18:
        *name = "general, shared heads of keys, alibi, a band";
        config->attention.score = HEED_SCORE_GENERAL;
        config->attention.pattern = (heed_slot_spec)HEED_ONE(HEED_PATTERN_BAND, {5});
        config->attention.position_bias = (heed_slot_spec)HEED_ONE(HEED_BIAS_ALIBI, {0});
        c->kv_heads = 2;
        return true;
    case 19: /* the last: goes from key to key */
        *name = "rfa with gates, own widths, biases, rotary";
        config->attention.normaliser = (heed_slot_spec)HEED_ONE(HEED_NORMALISE_RFA, {160, 1});
        config->attention.dropout = 0;
        c->positions = HEED_POSITIONS_ROTARY;
        c->attention_bias = true;
        c->d_k = 4;
        c->d_v = 5;
        return arch == HEED_ARCH_DECODER;
    default:
        return false;
    }
}

/* Calls check with every form, and names it where that fails. */
static inline void for_each_one_stack(heed_arch arch, void (*check)(const heed_model_config *))
{
    heed_model_config config;
    const char *name;
    for (int i = 0; one_stack_form(arch, i, &config, &name); i++) {
        print_message("    %s\n", name);
        check(&config);
    }
}

/* The same with every form of attention in the table that a stack of `arch` takes. */
static inline void for_each_attention(heed_arch arch, void (*check)(const heed_model_config *))
{
    const bool causal = arch == HEED_ARCH_DECODER;
    for (int n = 0; n < ATTENTION_FORMS; n++) {
        const struct attention_form *f = &attention_forms[n];
        const heed_attend_options o = attention_form_options(f, causal);
        heed_model_config config = one_stack_config(arch);
        if (!attention_form_can(f, causal ? HEED_CAN_CAUSAL | HEED_CAN_CACHE : 0) ||
            !attention_form_takes(f, causal))
            continue;
        config.attention = (heed_attention_config){.queries = o.queries,
                                                   .memory = o.memory,
                                                   .pattern = o.pattern,
                                                   .position_bias = o.position_bias,
                                                   .normaliser = o.normaliser};
        config.transformer.kv_heads = f->kv_heads;
        print_message("    %s\n", attention_form_name(f));
        check(&config);
    }
}

/* Parameters that are 0 or 1 at first (biases, gains) drawn, so that one left out is noticed;
 * all of them fp32 numbers, which is what files hold, also in the double build. */
static inline heed_model *new_rough_model(const heed_model_config *config)
{
    heed_model *m = new_model(config);
    heed_params *p = heed_model_params(m);
    const heed_rng rng = heed_rng_stream(&(heed_rng_key){.seed = 77});
    for (int i = 0; i < heed_params_count(p); i++) {
        heed_tensor *x = heed_params_entry(p, i).tensor;
        heed_real *data = heed_tensor_data(x);
        for (int64_t k = 0; k < heed_tensor_count(x); k++) {
            const double noise = (double)heed_rng_below(&rng, (uint64_t)(i * 4096 + k), 1000);
            if (data[k] == 0 || data[k] == 1)
                data[k] += (heed_real)(noise / 2000);
            data[k] = (heed_real)(float)data[k];
        }
    }
    return m;
}

#endif
