"""Training steps of GPT-2 as people write it (learned positions, pre-norm, fused attention, GELU, tied
embeddings, AdamW), and one token at a time from a cache of keys and values.

    train_torch_gpt.py TRAIN|GENERATE LAYERS D HEADS VOCABULARY CONTEXT BATCH THREADS SECONDS
"""
import json
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as f


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, past=None):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        if hasattr(f, "scaled_dot_product_attention"):
            y = f.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        else:
            w = q @ k.transpose(2, 3) * (d // self.heads) ** -0.5
            if past is None:
                w = w + torch.full((t, t), float("-inf")).triu(1)
            y = torch.softmax(w, 3) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(f.gelu(self.up(self.norm2(x)))), (k, v)


class Gpt(nn.Module):
    def __init__(self, layers, d, heads, vocabulary, longest=1024):
        super().__init__()
        self.table, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(longest, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, past=None):
        start = past[0][0].shape[2] if past else 0
        x = self.table(ids) + self.positions(torch.arange(start, start + ids.shape[1]))
        kept = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, past[i] if past else None)
            kept.append(kv)
        return self.norm(x) @ self.table.weight.T, kept


def best_of(step, seconds):
    step()
    best, start = float("inf"), time.perf_counter()
    turns = 0
    while turns < 3 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - begin)
        turns += 1
    return best


def main():
    what, layers, d, heads, vocabulary, context, batch, threads, seconds = (
        sys.argv[1], *map(int, sys.argv[2:9]), float(sys.argv[9]))
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Gpt(layers, d, heads, vocabulary)
    ids = torch.randint(vocabulary, (batch, context + 1))
    if what == "TRAIN":
        adam = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1)

        def step():
            adam.zero_grad(set_to_none=True)
            logits, _ = model(ids[:, :-1])
            f.cross_entropy(logits.reshape(-1, vocabulary), ids[:, 1:].reshape(-1)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()

        rate = batch * context / best_of(step, seconds)
    else:
        tokens = 32

        @torch.no_grad()
        def step():
            logits, past = model(ids[:1, :2])
            for _ in range(tokens):
                logits, past = model(logits[:, -1:].argmax(-1), past)

        rate = tokens / best_of(step, seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"tokens_per_second": round(rate, 1), "peak_mb": round(peak)}))


main()
