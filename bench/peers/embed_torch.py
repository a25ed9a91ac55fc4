#!/usr/bin/env python3
"""embed_torch.py MODEL LINES [LIBHEED]: sentence vectors of heed beside PyTorch, from the same file.

MODEL is a BERT-style directory of Hugging Face (config.json, one .safetensors).  BERT is written out
here, as its paper has it; token ids are heed's.  Says the smallest cosine between heed's vectors and
PyTorch's in float64, then sentences a second of CPU time of both, one thread each, in alternating turns."""
import ctypes
import glob
import json
import os
import struct
import sys
import time

import numpy
import torch

torch.set_num_threads(1)
model, lines, library = sys.argv[1], sys.argv[2], (sys.argv + ["build/gcc/libheed.so"])[3]
config = json.load(open(os.path.join(model, "config.json")))
text = [line for line in open(lines, encoding="utf-8").read().split("\n") if line]


# ---- heed, through its C interface ----
class Tokens(ctypes.Structure):
    _fields_ = [("id", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_int64)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 512)]


heed = ctypes.CDLL(os.path.abspath(library))
for name in ("heed_encoder_open", "heed_arena_new", "heed_encoder_vocab"):
    getattr(heed, name).restype = ctypes.c_void_p
err = Error()
encoder = ctypes.c_void_p(heed.heed_encoder_open(model.encode(), 1, None, ctypes.byref(err)))
arena = ctypes.c_void_p(heed.heed_arena_new(None, None))
if not encoder:
    sys.exit(err.text.decode())
vocab = ctypes.c_void_p(heed.heed_encoder_vocab(encoder))
d = config["hidden_size"]


def heed_vectors(part):
    heed.heed_arena_reset(arena)
    array, out = (ctypes.c_char_p * len(part))(*[t.encode() for t in part]), ctypes.POINTER(ctypes.c_float)()
    if heed.heed_encoder_embed(encoder, array, ctypes.c_int64(len(part)), arena, ctypes.byref(out), ctypes.byref(err)):
        sys.exit(err.text.decode())
    return numpy.ctypeslib.as_array(out, (len(part), d))


def ids(line):
    tokens, raw = Tokens(), line.encode()
    heed.heed_arena_reset(arena)
    heed.heed_vocab_encode(vocab, raw, ctypes.c_size_t(len(raw)), arena, ctypes.byref(tokens), None)
    return [101] + tokens.id[:tokens.count] + [102]


# ---- PyTorch ----
def read(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        base = f.tell()
        kind = {"F16": numpy.float16, "F32": numpy.float32, "I64": numpy.int64}
        tensors = {}
        for name, t in header.items():
            if name == "__metadata__":
                continue
            f.seek(base + t["data_offsets"][0])
            raw = f.read(t["data_offsets"][1] - t["data_offsets"][0])
            tensors[name] = torch.from_numpy(numpy.frombuffer(raw, kind[t["dtype"]]).reshape(t["shape"]).copy())
        return tensors


weights = read(glob.glob(os.path.join(model, "*.safetensors"))[0])


class Bert:
    def __init__(self, dtype):
        self.w = {k: v.to(dtype) for k, v in weights.items() if v.is_floating_point()}
        self.eps, self.heads = config["layer_norm_eps"], config["num_attention_heads"]

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, (d,), self.w[name + ".weight"], self.w[name + ".bias"], self.eps)

    def vectors(self, rows):
        """Means over the tokens of padded rows, of length 1."""
        width = max(map(len, rows))
        x = torch.tensor([r + [0] * (width - len(r)) for r in rows])
        there = torch.tensor([[1.0] * len(r) + [0.0] * (width - len(r)) for r in rows], dtype=self.w["embeddings.LayerNorm.bias"].dtype)
        mask = (there[:, None, None, :] - 1) * 1e9
        e = "embeddings."
        h = self.w[e + "word_embeddings.weight"][x] + self.w[e + "position_embeddings.weight"][:width] \
            + self.w[e + "token_type_embeddings.weight"][0]
        h = self.norm(h, e + "LayerNorm")
        for i in range(config["num_hidden_layers"]):
            p = f"encoder.layer.{i}."
            q, k, v = (self.linear(h, p + "attention.self." + n).view(*x.shape, self.heads, -1).transpose(1, 2)
                       for n in ("query", "key", "value"))
            a = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask) \
                if hasattr(torch.nn.functional, "scaled_dot_product_attention") \
                else torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5 + mask, -1) @ v
            a = a.transpose(1, 2).reshape(*x.shape, d)
            h = self.norm(h + self.linear(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            f = torch.nn.functional.gelu(self.linear(h, p + "intermediate.dense"))
            h = self.norm(h + self.linear(f, p + "output.dense"), p + "output.LayerNorm")
        mean = (h * there[:, :, None]).sum(1) / there.sum(1, keepdim=True)
        return torch.nn.functional.normalize(mean)


with torch.inference_mode():
    first = text[:100]
    right = Bert(torch.float64).vectors([ids(t) for t in first]).numpy()
    said = heed_vectors(first).astype(numpy.float64)
    print(f"smallest cosine of {len(first)} sentences: {(right * said).sum(1).min():.8f}, "
          f"largest difference {abs(right - said).max():.2e}")
    single = Bert(torch.float32)
    rows = [ids(t) for t in text]
    for batch in (1, 32):
        best = [0, 0]
        for turn in range(5):
            part = [(turn * 64 + i) % len(text) for i in range(64)]
            groups = [part[i:i + batch] for i in range(0, len(part), batch)]
            begin = time.process_time()
            for g in groups:
                single.vectors([rows[i] for i in g])
            middle = time.process_time()
            for g in groups:
                heed_vectors([text[i] for i in g])
            end = time.process_time()
            best = [max(best[0], len(part) / (middle - begin)), max(best[1], len(part) / (end - middle))]
        print(f"batch {batch}: PyTorch {best[0]:.1f}, heed {best[1]:.1f} sentences/s, ratio {best[1] / best[0]:.2f}")
