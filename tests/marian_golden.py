#!/usr/bin/env python3
"""marian_golden.py: what Marian's definitions give for made-up models, in float64, without heed.

Prints the arrays of marian_golden.h: log P of the tokens 2 6 3 0 after the source 4 3 2 0, for a
Transformer with self-attention or the SSRU in its decoder, with norms behind or before sublayers,
and as Firefox's intgemm computes it: matrices in int8, activations rounded with their multipliers.
Element i of tensor NAME is ((FNV-1a(NAME) + 2654435761 i) mod 2^32) / 2^32 * 0.6 - 0.3, and 1 more
in the scales of norms."""
import math
import struct

V, D, F, H, LAYERS = 11, 8, 12, 2, 2
SOURCE, READ, WANTED = [4, 3, 2, 0], [None, 2, 6, 3], [2, 6, 3, 0]
MULTIPLIER = 40.0  # of activations


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def tensor(name, rows, cols):
    h = 0x811C9DC5
    for c in name.encode():
        h = ((h ^ c) * 0x01000193) & 0xFFFFFFFF
    more = 1 if "_ln_scale" in name else 0
    flat = [f32(((h + i * 2654435761) & 0xFFFFFFFF) / 4294967296.0 * 0.6 - 0.3) + more
            for i in range(rows * cols)]
    return [flat[r * cols:(r + 1) * cols] for r in range(rows)]


def nearest(x):
    return max(-127, min(127, round(x)))


class Model:
    def __init__(self, ssru, pre, int8):
        self.ssru, self.pre, self.int8 = ssru, pre, int8

    def stored(self, w):
        """w as its int8 values, and their multiplier."""
        m = f32(127 / max(abs(x) for row in w for x in row))
        return [[nearest(x * m) for x in row] for row in w], m

    def table(self):
        w = tensor("Wemb", V, D)
        if self.int8:
            q, m = self.stored(w)
            w = [[x / m for x in row] for row in q]
        return w

    def matrix_times(self, x, w, bias):
        if self.int8:
            q, m = self.stored(w)
            a = [nearest(v * MULTIPLIER) for v in x]
            y = [sum(a[i] * q[i][j] for i in range(len(x))) / (m * MULTIPLIER)
                 for j in range(len(w[0]))]
        else:
            y = [sum(x[i] * w[i][j] for i in range(len(x))) for j in range(len(w[0]))]
        return [v + (bias[j] if bias else 0) for j, v in enumerate(y)]

    def dense(self, x, w, b, rows, cols):
        return self.matrix_times(x, tensor(w, rows, cols), tensor(b, 1, cols)[0] if b else None)

    def norm(self, x, name):
        g = tensor(name + "_ln_scale" + ("_pre" if self.pre and "top" not in name else ""), 1, D)[0]
        b = tensor(name + "_ln_bias" + ("_pre" if self.pre and "top" not in name else ""), 1, D)[0]
        mean = sum(x) / D
        var = sum((v - mean) ** 2 for v in x) / D
        return [(v - mean) / math.sqrt(var + 1e-6) * g[i] + b[i] for i, v in enumerate(x)]

    def around(self, xs, name, f):
        read = [self.norm(x, name) for x in xs] if self.pre else xs
        ys = f(read)
        ys = [[a + b for a, b in zip(x, y)] for x, y in zip(xs, ys)]
        return ys if self.pre else [self.norm(y, name) for y in ys]

    def attention(self, xs, memory, name, causal):
        q = [self.dense(x, name + "_Wq", name + "_bq", D, D) for x in xs]
        k = [self.dense(x, name + "_Wk", name + "_bk", D, D) for x in memory]
        v = [self.dense(x, name + "_Wv", name + "_bv", D, D) for x in memory]
        w, out = D // H, []
        for i in range(len(xs)):
            row = []
            n = i + 1 if causal else len(memory)
            for h in range(H):
                s = [sum(q[i][h * w + t] * k[j][h * w + t] for t in range(w)) / math.sqrt(w)
                     for j in range(n)]
                e = [math.exp(z - max(s)) for z in s]
                row += [sum(e[j] * v[j][h * w + t] for j in range(n)) / sum(e) for t in range(w)]
            out.append(self.dense(row, name + "_Wo", name + "_bo", D, D))
        return out

    def ffn(self, xs, name):
        out = []
        for x in xs:
            hidden = [max(0, z) for z in self.dense(x, name + "_W1", name + "_b1", D, F)]
            out.append(self.dense(hidden, name + "_W2", name + "_b2", F, D))
        return out

    def unit(self, xs, name):
        c, out = [0.0] * D, []
        for x in xs:
            f = self.dense(x, name + "_Wf", name + "_bf", D, D)
            z = self.dense(x, name + "_W", None, D, D)
            s = [1 / (1 + math.exp(-t)) for t in f]
            c = [s[i] * c[i] + (1 - s[i]) * z[i] for i in range(D)]
            out.append([max(0, t) for t in c])
        return out

    def embed(self, ids):
        e, half, out = self.table(), D // 2, []
        for pos, one in enumerate(ids):
            row = [0.0] * D if one is None else [v * math.sqrt(D) for v in e[one]]
            angle = [pos * 10000 ** (-i / (half - 1)) for i in range(half)]
            place = [math.sin(a) for a in angle] + [math.cos(a) for a in angle]
            out.append([a + b for a, b in zip(row, place)])
        return out

    def log_p(self):
        xs = self.embed(SOURCE)
        for n in range(1, LAYERS + 1):
            p = "encoder_l%d_" % n
            xs = self.around(xs, p + "self_Wo",
                             lambda r: self.attention(r, r, p + "self", False))
            xs = self.around(xs, p + "ffn_ffn", lambda r: self.ffn(r, p + "ffn"))
        if self.pre:
            xs = [self.norm(x, "encoder_top") for x in xs]
        memory, xs = xs, self.embed(READ)
        for n in range(1, LAYERS + 1):
            p = "decoder_l%d_" % n
            if self.ssru:
                xs = self.around(xs, p + "rnn_ffn", lambda r: self.unit(r, p + "rnn"))
            else:
                xs = self.around(xs, p + "self_Wo",
                                 lambda r: self.attention(r, r, p + "self", True))
            xs = self.around(xs, p + "context_Wo",
                             lambda r: self.attention(r, memory, p + "context", False))
            xs = self.around(xs, p + "ffn_ffn", lambda r: self.ffn(r, p + "ffn"))
        if self.pre:
            xs = [self.norm(x, "decoder_top") for x in xs]
        turned = [list(c) for c in zip(*self.table())]
        bias, out = tensor("decoder_ff_logit_out_b", 1, V)[0], []
        for x, wanted in zip(xs, WANTED):
            z = self.matrix_times(x, turned, bias)
            out.append(z[wanted] - max(z) - math.log(sum(math.exp(t - max(z)) for t in z)))
        return out


print("/* marian_golden.h: made by marian_golden.py. */")
for name, form in (("marian_self", (False, False, False)), ("marian_ssru", (True, False, False)),
                   ("marian_pre", (True, True, False)), ("marian_int8", (True, False, True))):
    print("static const double %s[] = {%s};" % (
        name, ", ".join("%.9f" % x for x in Model(*form).log_p())))
