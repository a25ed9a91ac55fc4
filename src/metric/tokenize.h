/* tokenize.h: rewriting a line so that its words are between spaces. */
#ifndef HEED_METRIC_TOKENIZE_H
#define HEED_METRIC_TOKENIZE_H

#include "metric/codes.h"
#include <heed/metric.h>

/* BLEU's tokenisers.  The line has been stripped of the spaces at its end. */
void heed__tokenize(heed__code_line *line, heed_tokenize how);
/* Tercom's, letter case included. */
void heed__tokenize_ter(heed__code_line *line, const heed_ter_options *o);
/* ATAT, the compound split of the paper's evaluation: `a-b` to `a ##AT##-##AT## b`. */
void heed__split_compounds(heed__codes *out, const heed__codes *in);
/* chrF++: the punctuation at the end of a word, else at its beginning, is a word of its own. */
void heed__split_punctuation(heed__codes *out, const heed__codes *in);

/* What mteval's and Tercom's tokenisers share.  Entities: &quot; &amp; &lt; &gt;. */
void heed__replace(heed__codes *c, const char *from, const char *to); /* ASCII, `to` not longer */
void heed__replace_entities(heed__codes *c);
void heed__split_western(heed__code_line *line);
void heed__split_numbers(heed__code_line *line);
void heed__pad(heed__codes *out, const heed__codes *in);
void heed__set_apart(heed__codes *out, const heed__codes *in, bool (*member)(int32_t));

#endif
