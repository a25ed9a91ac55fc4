#!/usr/bin/python3
"""Writes vision_golden.h: convolutions, pooling, upsampling, batch norm of pictures and spectral norm
with their gradients, computed by PyTorch in float64.  Run by hand (Debian: python3-torch):

    tests/vision_golden.py >tests/vision_golden.h

Inputs come from the formula of `waves` below, which the test repeats, in heed's layout: pixels are
rows, channels columns, the places of a kernel stand above each other.  The loss is sum(y * g).
"""
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def waves(n, step, start):
    return torch.sin(step * torch.arange(n, dtype=torch.float64) + start)


def rows(n, c):  # x
    return waves(n * c, 1.3, 0.2).reshape(n, c).requires_grad_()


def weights(taps, c, f):
    return waves(taps * c * f, 0.7, 1.1).reshape(taps * c, f).requires_grad_()


def bias(f):
    return waves(f, 2.1, 0.4).requires_grad_()


def to_images(x, y, w):
    return x.reshape(-1, y, w, x.shape[1]).permute(0, 3, 1, 2)


def to_rows(x):
    return x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])


def show(name, tensors):
    print(f"static const double {name}[] = {{")
    line = "   "
    for number in torch.cat([t.reshape(-1) for t in tensors]).tolist():
        text = f" {number:.12g},"
        if len(line) + len(text) > 100:
            print(line)
            line = "   "
        line += text
    print(line + "\n};")


def gradients(name, y, inputs):
    """y, then the gradient of each input."""
    g = waves(y.numel(), 0.9, 0.7).reshape(y.shape)
    show(name, [y.detach(), *torch.autograd.grad((y * g).sum(), inputs)])


def conv2d():
    x, w, b = rows(2 * 5 * 6, 3), weights(9, 3, 4), bias(4)
    kernel = w.reshape(3, 3, 3, 4).permute(3, 2, 0, 1)
    y = F.conv2d(to_images(x, 5, 6), kernel, b, stride=(2, 1), padding=1, dilation=(1, 2))
    gradients("golden_conv2d", to_rows(y), [x, w, b])


def conv2d_transposed():
    x, w, b = rows(2 * 2 * 3, 3), weights(12, 3, 2), bias(2)
    kernel = w.reshape(4, 3, 3, 2).permute(2, 3, 0, 1)
    y = F.conv_transpose2d(to_images(x, 2, 3), kernel, b, stride=2, padding=1,
                           output_padding=(0, 1))
    gradients("golden_conv2d_transposed", to_rows(y), [x, w, b])


def conv1d():
    lengths, x, w, b = (6, 4), rows(10, 3), weights(2, 3, 2), bias(2)
    kernel = w.reshape(2, 3, 2).permute(2, 1, 0)
    ys = [F.conv1d(F.pad(part.T[None], (2, 0)), kernel, b, dilation=2)[0].T
          for part in torch.split(x, lengths)]
    gradients("golden_conv1d", torch.cat(ys), [x, w, b])


def pools():
    x = rows(2 * 5 * 4, 3)
    y = F.max_pool2d(to_images(x, 5, 4), 3, stride=2, padding=1)
    gradients("golden_max_pool2d", to_rows(y), [x])
    y = F.avg_pool2d(to_images(x, 5, 4), 3, stride=2, padding=1, count_include_pad=False)
    gradients("golden_mean_pool2d", to_rows(y), [x])
    y = F.interpolate(to_images(x, 5, 4), scale_factor=(2, 3), mode="nearest")
    gradients("golden_upsample", to_rows(y), [x])


def condition_norm():
    """Two pictures, a gain and a bias for each."""
    x, gain, shift = rows(2 * 3 * 2, 3), weights(1, 2, 3), rows(2, 3)
    mean, var = torch.zeros(3), torch.ones(3)
    h = to_rows(F.batch_norm(to_images(x, 3, 2), mean, var, training=True, momentum=0.1, eps=1e-5))
    y = (h.reshape(2, 6, 3) * gain[:, None] + shift[:, None]).reshape(12, 3)
    gradients("golden_condition_norm", y, [x, gain, shift])
    show("golden_condition_norm_running", [mean, var])


def spectral():
    """One iteration, then one that trains: sigma by u and v held constant."""
    w = weights(5, 1, 3)
    u = torch.ones(3)
    v = F.normalize(w.detach() @ u, dim=0)
    u = F.normalize(w.detach().T @ v, dim=0)
    sigma = v @ w @ u
    gradients("golden_spectral_norm", w / sigma, [w])
    show("golden_spectral_norm_u", [u])
    show("golden_spectral_norm_sigma", [torch.linalg.svdvals(w.detach())[0]])


print(f"/* Made by vision_golden.py with PyTorch {torch.__version__} in float64. */")
print("#ifndef HEED_TESTS_VISION_GOLDEN_H\n#define HEED_TESTS_VISION_GOLDEN_H\n")
print("/* clang-format off */")
for make in conv2d, conv2d_transposed, conv1d, pools, condition_norm, spectral:
    make()
print("/* clang-format on */\n\n#endif")
