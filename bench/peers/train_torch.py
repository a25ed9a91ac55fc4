"""Training steps of nn.Transformer as people write it: padded batches, masks, tied embeddings,
dropout, label smoothing, clipping, Adam."""
import math

import torch
from torch import nn

from common import PAD, PRESETS, arguments, measure


class Translator(nn.Module):
    def __init__(self, encoder, decoder, d, ff, heads, vocabulary, dropout=0.1):
        super().__init__()
        self.d = d
        self.embedding = nn.Embedding(vocabulary, d, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=d ** -0.5)
        self.transformer = nn.Transformer(d, heads, encoder, decoder, ff, dropout, batch_first=True)
        self.output = nn.Linear(d, vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(1024).unsqueeze(1)
        rate = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        table = torch.zeros(1024, d)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        self.register_buffer("positions", table)

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(self.d) + self.positions[:ids.shape[1]])

    def forward(self, source, target):
        pad = source == PAD
        causal = self.transformer.generate_square_subsequent_mask(target.shape[1])
        h = self.transformer(self.embed(source), self.embed(target), tgt_mask=causal,
                             src_key_padding_mask=pad, tgt_key_padding_mask=target == PAD,
                             memory_key_padding_mask=pad)
        return self.output(h)


def main():
    a = arguments()
    model = Translator(*PRESETS[a.preset]).train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)

    def step(source, target_in, target_out):
        adam.zero_grad()
        logits = model(source, target_in)
        loss = loss_of(logits.reshape(-1, logits.shape[-1]), target_out.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()

    measure("nn.Transformer", a, step)


main()
