"""Times the cases of kernel_case.h in PyTorch: reads lines, answers times.

    torch_kernels.py --device=cuda [--allow_tf32]     (or cpu, to try it)

    stdin:   <seconds> <dtype> <case line>      stdout:   <us, a median>

The answer is "nan" if PyTorch does not run the case; the reason is on standard
error. Images and weights of convolutions are channels_last, and
cudnn.benchmark chooses the algorithms. A backward op is the function that
autograd calls.
"""

import argparse
import statistics
import sys
import time

import torch
from torch.nn import functional as F

aten = torch.ops.aten
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
BLOCKS = 5


def linear(way, options, n, k, m):
    x, w, y = (torch.randn(*shape, **options)
               for shape in ((n, k), (m, k), (n, m)))
    if way == "f":
        return lambda: F.linear(x, w)
    if way == "bd":
        return lambda: y.mm(w)
    return lambda: y.t().mm(x)


def conv(way, options, n, h, c, o, size, stride, pad):
    layout = {"memory_format": torch.channels_last}
    x = torch.randn(n, c, h, h, **options).contiguous(**layout)
    w = torch.randn(o, c, size, size, **options).contiguous(**layout)
    if way == "f":
        return lambda: F.conv2d(x, w, None, stride, pad)
    y = torch.randn_like(F.conv2d(x, w, None, stride, pad))
    mask = [way == "bd", way == "bw", False]
    return lambda: aten.convolution_backward(
        y, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)


def make(dtype, words, device):
    op, way, *numbers = words
    options = {"device": device, "dtype": DTYPES[dtype]}
    maker = {"linear": linear, "conv": conv}[op]
    return maker(way, options, *(int(number) for number in numbers))


def cuda_us(run, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def cpu_us(run, count):
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) * 1e6 / count


def measure(run, seconds, time_us):
    for _ in range(3):
        run()
    once = max(time_us(run, 1), 0.1)
    count = max(1, int(seconds / BLOCKS * 1e6 / once))
    return statistics.median(time_us(run, count) for _ in range(BLOCKS))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--allow_tf32", action="store_true")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = options.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = options.allow_tf32
    time_us = cuda_us if options.device == "cuda" else cpu_us
    key, run = None, None  # only the last case's tensors are kept in memory
    for line in sys.stdin:
        seconds, dtype, *words = line.split()
        try:
            if key != (dtype, words):
                run = None
                key, run = (dtype, words), make(dtype, words, options.device)
            answer = "%.3f" % measure(run, float(seconds), time_us)
        except Exception as why:  # pylint: disable=broad-except
            print("PyTorch, %s: %s" % (line.strip(), str(why).split("\n")[0]),
                  file=sys.stderr)
            key, answer = None, "nan"
        print(answer, flush=True)


if __name__ == "__main__":
    main()
