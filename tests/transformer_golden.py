#!/usr/bin/python3
"""Writes transformer_golden.h: five training steps of a small Transformer, computed by PyTorch in
float64, sentence by sentence, with its own autograd.  Run by hand (Debian: python3-torch):

    tests/transformer_golden.py >tests/transformer_golden.h

Weights start from a formula that the test repeats; parameters have heed's names, order and shapes.
"""
import math
import torch

D, FF, HEADS, LAYERS, V = 6, 10, 2, 2, 11
EPS, SMOOTHING, WARMUP, STEPS = 1e-6, 0.1, 40, 5
BOS, EOS = 1, 2
torch.set_default_dtype(torch.float64)


def shapes(pre_norm):
    """Name and shape of every parameter, in the order in which heed declares them."""
    norm = lambda at: [(at + ".norm.gain", (D,)), (at + ".norm.bias", (D,))]
    self_ = lambda at: [(at + ".self.qkv.weight", (D, 3 * D)), (at + ".self.out.weight", (D, D))]
    cross = lambda at: [(at + ".cross.q.weight", (D, D)), (at + ".cross.kv.weight", (D, 2 * D)),
                        (at + ".cross.out.weight", (D, D))]
    ffn = lambda at: [(at + ".ffn.in.weight", (D, FF)), (at + ".ffn.in.bias", (FF,)),
                      (at + ".ffn.out.weight", (FF, D)), (at + ".ffn.out.bias", (D,))]
    all_ = [("embedding.table", (V, D))]
    for i in range(LAYERS):
        at = f"encoder.{i}"
        all_ += self_(at) + norm(at + ".self") + ffn(at) + norm(at + ".ffn")
    for i in range(LAYERS):
        at = f"decoder.{i}"
        all_ += self_(at) + norm(at + ".self") + cross(at) + norm(at + ".cross")
        all_ += ffn(at) + norm(at + ".ffn")
    return all_ + (norm("encoder") + norm("decoder") if pre_norm else [])


def start(i, name, shape):
    """Element j of parameter i: a wave around 0, around 1 for gains."""
    j = torch.arange(math.prod(shape), dtype=torch.float64)
    wave = 0.4 * torch.sin(1 + 1.7 * i + 0.9 * j + 0.01 * i * j)
    return (wave + (1 if name.endswith("gain") else 0)).reshape(shape).requires_grad_()


def sinusoid(n):
    pos, i = torch.arange(n)[:, None], torch.arange(D)[None, :]
    angle = pos / 10000 ** (2 * (i // 2) / D)
    return torch.where(i % 2 == 0, torch.sin(angle), torch.cos(angle))


class Transformer:
    def __init__(self, pre_norm):
        self.pre_norm = pre_norm
        self.p = {n: start(i, n, s) for i, (n, s) in enumerate(shapes(pre_norm))}

    def norm(self, at, x):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        x = (x - mean) / torch.sqrt(var + EPS)
        return x * self.p[at + ".norm.gain"] + self.p[at + ".norm.bias"]

    def sublayer(self, at, x, f):
        return x + f(self.norm(at, x)) if self.pre_norm else self.norm(at, x + f(x))

    def heads(self, q, k, v, causal):
        out, width = [], D // HEADS
        for h in range(HEADS):
            c = slice(h * width, (h + 1) * width)
            scores = q[:, c] @ k[:, c].T / math.sqrt(width)
            if causal:
                scores = scores + torch.triu(torch.full_like(scores, -math.inf), 1)
            out.append(torch.softmax(scores, -1) @ v[:, c])
        return torch.cat(out, 1)

    def self_attention(self, at, x, causal):
        q, k, v = (x @ self.p[at + ".self.qkv.weight"]).split(D, 1)
        return self.heads(q, k, v, causal) @ self.p[at + ".self.out.weight"]

    def cross_attention(self, at, x, memory):
        k, v = (memory @ self.p[at + ".cross.kv.weight"]).split(D, 1)
        q = x @ self.p[at + ".cross.q.weight"]
        return self.heads(q, k, v, False) @ self.p[at + ".cross.out.weight"]

    def ffn(self, at, x):
        hidden = torch.relu(x @ self.p[at + ".ffn.in.weight"] + self.p[at + ".ffn.in.bias"])
        return hidden @ self.p[at + ".ffn.out.weight"] + self.p[at + ".ffn.out.bias"]

    def embed(self, ids):
        return self.p["embedding.table"][ids] * math.sqrt(D) + sinusoid(len(ids))

    def logits(self, source, target):
        x = self.embed(source)
        for i in range(LAYERS):
            at = f"encoder.{i}"
            x = self.sublayer(at + ".self", x, lambda y: self.self_attention(at, y, False))
            x = self.sublayer(at + ".ffn", x, lambda y: self.ffn(at, y))
        memory = self.norm("encoder", x) if self.pre_norm else x
        x = self.embed(target)
        for i in range(LAYERS):
            at = f"decoder.{i}"
            x = self.sublayer(at + ".self", x, lambda y: self.self_attention(at, y, True))
            x = self.sublayer(at + ".cross", x, lambda y: self.cross_attention(at, y, memory))
            x = self.sublayer(at + ".ffn", x, lambda y: self.ffn(at, y))
        x = self.norm("decoder", x) if self.pre_norm else x
        return x @ self.p["embedding.table"].T

    def loss(self, batch):
        """Per target token: 1-e on the target, e over the whole vocabulary, the target included."""
        total, tokens = 0, 0
        for source, target in batch:
            log_p = torch.log_softmax(self.logits(source + [EOS], [BOS] + target), -1)
            out = target + [EOS]
            smooth = torch.full((len(out), V), SMOOTHING / V)
            smooth[range(len(out)), out] += 1 - SMOOTHING
            total, tokens = total - (smooth * log_p).sum(), tokens + len(out)
        return total / tokens


def batches():
    """Ragged: sentences of 1 to 6 tokens, three or four pairs a batch."""
    n = 0

    def sentence():
        nonlocal n
        n += 1
        return [3 + (5 * n + 3 * k + n * k) % (V - 3) for k in range(1 + 7 * n % 6)]

    return [[(sentence(), sentence()) for _ in range(3 + step % 2)] for step in range(STEPS)]


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


def train(name, pre_norm):
    m = Transformer(pre_norm)
    parameters = list(m.p.values())
    adam = torch.optim.Adam(parameters, lr=0, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step, batch in enumerate(batches(), 1):
        adam.param_groups[0]["lr"] = D**-0.5 * min(step**-0.5, step * WARMUP**-1.5)
        adam.zero_grad()
        loss = m.loss(batch)
        loss.backward()
        losses.append(loss)
        if step == 1:
            print_numbers(name + "_gradient", [p.grad for p in parameters])
        adam.step()
    print_numbers(name + "_loss", losses)
    print_numbers(name + "_weights", parameters)


def main():
    version = torch.__version__.split("+")[0]
    print(f"/* Made by transformer_golden.py with PyTorch {version} in float64. */")
    print("#ifndef HEED_TESTS_TRANSFORMER_GOLDEN_H\n#define HEED_TESTS_TRANSFORMER_GOLDEN_H\n")
    print("#include <stdint.h>\n\n/* clang-format off */")
    print(f"enum {{ GOLDEN_D = {D}, GOLDEN_FF = {FF}, GOLDEN_HEADS = {HEADS},")
    print(f"       GOLDEN_LAYERS = {LAYERS}, GOLDEN_V = {V},")
    print(f"       GOLDEN_WARMUP = {WARMUP}, GOLDEN_STEPS = {STEPS} }};")
    print("/* Batch after batch: its pairs; of each both lengths, then both sentences. */")
    print("static const int32_t golden_batches[] = {")
    for batch in batches():
        flat = [x for s, t in batch for x in [len(s), len(t)] + s + t]
        print("    " + ",".join(str(x) for x in [len(batch)] + flat) + ",")
    print("};")
    train("post_norm", False)
    train("pre_norm", True)
    print("\n#endif")


main()
