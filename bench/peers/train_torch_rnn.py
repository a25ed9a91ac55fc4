"""Training steps of recurrent translators as people write them: a packed nn.GRU or nn.LSTM encoder and,
where there is attention, a decoder whose steps are a loop in Python, each with its own projections.
bahdanau: additive attention before a GRU step, maxout readout.  luong: general attention after two
LSTM layers, input feeding.  sutskever: nn.LSTM on both sides, the source reversed, no attention."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common import PAD, RNN_PRESETS, arguments, measure


class Encoder(nn.Module):
    """(B,S,E) -> states (B,S,D or 2D), and the last ones."""
    def __init__(self, cell, layers, embedding, d, both, dropout):
        super().__init__()
        self.rnn = cell(embedding, d, layers, batch_first=True, bidirectional=both,
                        dropout=dropout if layers > 1 else 0)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.rnn(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0], last


class Bahdanau(nn.Module):
    def __init__(self, d, embedding, dropout, tuned):
        super().__init__()
        self.tuned = tuned
        self.encoder = Encoder(nn.GRU, 1, embedding, d, True, dropout)
        self.start = nn.Linear(d, d, bias=False)
        self.w, self.u = nn.Linear(d, d, bias=False), nn.Linear(2 * d, d, bias=False)
        self.v = nn.Linear(d, 1, bias=False)
        self.cell = nn.GRUCell(embedding + 2 * d, d)
        self.readout = nn.Linear(d + embedding + 2 * d, 2 * embedding)

    def read(self, s, y, c):
        t = self.readout(torch.cat([s, y, c], -1))
        return t.view(*t.shape[:-1], -1, 2).max(-1).values

    def forward(self, x, y, lengths, mask):
        states, last = self.encoder(x, lengths)
        s, keys = torch.tanh(self.start(last[1])), self.u(states) if self.tuned else None
        out, contexts = [], []
        for i in range(y.shape[1]):
            u = keys if self.tuned else self.u(states)
            e = self.v(torch.tanh(self.w(s).unsqueeze(1) + u)).squeeze(2)
            a = torch.softmax(e.masked_fill(mask, float("-inf")), 1)
            c = torch.bmm(a.unsqueeze(1), states).squeeze(1)
            s = self.cell(torch.cat([y[:, i], c], 1), s)
            out.append(s if self.tuned else self.read(s, y[:, i], c))
            contexts.append(c)
        out = torch.stack(out, 1)
        return self.read(out, y, torch.stack(contexts, 1)) if self.tuned else out


class Luong(nn.Module):
    def __init__(self, d, embedding, dropout, tuned):
        super().__init__()
        self.tuned = tuned
        self.encoder = Encoder(nn.LSTM, 2, embedding, d, False, dropout)
        self.first, self.second = nn.LSTMCell(embedding + d, d), nn.LSTMCell(d, d)
        self.general, self.join = nn.Linear(d, d, bias=False), nn.Linear(2 * d, d, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, y, lengths, mask):
        states, (h, c) = self.encoder(x, lengths)
        one, two = (h[0], c[0]), (h[1], c[1])
        fed, out = torch.zeros_like(h[0]), []
        keys = self.general(states) if self.tuned else None  # q W k = q (W k)
        for i in range(y.shape[1]):
            one = self.first(torch.cat([y[:, i], fed], 1), one)
            two = self.second(self.dropout(one[0]), two)
            k = keys if self.tuned else self.general(states)
            e = torch.bmm(k, two[0].unsqueeze(2)).squeeze(2)
            a = torch.softmax(e.masked_fill(mask, float("-inf")), 1)
            context = torch.bmm(a.unsqueeze(1), states).squeeze(1)
            fed = torch.tanh(self.join(torch.cat([context, two[0]], 1)))
            out.append(fed)
        return torch.stack(out, 1)


class Sutskever(nn.Module):
    def __init__(self, d, embedding, dropout, tuned):
        super().__init__()
        self.encoder = Encoder(nn.LSTM, 2, embedding, d, False, dropout)
        self.decoder = nn.LSTM(embedding, d, 2, batch_first=True, dropout=dropout)

    def forward(self, x, y, lengths, mask):
        _, last = self.encoder(x, lengths)
        return self.decoder(y, last)[0]


class Translator(nn.Module):
    def __init__(self, kind, d, embedding, vocabulary, tuned, dropout=0.3):
        super().__init__()
        self.reverse = kind != "bahdanau"
        self.embedding = nn.Embedding(vocabulary, embedding, padding_idx=PAD)
        self.body = {"bahdanau": Bahdanau, "luong": Luong, "sutskever": Sutskever}[kind](
            d, embedding, dropout, tuned)
        self.output = nn.Linear(embedding, vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(dropout)

    def forward(self, source, target):
        """What the output projection sees, (B,T,E)."""
        lengths = (source != PAD).sum(1)
        if self.reverse:  # each sentence's own words
            place = (lengths.unsqueeze(1) - 1 - torch.arange(source.shape[1])).clamp(min=0)
            source = torch.where(source == PAD, source, source.gather(1, place))
        x, y = self.dropout(self.embedding(source)), self.dropout(self.embedding(target))
        return self.dropout(self.body(x, y, lengths, source == PAD))


def main(tuned=False):
    a = arguments(RNN_PRESETS)
    model = Translator(a.preset, *RNN_PRESETS[a.preset], tuned).train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, foreach=tuned)

    def step(source, target_in, target_out):
        adam.zero_grad(set_to_none=tuned)
        h, wanted = model(source, target_in), target_out.reshape(-1)
        if tuned:  # the output projection on real tokens only
            real = wanted.nonzero().squeeze(1)
            h, wanted = h.reshape(-1, h.shape[-1]).index_select(0, real), wanted[real]
        logits = model.output(h)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted, ignore_index=PAD,
                               label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()

    measure("PyTorch" + (" tuned by hand" if tuned else ""), a, step)


if __name__ == "__main__":
    main()
