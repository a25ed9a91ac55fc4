"""Makes attention_forms_golden.h: multi-head attention with shared heads of keys, ALiBi, a table by
distance and persistent rows, by PyTorch in float64.  Takes no arguments; prints the header."""
import math
import torch

torch.set_default_dtype(torch.float64)
LENGTHS = (5, 3)


def wave(shape, salt, scale=1.0):
    n = math.prod(shape)
    x = torch.tensor([scale * math.sin(12.9898 * (i + 1) + 78.233 * salt) for i in range(n)])
    return x.reshape(shape)


def slopes(heads):
    """As the authors of ALiBi have them."""
    def of_power(n):
        start = 2.0 ** (-(2.0 ** -(math.log2(n) - 3)))
        return [start * start ** i for i in range(n)]
    if math.log2(heads).is_integer():
        return of_power(heads)
    below = 2 ** math.floor(math.log2(heads))
    return of_power(below) + slopes(2 * below)[0::2][: heads - below]


def run(name, d, heads, kv, d_k, d_v, causal, alibi, radius, rows):
    salt = iter(range(1, 100))
    w = wave((d, heads * d_k + kv * (d_k + d_v)), next(salt), 0.5)
    columns = radius + 1 if causal else 2 * radius + 1
    table = wave((heads, columns), next(salt), 0.5) if radius else None
    m_k = wave((rows, kv * d_k), next(salt), 0.5) if rows else None
    m_v = wave((rows, kv * d_v), next(salt), 0.5) if rows else None
    w_o = wave((heads * d_v, d), next(salt), 0.5)
    x = wave((sum(LENGTHS), d), 10).requires_grad_()
    parts, begin = [], 0
    for n in LENGTHS:
        qkv = x[begin:begin + n] @ w
        begin += n
        q = qkv[:, :heads * d_k].reshape(n, heads, d_k).transpose(0, 1)
        k = qkv[:, heads * d_k:heads * d_k + kv * d_k]
        v = qkv[:, heads * d_k + kv * d_k:]
        if rows:
            k, v = torch.cat([m_k, k]), torch.cat([m_v, v])
        k = k.reshape(-1, kv, d_k).transpose(0, 1).repeat_interleave(heads // kv, 0)
        v = v.reshape(-1, kv, d_v).transpose(0, 1).repeat_interleave(heads // kv, 0)
        scores = q @ k.transpose(1, 2) / math.sqrt(d_k)
        distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
        bias = torch.zeros(heads, n, n)
        if alibi:
            bias = -torch.tensor(slopes(heads))[:, None, None] * distance.abs()
        if radius:
            column = distance.clamp(0, radius) if causal else distance.clamp(-radius, radius) + radius
            bias = table[:, column]
        if causal:
            bias = bias.masked_fill(distance < 0, -math.inf)
        scores = scores + torch.cat([torch.zeros(heads, n, rows), bias], 2)
        parts.append((torch.softmax(scores, 2) @ v).transpose(0, 1).reshape(n, heads * d_v))
    y = torch.cat(parts) @ w_o
    (y * wave(tuple(y.shape), 12)).sum().backward()

    def numbers(z):
        return ", ".join("%.12g" % e for e in z.detach().reshape(-1).tolist())
    print("    {.name = \"%s\", .heads = %d, .kv_heads = %d, .d = %d, .d_k = %d, .d_v = %d,"
          % (name, heads, kv, d, d_k, d_v))
    print("     .causal = %d, .alibi = %d, .radius = %d, .rows = %d," % (causal, alibi, radius, rows))
    print("     .y = {%s}," % numbers(y))
    print("     .dx = {%s}}," % numbers(x.grad))


print("""/* Made by attention_forms_golden.py with PyTorch %s in float64.  Element i of an array is
 * scale * sin(12.9898 (i+1) + 78.233 salt): the parameters, in their order, have salt 1, 2, ... and
 * scale 0.5; x and the gradient of y salt 10 and 12 and scale 1.  Segments of 5 and 3 rows. */
static const struct form_golden {
    const char *name;
    int heads, kv_heads, d, d_k, d_v, causal, alibi, radius, rows;
    double y[48], dx[48];
} form_golden[] = {""" % torch.__version__.split("+")[0])
run("six heads on three, alibi, causal", 6, 6, 3, 2, 3, 1, 1, 0, 0)
run("two heads on one, alibi", 4, 2, 1, 3, 2, 0, 1, 0, 0)
run("four on two, table, persistent, causal", 4, 4, 2, 2, 1, 1, 0, 2, 3)
run("table on both sides", 4, 2, 2, 2, 2, 0, 0, 2, 0)
print("};")
