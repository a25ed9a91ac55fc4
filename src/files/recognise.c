/* recognise.c: a file is known by its first bytes, a directory by the names in it. */
#include "files/recognise.h"
#include "base/error.h"
#include "base/file.h"
#include "base/zip.h"
#include "files/gguf.h"
#include "files/lex.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static bool ends_with(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

/* ---- files ---- */

struct look {
    const unsigned char *bytes; /* of a file that is packed by gzip, the first that it holds */
    size_t size;
    const char *path; /* without .gz */
};

static bool looks_argos(const struct look *l)
{
    return heed__is_zip(l->bytes, l->size) && ends_with(l->path, ".argosmodel");
}

/* Marian's begins with 64 bits of 1. */
static bool looks_ct2(const struct look *l)
{
    heed__byte_cursor c = heed__bytes_over(l->bytes, l->size);
    const uint32_t version = heed__read_u32(&c), next = heed__read_u32(&c);
    return version >= 1 && version <= 6 && next != 0 && ends_with(l->path, "model.bin");
}

static bool looks_gguf(const struct look *l)
{
    return heed__is_gguf(l->bytes, l->size);
}

static bool looks_lex(const struct look *l)
{
    return heed__is_lex(l->bytes, l->size);
}

static bool looks_marian(const struct look *l)
{
    heed__byte_cursor c = heed__bytes_over(l->bytes, l->size);
    const uint64_t version = heed__read_u64(&c), n = heed__read_u64(&c);
    return !c.broken && (version == 1 || version == 2) && n > 0 && n < 1 << 20 &&
           ends_with(l->path, ".bin");
}

static bool looks_pytorch(const struct look *l)
{
    return heed__is_zip(l->bytes, l->size) && !ends_with(l->path, ".npz");
}

static bool looks_npz(const struct look *l)
{
    const bool npy = l->size >= 6 && memcmp(l->bytes, "\x93NUMPY", 6) == 0;
    return npy || (heed__is_zip(l->bytes, l->size) && ends_with(l->path, ".npz"));
}

/* An archive's list of names is at its end. */
static bool looks_marian_npz(const struct look *l)
{
    static const char name[] = "special:model.yml.npy";
    const size_t end = l->size < (1 << 20) ? l->size : 1 << 20;
    return looks_npz(l) && memmem(l->bytes + l->size - end, end, name, sizeof name - 1);
}

static bool looks_onnx(const struct look *l)
{
    return ends_with(l->path, ".onnx");
}

/* Seven numbers that fit each other. */
static bool looks_llama2c(const struct look *l)
{
    heed__byte_cursor c = heed__bytes_over(l->bytes, l->size);
    int32_t n[7];
    for (int i = 0; i < 7; i++)
        n[i] = (int32_t)heed__read_u32(&c);
    return !c.broken && n[0] > 0 && n[0] < 1 << 20 && n[3] > 0 && n[0] % n[3] == 0 && n[2] > 0 &&
           n[2] < 1024 && ends_with(l->path, ".bin");
}

static const struct {
    bool (*looks)(const struct look *l);
    heed__publisher publisher;
    heed__found_reader *read;
} kinds[] = {
    {looks_gguf, HEED__GGUF_FILE, heed__gguf_read},
    {looks_lex, HEED__WEIGHTS_ALONE, heed__lex_read},
    {looks_marian_npz, HEED__MARIAN, heed__npz_read},
    {looks_npz, HEED__WEIGHTS_ALONE, heed__npz_read},
    {looks_onnx, HEED__WEIGHTS_ALONE, heed__onnx_read},
    {looks_argos, HEED__ARGOS, heed__ct2_read},
    {looks_pytorch, HEED__WEIGHTS_ALONE, heed__pytorch_read},
    {looks_ct2, HEED__CTRANSLATE2, heed__ct2_read},
    {looks_marian, HEED__MARIAN, heed__marian_read},
    {looks_llama2c, HEED__LLAMA2C, heed__llama2c_read},
};

/* A package of Argos: what is in its folder model/.  Whether that is there is seen when it is
 * read. */
static heed_status set_package(heed__recognised *r, const char *package, heed_error *err)
{
    r->publisher = HEED__ARGOS;
    r->read = heed__ct2_read;
    heed_status status = heed__pathname_in(r->folder, package, "model", err);
    return status ? status : heed__pathname_in(r->weights, r->folder, "model.bin", err);
}

/* Packed: its folder has any name.  An archive that is damaged says so when it is read. */
static heed_status set_archive(heed__recognised *r, const char *path, heed_error *err)
{
    heed__pathname package;
    heed_error damaged = {0};
    return set_package(
        r, heed__archive_find(path, "metadata.json", package, &damaged) ? path : package, err);
}

static heed_status look_at(const char *path, heed__recognised *r, heed_error *err)
{
    const void *bytes;
    size_t size;
    unsigned char begin[4096];
    heed__pathname plain;
    struct look l = {.path = plain};
    heed_status status = heed__pathname_format(plain, err, "%s", path);
    if (!status)
        status = heed__file_map(path, &bytes, &size, err);
    if (status)
        return status;
    const size_t unpacked = heed__gzip_begin(bytes, size, begin, sizeof begin);
    if (unpacked && ends_with(plain, ".gz"))
        plain[strlen(plain) - 3] = '\0';
    l.bytes = unpacked ? begin : bytes;
    l.size = unpacked ? unpacked : size;
    for (size_t i = 0; !r->publisher && i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].looks(&l)) {
            r->publisher = kinds[i].publisher;
            r->read = kinds[i].read;
        }
    heed__file_unmap(bytes, size);
    if (r->publisher == HEED__ARGOS)
        return set_archive(r, path, err);
    return r->publisher ? heed__pathname_format(r->weights, err, "%s", path) : HEED_OK;
}

/* ---- directories ---- */

/* A config.json of Hugging Face names its model_type; heed's never does. */
static bool is_hugging_face(const char *path)
{
    json_error_t why;
    json_t *config = json_load_file(path, 0, &why);
    const bool is = json_is_string(json_object_get(config, "model_type"));
    json_decref(config);
    return is;
}

/* Of Argos, unpacked. */
static bool is_package(const char *folder)
{
    heed__pathname about, model;
    struct stat st;
    return !heed__pathname_in(about, folder, "metadata.json", NULL) &&
           !heed__pathname_in(model, folder, "model", NULL) && stat(about, &st) == 0 &&
           stat(model, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The files that can hold the weights; tokenisers and shortlists have other beginnings, and Marian
 * keeps an optimiser's numbers beside a model. */
static bool may_hold_weights(const char *name)
{
    if (strncmp(name, "tok", 3) == 0 || strncmp(name, "lex.", 4) == 0 ||
        strstr(name, ".optimizer."))
        return false;
    return ends_with(name, ".bin") || ends_with(name, ".bin.gz") || ends_with(name, ".gguf") ||
           ends_with(name, ".npz");
}

/* Shorter names are tried first: model.npz before model.iter1000.npz. */
static bool comes_before(const char *one, const char *other)
{
    const size_t n = strlen(one), m = strlen(other);
    return n < m || (n == m && strcmp(one, other) < 0);
}

/* The first of those names behind `last` ("": of all); *next is "" if there is none. */
static void next_weights(const char *folder, const char *last, heed__pathname next)
{
    DIR *d = opendir(folder);
    *next = '\0';
    for (struct dirent *e; d && (e = readdir(d));)
        if (may_hold_weights(e->d_name) && comes_before(last, e->d_name) &&
            (!*next || comes_before(e->d_name, next)))
            snprintf(next, sizeof(heed__pathname), "%s", e->d_name);
    if (d)
        closedir(d);
}

static heed_status look_into(const char *folder, heed__recognised *r, heed_error *err)
{
    heed__pathname path;
    heed_status status = heed__pathname_in(path, folder, "config.json", err);
    if (!status && is_hugging_face(path)) {
        r->publisher = HEED__HUGGING_FACE;
        return heed__pathname_format(r->weights, err, "%s", path);
    }
    struct stat st;
    const bool own = !status && stat(path, &st) == 0;
    if (!status && is_package(folder))
        return set_package(r, folder, err);
    status = heed__pathname_in(path, folder, "model.bin", err);
    if (!status && stat(path, &st) == 0)
        return look_at(path, r, err);
    heed__pathname last = "", name;
    while (!own && !status && !r->publisher) {
        next_weights(folder, last, name);
        if (!*name)
            break;
        memcpy(last, name, sizeof last);
        status = heed__pathname_in(path, folder, name, err);
        if (!status)
            status = look_at(path, r, err);
    }
    return status;
}

heed_status heed__recognise(const char *path, heed__recognised *r, heed_error *err)
{
    struct stat st;
    heed__pathname name;
    r->publisher = HEED__NOT_FOUND_AS_SUCH;
    r->read = NULL;
    if (stat(path, &st) != 0)
        return HEED_OK;
    if (S_ISDIR(st.st_mode)) {
        heed_status status = heed__pathname_format(r->folder, err, "%s", path);
        return status ? status : look_into(path, r, err);
    }
    heed_status status = heed__pathname_split(path, r->folder, name, err);
    return status || !S_ISREG(st.st_mode) ? status : look_at(path, r, err);
}
