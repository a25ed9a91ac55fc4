// sentencepiece_shim.cc: the one C++ file of heed, because SentencePiece has no C interface.
// Every function is noexcept and turns exceptions, and SentencePiece's own status, into a
// heed_error.
#include "vocab/sentencepiece_shim.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
#include "base/error.h"
}

// Exported by the library, but in a header that is not installed.
namespace sentencepiece
{
namespace logging
{
void SetMinLogLevel(int level);
}
} // namespace sentencepiece

struct heed__spm {
    sentencepiece::SentencePieceProcessor processor;
};

namespace
{

using sentencepiece::util::Status;
using sentencepiece::util::StatusCode;

const int SILENT = 3; // only fatal messages; errors are returned as a status

heed_status out_of_memory(heed_error *err)
{
    return heed__fail(err, HEED_MEMORY, "out of memory in SentencePiece");
}

// SentencePiece's message begins with its source line and the condition in brackets.
heed_status failed(heed_error *err, heed_status status, const char *what, const Status &why)
{
    const char *text = why.error_message();
    const char *behind = std::strstr(text, "] ");
    return heed__fail(err, status, "%s: SentencePiece says: %s", what, behind ? behind + 2 : text);
}

// Runs the body and converts exceptions to an error.
template <class Body> heed_status guarded(heed_error *err, const char *what, Body body) noexcept
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return out_of_memory(err);
    } catch (const std::exception &e) {
        return heed__fail(err, HEED_FORMAT, "%s: SentencePiece says: %s", what, e.what());
    } catch (...) {
        return heed__fail(err, HEED_FORMAT, "%s: SentencePiece failed without saying why", what);
    }
}

heed_status copy_text(const std::string &from, heed_arena *arena, const char **text,
                      heed_error *err)
{
    char *copy = static_cast<char *>(heed_arena_allocate(arena, from.size() + 1));
    if (!copy)
        return out_of_memory(err);
    std::memcpy(copy, from.c_str(), from.size() + 1);
    *text = copy;
    return HEED_OK;
}

// Gives the caller's lines to the trainer.  A failed line ends the iteration; the error is kept.
class Lines : public sentencepiece::SentenceIterator
{
  public:
    explicit Lines(const heed_line_source *source) : source_(source)
    {
        Next();
    }
    bool done() const override
    {
        return done_;
    }
    void Next() override
    {
        const char *text = nullptr;
        size_t length = 0;
        done_ = source_->next(source_->context, &text, &length, &error) != HEED_OK || !text;
        if (!done_)
            line_.assign(text, length);
    }
    const std::string &value() const override
    {
        return line_;
    }
    Status status() const override
    {
        return error.status ? Status(StatusCode::kUnknown, error.text) : Status();
    }

    heed_error error = {HEED_OK, ""};

  private:
    const heed_line_source *source_;
    std::string line_;
    bool done_ = false;
};

// Not std::to_string, whose decimal point depends on the locale.
std::string fraction(double x)
{
    char text[16];
    int millionths = static_cast<int>(x * 1e6 + 0.5);
    std::snprintf(text, sizeof text, "%d.%06d", millionths / 1000000, millionths % 1000000);
    return text;
}

heed_status explain(const heed_vocab_options *o, const Status &why, heed_error *err)
{
    int size, needed;
    const char *characters = std::strstr(why.error_message(), "required_chars. ");
    if (characters && std::sscanf(characters, "required_chars. %d vs %d", &size, &needed) == 2)
        return heed__fail(
            err, HEED_ARGUMENT,
            "cannot learn a vocabulary of %lld pieces: the text has so many different "
            "characters that it takes %d; raise the size or lower the coverage",
            static_cast<long long>(o->size), needed);
    if (std::strstr(why.error_message(), "sentences_.empty()"))
        return heed__fail(err, HEED_ARGUMENT, "cannot learn a vocabulary: there is no usable line");
    return failed(err, HEED_ARGUMENT, "cannot learn a vocabulary", why);
}

} // namespace

heed__spm *heed__spm_open(const void *bytes, size_t size, heed_error *err) noexcept
{
    heed__spm *s = nullptr;
    heed_status status = guarded(err, "cannot load it", [&]() {
        sentencepiece::logging::SetMinLogLevel(SILENT);
        s = new heed__spm;
        Status loaded =
            s->processor.LoadFromSerializedProto({static_cast<const char *>(bytes), size});
        return loaded.ok() ? HEED_OK : failed(err, HEED_FORMAT, "cannot open a vocabulary", loaded);
    });
    if (status) {
        delete s;
        return nullptr;
    }
    return s;
}

void heed__spm_close(heed__spm *s) noexcept
{
    delete s;
}

heed_status heed__spm_encode(const heed__spm *s, const char *text, size_t length, heed_arena *arena,
                             heed_tokens *tokens, heed_error *err) noexcept
{
    return guarded(err, "cannot encode a text", [&]() {
        std::vector<int> ids;
        Status status = s->processor.Encode({text, length}, &ids);
        if (!status.ok())
            return failed(err, HEED_FORMAT, "cannot encode a text", status);
        size_t size = ids.size() * sizeof(int32_t);
        int32_t *copy = static_cast<int32_t *>(heed_arena_allocate(arena, size));
        if (!copy)
            return out_of_memory(err);
        if (size)
            std::memcpy(copy, ids.data(), size);
        *tokens = {copy, static_cast<int64_t>(ids.size())};
        return HEED_OK;
    });
}

heed_status heed__spm_decode(const heed__spm *s, const int32_t *ids, int64_t n, heed_arena *arena,
                             const char **text, heed_error *err) noexcept
{
    return guarded(err, "cannot decode", [&]() {
        std::string out;
        Status status = s->processor.Decode(std::vector<int>(ids, ids + n), &out);
        return status.ok() ? copy_text(out, arena, text, err)
                           : failed(err, HEED_FORMAT, "cannot decode", status);
    });
}

heed_status heed__spm_normalize(const heed__spm *s, const char *text, size_t length,
                                heed_arena *arena, const char **normal, size_t *normal_length,
                                heed_error *err) noexcept
{
    return guarded(err, "cannot encode a text", [&]() {
        std::vector<std::string> pieces;
        Status status = s->processor.Encode({text, length}, &pieces);
        if (!status.ok())
            return failed(err, HEED_FORMAT, "cannot encode a text", status);
        std::string all;
        for (const std::string &piece : pieces) {
            unsigned byte; // of a character that is in no piece, if the model has byte pieces
            if (std::sscanf(piece.c_str(), "<0x%02X>", &byte) == 1 &&
                s->processor.IsByte(s->processor.PieceToId(piece)))
                all += static_cast<char>(byte);
            else
                all += piece;
        }
        *normal_length = all.size();
        return copy_text(all, arena, normal, err);
    });
}

heed_status heed__spm_train(const heed_vocab_options *o, const char *symbols,
                            const heed_line_source *source, heed__spm_model *model,
                            heed_error *err) noexcept
{
    return guarded(err, "cannot learn a vocabulary", [&]() {
        sentencepiece::logging::SetMinLogLevel(SILENT);
        // One thread: its sums, and with them the pieces, depend on the number of threads.
        // No normalisation in the model: heed has done it (vocab_clean.c).
        const std::unordered_map<std::string, std::string> settings = {
            {"model_type", o->kind == HEED_BPE ? "bpe" : "unigram"},
            {"vocab_size", std::to_string(o->size)},
            {"character_coverage", fraction(o->coverage > 0 ? o->coverage : 1)},
            {"user_defined_symbols", symbols},
            {"unk_id", std::to_string(HEED_UNK)},
            {"bos_id", std::to_string(HEED_BOS)},
            {"eos_id", std::to_string(HEED_EOS)},
            {"pad_id", "-1"},
            {"normalization_rule_name", "identity"},
            {"split_digits", "true"},
            {"hard_vocab_limit", "false"},
            {"max_sentence_length", std::to_string(1 << 30)},
            {"num_threads", "1"},
            {"minloglevel", std::to_string(SILENT)},
        };
        Lines lines(source);
        auto *bytes = new std::string;
        model->owner = bytes;
        Status status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, bytes);
        if (lines.error.status)
            return heed__fail(err, lines.error.status, "%s", lines.error.text);
        if (!status.ok())
            return explain(o, status, err);
        model->bytes = bytes->data();
        model->size = bytes->size();
        return HEED_OK;
    });
}

void heed__spm_model_free(heed__spm_model *model) noexcept
{
    delete static_cast<std::string *>(model->owner);
    *model = {};
}
