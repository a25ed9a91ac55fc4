"""What the PyTorch scripts share: the batches that `heed bench train --ids` reads, and the clock."""
import argparse
import json
import resource
import time

import torch

PRESETS = {"tiny": (4, 4, 128, 256, 4, 8000),  # layers of encoder and decoder, d, ff, heads, V
           "small": (3, 3, 256, 1024, 4, 8000),
           "base": (6, 6, 512, 2048, 8, 32000)}
RNN_PRESETS = {"bahdanau": (512, 256, 8000), "luong": (512, 512, 8000),  # d, embedding, V
               "sutskever": (512, 512, 8000)}
BOS, EOS, PAD = 1, 2, 0


def arguments(presets=PRESETS):
    p = argparse.ArgumentParser()
    p.add_argument("--preset", choices=presets, required=True)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--ids", required=True, help="source ids TAB target ids; an empty line ends a batch")
    a = p.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(a.threads)
    return a


def padded(rows):
    width = max(map(len, rows))
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


def batches(path):
    """[(source, target in, target out, real tokens)], padded to the longest of each batch."""
    out, rows = [], []
    for line in list(open(path)) + ["\n"]:
        if line.strip():
            rows.append([[int(i) for i in side.split()] for side in line.split("\t")])
        elif rows:
            out.append((padded([s + [EOS] for s, _ in rows]), padded([[BOS] + t for _, t in rows]),
                        padded([t + [EOS] for _, t in rows]), sum(len(s) + len(t) + 2 for s, t in rows)))
            rows = []
    return out


def measure(name, a, step):
    """The best of some turns over all batches, as heed counts it; one batch first to warm up."""
    data = batches(a.ids)
    step(*data[0][:3])
    best = float("inf")
    for _ in range(a.turns):
        start = time.perf_counter()
        for source, target_in, target_out, _ in data:
            step(source, target_in, target_out)
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"name": name, "torch": torch.__version__, "threads": a.threads,
                      "tokens_per_second": sum(d[3] for d in data) / best,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
