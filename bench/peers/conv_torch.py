#!/usr/bin/python3
"""conv_torch.py [--threads N]: forward and backward of the convolutions that `heed bench kernels --only
conv2d` measures, in PyTorch, one JSON object a line: the best of some turns."""
import argparse
import json
import time

import torch

SHAPES = [(32, 32, 64, 64, 3, 1, 1), (32, 32, 64, 128, 3, 2, 1), (32, 8, 256, 256, 3, 1, 1),
          (32, 28, 1, 64, 3, 1, 1)]

p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=1)
p.add_argument("--turns", type=int, default=5)
a = p.parse_args()
torch.set_num_threads(a.threads)
for batch, side, c, f, k, stride, padding in SHAPES:
    best = float("inf")
    for layout in torch.contiguous_format, torch.channels_last:
        x = torch.randn(batch, c, side, side).to(memory_format=layout).requires_grad_()
        conv = torch.nn.Conv2d(c, f, k, stride, padding).to(memory_format=layout)
        g = torch.randn_like(conv(x))
        for _ in range(a.turns):
            start = time.perf_counter()
            conv(x).backward(g)
            best = min(best, time.perf_counter() - start)
            x.grad = None
            conv.zero_grad()
    print(json.dumps({"shape": f"{batch}x{side}x{side}x{c} to {f}, {k}x{k} /{stride}",
                      "threads": a.threads, "ms": 1e3 * best}), flush=True)
