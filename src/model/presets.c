/* presets.c: sizes by name.  base and big are the paper's (table 3); small and deep are sizes that
 * a CPU trains in minutes to hours; tiny is the one that serves small corpora best.  The three of
 * recurrent translators are their papers' models in sizes for small corpora. */
#include <heed/model.h>

#define SIZES(encoder, decoder, width, hidden, n)                                                  \
    "encoder-layers", encoder, "decoder-layers", decoder, "d", width, "ff", hidden, "heads", n

static const char *const tiny[] = {SIZES("4", "4", "128", "256", "4"), NULL};
static const char *const small[] = {SIZES("3", "3", "256", "1024", "4"), NULL};
static const char *const deep[] = {SIZES("6", "2", "256", "1024", "4"), NULL};
static const char *const student[] = {SIZES("6", "2", "256", "1536", "8"),
                                      "decoder-unit",
                                      "ssru",
                                      "zero-start",
                                      "true",
                                      "positions",
                                      "sinusoid-marian",
                                      "attention-bias",
                                      "true",
                                      "output-bias",
                                      "true",
                                      NULL};
static const char *const base[] = {SIZES("6", "6", "512", "2048", "8"), NULL};
static const char *const big[] = {SIZES("6", "6", "1024", "4096", "16"), "dropout", "0.3", NULL};

#define RNN(encoder, decoder, width, kind, when)                                                   \
    "arch", "rnn", "encoder-layers", encoder, "decoder-layers", decoder, "d", width, "cell", kind, \
        "attend", when, "dropout", "0.3"

static const char *const sutskever[] = {RNN("2", "2", "512", "lstm", "never"), "reverse", "true",
                                        NULL};
static const char *const bahdanau[] = {RNN("1", "1", "512", "gru", "before"),
                                       "bidirectional",
                                       "true",
                                       "embedding",
                                       "256",
                                       "attention-score",
                                       "additive",
                                       NULL};
static const char *const luong[] = {RNN("2", "2", "512", "lstm", "after"),
                                    "reverse",
                                    "true",
                                    "input-feeding",
                                    "true",
                                    "attention-score",
                                    "general",
                                    NULL};

const heed_option_bundle *heed_model_presets(void)
{
    static const heed_option_bundle presets[] = {
        {"tiny", "4+4 layers, d 128, ff 256, 4 heads: for small corpora", tiny},
        {"small", "3+3 layers, d 256, ff 1024, 4 heads", small},
        {"deep", "6+2 layers, d 256, ff 1024, 4 heads: decodes faster than small", deep},
        {"student", "6+2 layers, d 256, ff 1536, 8 heads, SSRU: opens in Firefox (heed convert)",
         student},
        {"base", "6+6 layers, d 512, ff 2048, 8 heads: the paper's base", base},
        {"big", "6+6 layers, d 1024, ff 4096, 16 heads, dropout 0.3: the paper's big", big},
        {"sutskever", "rnn: 2+2 layers of LSTM, d 512, reversed source, no attention", sutskever},
        {"bahdanau", "rnn: GRU, d 512, both directions, additive attention before the step",
         bahdanau},
        {"luong", "rnn: 2+2 layers of LSTM, d 512, general attention after the step, fed back",
         luong},
        {NULL, NULL, NULL},
    };
    return presets;
}
