"""Times the cases of op_bench_case.h in PyTorch: reads lines, answers times.

  stdin:   <seconds> <case line>      stdout:   <ns of the best block>

It runs on one thread. Images are channels-first, PyTorch's default. A backward
op is measured alone, by the function that autograd calls.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
aten = torch.ops.aten


def linear(way, n, k, m):
  x, w, b, y = (torch.randn(*s) for s in ((n, k), (m, k), (m,), (n, m)))
  if way == "f":
    return lambda: F.linear(x, w, b)
  if way == "bd":
    return lambda: y.mm(w)
  return lambda: (y.t().mm(x), y.sum(0))


def conv(way, n, h, c, o, size, stride, pad):
  x, w, b = torch.randn(n, c, h, h), torch.randn(o, c, size, size), torch.randn(o)
  if way == "f":
    return lambda: F.conv2d(x, w, b, stride, pad)
  y = torch.randn_like(F.conv2d(x, w, b, stride, pad))
  mask = [way == "bd", way == "bw", way == "bw"]
  return lambda: aten.convolution_backward(
      y, x, w, [o], [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)


def pool(way, n, h, c):
  x = torch.randn(n, c, h, h)
  y, at = F.max_pool2d(x, 2, return_indices=True)
  if way == "f":
    return lambda: F.max_pool2d(x, 2)
  return lambda: aten.max_pool2d_with_indices_backward(
      y, x, [2, 2], [2, 2], [0, 0], [1, 1], False, at)


def attention(way, n, t, h, d):
  qkv = torch.randn(n, t, 3, h, d)
  q, k, v = qkv.permute(2, 0, 3, 1, 4)
  if way == "f":
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
  y, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)
  dy = torch.randn_like(y)
  return lambda: aten._scaled_dot_product_flash_attention_for_cpu_backward(
      dy, q, k, v, y, lse, 0.0, True)


def flat(op, way, n):
  a, b, c = torch.randn(n), torch.randn(n), torch.randn(n)
  if op == "relu":
    if way == "f":
      return lambda: torch.relu(a)
    return lambda: aten.threshold_backward(b, a, 0)
  if op == "add":
    return lambda: torch.add(a, b)
  if op == "mse":
    return lambda: (F.mse_loss(a, b), aten.mse_loss_backward(
        torch.ones(()), a, b, 1))
  if op == "sgd":
    return lambda: a.add_(b, alpha=-1e-6)
  if op == "momentum":
    return lambda: (c.mul_(0.9).add_(b), a.add_(c, alpha=-1e-6))
  raise ValueError(op)


def xent(n, c):
  x, t = torch.randn(n, c, requires_grad=True), torch.arange(n) % c
  def run():
    x.grad = None
    F.cross_entropy(x, t).backward()
  return run


class Cnn(nn.Module):
  def __init__(self):
    super().__init__()
    self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
    self.fc1, self.fc2 = nn.Linear(400, 120), nn.Linear(120, 84)
    self.fc3 = nn.Linear(84, 10)

  def forward(self, x):
    x = F.max_pool2d(F.relu(self.conv1(x)), 2)
    x = F.max_pool2d(F.relu(self.conv2(x)), 2)
    x = F.relu(self.fc1(torch.flatten(x, 1)))
    return self.fc3(F.relu(self.fc2(x)))


def mlp(sizes, bias=True):
  layers = []
  for k, m in zip(sizes, sizes[1:]):
    layers += [nn.Linear(k, m, bias=bias), nn.ReLU()]
  return nn.Sequential(*layers[:-1])


def step(name):
  loss = nn.CrossEntropyLoss()
  if name == "toy_mlp":
    net, x, t = mlp([10, 10, 5]), torch.randn(20, 10), torch.randn(20, 5)
    loss = nn.MSELoss()
  elif name == "toy_cnn":
    net, x, t = Cnn(), torch.randn(16, 3, 32, 32), torch.arange(16) % 10
  elif name == "mnist_mlp":
    net, x = mlp([784, 512, 512, 10]), torch.randn(64, 784)
    t = torch.arange(64) % 10
  else:
    net, x = mlp([2236] * 6, bias=False), torch.randn(64, 2236)
    t, loss = torch.randn(64, 2236), nn.MSELoss()
  optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
  def run():
    optimizer.zero_grad()
    loss(net(x), t).backward()
    optimizer.step()
  return run


def make(words):
  op = words[0]
  way = "".join(w for w in words[1:] if not w.isdigit())
  numbers = [int(w) for w in words[1:] if w.isdigit()]
  if op == "linear":
    return linear(way, *numbers), False
  if op == "conv":
    return conv(way, *numbers), False
  if op == "pool":
    return pool(way, *numbers), False
  if op == "attention":
    return attention(way, *numbers), False
  if op == "xent":
    return xent(*numbers), True
  if op == "step":
    return step(way), True
  return flat(op, way, *numbers), False


def measure(run, seconds):
  for _ in range(3):
    run()
  begin = time.perf_counter()
  run()
  once = max(time.perf_counter() - begin, 1e-7)
  count = max(1, int(seconds / 40 / once))
  blocks = []
  end = time.perf_counter() + seconds
  while len(blocks) < 3 or time.perf_counter() < end:
    begin = time.perf_counter()
    for _ in range(count):
      run()
    blocks.append((time.perf_counter() - begin) / count)
  return min(blocks) * 1e9


def main():
  cases = {}
  for line in sys.stdin:
    seconds, *words = line.split()
    key = " ".join(words)
    if key not in cases:
      cases = {key: make(words)}
    run, grad = cases[key]
    with torch.set_grad_enabled(grad):
      print("%.1f" % measure(run, float(seconds)), flush=True)


if __name__ == "__main__":
  main()
