#!/usr/bin/python3
"""Writes rnn_golden.h: loss and gradients of three small recurrent translators on one batch, computed
by PyTorch in float64, sentence by sentence and step by step, with its own autograd.  Run by hand
(Debian: python3-torch):

    tests/rnn_golden.py >tests/rnn_golden.h

Weights start from a formula that the test repeats; parameters have heed's names, order and shapes.
"""
import math
import torch

D, E, V, SMOOTHING, WINDOW = 4, 3, 9, 0.1, 1
BOS, EOS = 1, 2
torch.set_default_dtype(torch.float64)


def cell(at, gates, width):
    return [(at + ".input.weight", (width, gates * D)), (at + ".input.bias", (gates * D,)),
            (at + ".recurrent", (D, gates * D))]


def shapes(kind):
    """Name and shape of every parameter, in the order in which heed declares them."""
    if kind == "bahdanau":
        return ([("encoder.embedding.table", (V, E)), ("decoder.embedding.table", (V, E)),
                 ("output.weight", (V, E))] + cell("encoder.0.forward", 3, E) +
                cell("encoder.0.backward", 3, E) + cell("decoder.0.forward", 3, E) +
                [("decoder.attention.q.weight", (D, D)), ("decoder.attention.k.weight", (2 * D, D)),
                 ("decoder.attention.v", (D,)), ("decoder.context.weight", (2 * D, 3 * D)),
                 ("decoder.readout.weight", (D + E + 2 * D, 2 * E)),
                 ("decoder.readout.bias", (2 * E,)), ("decoder.0.start.weight", (D, D))])
    all_ = [("embedding.table", (V, D))]
    for side in "encoder", "decoder":
        for k in range(2):
            all_ += cell(f"{side}.{k}.forward", 4, D)
    if kind == "luong":
        all_ += [("decoder.attention.weight", (D, D)), ("decoder.attention.place.in.weight", (D, D)),
                 ("decoder.attention.place.out.weight", (D, 1)),
                 ("decoder.feed.weight", (D, 4 * D)), ("decoder.readout.weight", (2 * D, D))]
    return all_


def start(i, shape):
    j = torch.arange(math.prod(shape), dtype=torch.float64)
    return (0.4 * torch.sin(1 + 1.7 * i + 0.9 * j + 0.01 * i * j)).reshape(shape).requires_grad_()


class Translator:
    def __init__(self, kind):
        self.kind = kind
        self.p = {n: start(i, s) for i, (n, s) in enumerate(shapes(kind))}

    def gru(self, at, x, h, more=0):
        """Bahdanau, A.1.1: z takes the new, r comes before the product."""
        a = x @ self.p[at + ".input.weight"] + self.p[at + ".input.bias"] + more
        u = self.p[at + ".recurrent"]
        r = torch.sigmoid(a[:D] + h @ u[:, :D])
        z = torch.sigmoid(a[D:2 * D] + h @ u[:, D:2 * D])
        n = torch.tanh(a[2 * D:] + (r * h) @ u[:, 2 * D:])
        return (1 - z) * h + z * n

    def lstm(self, at, x, state, more=0):
        h, c = state
        a = x @ self.p[at + ".input.weight"] + self.p[at + ".input.bias"] + more
        i, f, g, o = (a + h @ self.p[at + ".recurrent"]).split(D)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def stack(self, side, x, states, more=0):
        for k in range(2):
            states[k] = self.lstm(f"{side}.{k}.forward", x, states[k], more if k == 0 else 0)
            x = states[k][0]
        return x

    def bahdanau(self, source, target):
        x = self.p["encoder.embedding.table"][source] * math.sqrt(E)
        ys = self.p["decoder.embedding.table"][target] * math.sqrt(E)
        ahead, back = [], []
        h = torch.zeros(D)
        for i in range(len(source)):
            ahead.append(h := self.gru("encoder.0.forward", x[i], h))
        h = torch.zeros(D)
        for i in reversed(range(len(source))):
            back.insert(0, h := self.gru("encoder.0.backward", x[i], h))
        memory = torch.cat([torch.stack(ahead), torch.stack(back)], 1)
        keys = memory @ self.p["decoder.attention.k.weight"]
        s = torch.tanh(back[0] @ self.p["decoder.0.start.weight"])
        out = []
        for y in ys:
            e = torch.tanh(s @ self.p["decoder.attention.q.weight"] + keys)
            a = torch.softmax(e @ self.p["decoder.attention.v"], 0)
            c = a @ memory
            s = self.gru("decoder.0.forward", y, s, c @ self.p["decoder.context.weight"])
            t = torch.cat([s, y, c]) @ self.p["decoder.readout.weight"] + self.p["decoder.readout.bias"]
            out.append(t.reshape(E, 2).max(1).values)
        return torch.stack(out) @ self.p["output.weight"].T

    def encode(self, source):
        """Both LSTM models: the source from its end; states in the order of the words."""
        x = self.p["embedding.table"][source] * math.sqrt(D)
        states = [(torch.zeros(D), torch.zeros(D)) for _ in range(2)]
        top = [self.stack("encoder", x[i], states) for i in reversed(range(len(source)))]
        return torch.stack(top[::-1]), states

    def sutskever(self, source, target):
        _, states = self.encode(source)
        ys = self.p["embedding.table"][target] * math.sqrt(D)
        return torch.stack([self.stack("decoder", y, states) for y in ys]) @ self.p["embedding.table"].T

    def luong(self, source, target):
        """General score, local-p, input feeding."""
        memory, states = self.encode(source)
        ys = self.p["embedding.table"][target] * math.sqrt(D)
        place = torch.arange(len(source), dtype=torch.float64)
        fed, out = torch.zeros(D), []
        for y in ys:
            h = self.stack("decoder", y, states, fed @ self.p["decoder.feed.weight"])
            p = torch.tanh(h @ self.p["decoder.attention.place.in.weight"])
            p = len(source) * torch.sigmoid(p @ self.p["decoder.attention.place.out.weight"])
            scores = memory @ (h @ self.p["decoder.attention.weight"])
            scores = torch.where((place - p).abs() <= WINDOW, scores, torch.tensor(-math.inf))
            a = torch.softmax(scores, 0) * torch.exp(-(place - p) ** 2 / (2 * (WINDOW / 2) ** 2))
            fed = torch.tanh(torch.cat([a @ memory, h]) @ self.p["decoder.readout.weight"])
            out.append(fed)
        return torch.stack(out) @ self.p["embedding.table"].T

    def loss(self, batch):
        """Per target token: 1-e on the target, e over the whole vocabulary, the target included."""
        total, tokens = 0, 0
        for source, target in batch:
            logits = getattr(self, self.kind)(source + [EOS], [BOS] + target)
            log_p, out = torch.log_softmax(logits, -1), target + [EOS]
            smooth = torch.full((len(out), V), SMOOTHING / V)
            smooth[range(len(out)), out] += 1 - SMOOTHING
            total, tokens = total - (smooth * log_p).sum(), tokens + len(out)
        return total / tokens


BATCH = [([3, 5, 8, 4], [6, 3]), ([7, 3], [4, 4, 8, 5, 3]), ([6, 8, 5, 3, 7, 4, 4], [5])]


def print_numbers(name, tensors):
    numbers = [f"{x:.12g}" for t in tensors for x in t.detach().flatten().tolist()]
    print(f"static const double {name}[] = {{")
    line = "   "
    for x in numbers:
        if len(line) + len(x) + 2 > 100:
            print(line)
            line = "   "
        line += " " + x + ","
    print(line + "\n};")


def main():
    version = torch.__version__.split("+")[0]
    print(f"/* Made by rnn_golden.py with PyTorch {version} in float64. */")
    print("#ifndef HEED_TESTS_RNN_GOLDEN_H\n#define HEED_TESTS_RNN_GOLDEN_H\n")
    print("#include <stdint.h>\n\n/* clang-format off */")
    print(f"enum {{ GOLDEN_D = {D}, GOLDEN_E = {E}, GOLDEN_V = {V}, GOLDEN_WINDOW = {WINDOW} }};")
    print("/* Pairs; of each both lengths, then both sentences. */")
    flat = [x for s, t in BATCH for x in [len(s), len(t)] + s + t]
    print("static const int32_t golden_batch[] = {")
    print("    " + ", ".join(map(str, flat)) + "};")
    for kind in "sutskever", "bahdanau", "luong":
        m = Translator(kind)
        loss = m.loss(BATCH)
        loss.backward()
        print_numbers(kind + "_loss", [loss])
        print_numbers(kind + "_gradient", [p.grad for p in m.p.values()])
    print("\n#endif")


main()
