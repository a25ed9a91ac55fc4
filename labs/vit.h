/* vit.h: the Vision Transformer (Dosovitskiy et al. 2021): a picture is a sentence of patches. */
#ifndef HEED_LABS_VIT_H
#define HEED_LABS_VIT_H

#include <heed/heed.h>
#include <heed/stack.h>

typedef struct vit_sizes {
    int64_t side, channels, patch; /* pictures of side x side pixels, in patches of patch x patch */
    int64_t classes, d, ff, layers, heads;
    double dropout;
    bool positions; /* false: none, so that the order of the patches says nothing */
} vit_sizes;

typedef struct vit {
    vit_sizes sizes;
    heed_tensor *patch, *patch_bias; /* E (patch*patch*C,D) and its bias (D) */
    heed_tensor *start;              /* x_class (1,D) */
    heed_tensor *positions;          /* E_pos (1+P,D), or NULL */
    heed_stack stack;
    heed_linear_layer head;
} vit;

/* Patches in a line; a picture has the square of that. */
int64_t vit_patches(const vit_sizes *sizes);
/* arena holds the list of layers as long as the model is used. */
void vit_build(vit *m, heed_scope s, const vit_sizes *sizes, heed_arena *arena);
/* pixels (B*side*side,C) -> logits (B,classes); recorder may be NULL. */
heed_tensor *vit_logits(heed_tape *t, const vit *m, heed_tensor *pixels,
                        heed_attention_recorder *recorder);
/* Attention roll-out (Abnar and Zuidema 2020): how much of each patch arrives in the class row, out
 * (B,P).  False when memory is short. */
bool vit_rollout(heed_tape *t, const heed_attention_recorder *recorder, heed_real *out);

#endif
