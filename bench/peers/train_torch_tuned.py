"""The same training steps with PyTorch tuned by hand: q, k and v in one product, no masks where the
padding of length-sorted batches does not need them, dropout only where heed has it, in-place
residuals, the output projection on real tokens only, Adam over lists of tensors."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from common import PAD, PRESETS, arguments, measure


class Attention(nn.Module):
    def __init__(self, d, heads, cross):
        super().__init__()
        self.heads, self.scale = heads, (d // heads) ** -0.5
        self.cross = cross
        if cross:
            self.q, self.kv = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)
        else:
            self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)

    def split(self, x, parts):
        b, n, _ = x.shape
        x = x.view(b, n, parts, self.heads, -1).permute(2, 0, 3, 1, 4)
        return [p.reshape(b * self.heads, n, -1) for p in x]

    def forward(self, x, memory, mask):
        if self.cross:
            (q,), (k, v) = self.split(self.q(x), 1), self.split(self.kv(memory), 2)
        else:
            q, k, v = self.split(self.qkv(x), 3)
        if mask is None:
            scores = torch.bmm(q * self.scale, k.transpose(1, 2))
        else:
            scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=self.scale)
        y = torch.bmm(torch.softmax(scores, -1), v)
        b, n, d = x.shape
        return self.out(y.view(b, self.heads, n, -1).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, d, ff, heads, cross, dropout):
        super().__init__()
        self.self, self.norm1 = Attention(d, heads, False), nn.LayerNorm(d, eps=1e-6)
        self.cross = Attention(d, heads, True) if cross else None
        self.norm2 = nn.LayerNorm(d, eps=1e-6) if cross else None
        self.inner, self.outer = nn.Linear(d, ff), nn.Linear(ff, d)
        self.norm3 = nn.LayerNorm(d, eps=1e-6)
        self.dropout = dropout

    def add(self, x, y):
        return F.dropout(y, self.dropout, self.training).add_(x)

    def forward(self, x, memory, self_mask, cross_mask):
        x = self.norm1(self.add(x, self.self(x, x, self_mask)))
        if self.cross is not None:
            x = self.norm2(self.add(x, self.cross(x, memory, cross_mask)))
        return self.norm3(self.add(x, self.outer(F.relu_(self.inner(x)))))


class Translator(nn.Module):
    def __init__(self, encoder, decoder, d, ff, heads, vocabulary, dropout=0.1):
        super().__init__()
        self.d, self.heads, self.dropout = d, heads, dropout
        self.table = nn.Parameter(torch.randn(vocabulary, d) * d ** -0.5)
        self.encoder = nn.ModuleList(Layer(d, ff, heads, False, dropout) for _ in range(encoder))
        self.decoder = nn.ModuleList(Layer(d, ff, heads, True, dropout) for _ in range(decoder))
        position = torch.arange(1024).unsqueeze(1)
        rate = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        table = torch.zeros(1024, d)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        self.register_buffer("positions", table)
        self.register_buffer("causal", torch.triu(torch.full((1024, 1024), float("-inf")), 1))

    def embed(self, ids):
        x = F.embedding(ids, self.table).mul(math.sqrt(self.d)).add_(self.positions[:ids.shape[1]])
        return F.dropout(x, self.dropout, self.training)

    def forward(self, source, target):
        pad = None
        if (source == PAD).any():  # an additive mask for each head; none for a batch of one length
            pad = torch.zeros(source.shape).masked_fill_(source == PAD, float("-inf"))
            pad = pad.repeat_interleave(self.heads, 0).unsqueeze(1)
        n = target.shape[1]
        x, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            x = layer(x, None, pad, None)
        for layer in self.decoder:
            y = layer(y, x, self.causal[:n, :n], pad)
        return y


def main():
    a = arguments()
    model = Translator(*PRESETS[a.preset]).train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, foreach=True)

    def step(source, target_in, target_out):
        adam.zero_grad(set_to_none=True)
        real = target_out.reshape(-1).nonzero().squeeze(1)
        h = model(source, target_in).reshape(-1, model.d).index_select(0, real)
        loss = F.cross_entropy(h @ model.table.t(), target_out.reshape(-1)[real], label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()

    measure("PyTorch tuned by hand", a, step)


main()
