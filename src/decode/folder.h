/* folder.h: the files of a model directory. */
#ifndef HEED_DECODE_FOLDER_H
#define HEED_DECODE_FOLDER_H

#include <heed/decode.h>
#include <limits.h>

typedef struct heed__path {
    char text[PATH_MAX];
} heed__path;
/* folder/name; ARGUMENT if there is no folder, or if that is longer than a path may be. */
heed_status heed__path_in(heed__path *path, const char *folder, const char *name, heed_error *err);
/* The files of a directory's vocabularies; both paths are the same where they are one. */
heed_status heed__vocabs_find(const char *folder, heed__path path[2], heed_error *err);

#endif
