/* sentencepiece_shim.h: what heed uses of SentencePiece, as C. No exception passes through, and its
 * log is silent.  Models and texts must have been checked (vocab_spm.c, utf8.h): SentencePiece does
 * not check all of its input. */
#ifndef HEED_VOCAB_SENTENCEPIECE_SHIM_H
#define HEED_VOCAB_SENTENCEPIECE_SHIM_H

#include <heed/vocab.h>

#ifdef __cplusplus
extern "C" {
#define HEED__NOEXCEPT noexcept
#else
#define HEED__NOEXCEPT
#endif

typedef struct heed__spm heed__spm;
/* The bytes are not needed after the call. */
heed__spm *heed__spm_open(const void *bytes, size_t size, heed_error *err) HEED__NOEXCEPT;
void heed__spm_close(heed__spm *s) HEED__NOEXCEPT;
/* May be called by several threads at once; the results live in the arena. */
heed_status heed__spm_encode(const heed__spm *s, const char *text, size_t length, heed_arena *arena,
                             heed_tokens *tokens, heed_error *err) HEED__NOEXCEPT;
heed_status heed__spm_decode(const heed__spm *s, const int32_t *ids, int64_t n, heed_arena *arena,
                             const char **text, heed_error *err) HEED__NOEXCEPT;
/* The text as SentencePiece tokenises it: normalised, U+2581 for spaces and before the first
 * word. */
heed_status heed__spm_normalize(const heed__spm *s, const char *text, size_t length,
                                heed_arena *arena, const char **normal, size_t *normal_length,
                                heed_error *err) HEED__NOEXCEPT;

typedef struct heed__spm_model {
    const void *bytes;
    size_t size;
    void *owner;
} heed__spm_model;
/* Learns a model; free it.  ARGUMENT if the text does not fit the options. */
heed_status heed__spm_train(const heed_vocab_options *options, const char *symbols,
                            const heed_line_source *lines, heed__spm_model *model,
                            heed_error *err) HEED__NOEXCEPT;
void heed__spm_model_free(heed__spm_model *model) HEED__NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
