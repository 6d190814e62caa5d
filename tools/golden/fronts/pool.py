"""PyTorch's side of tests/nn/fronts/pool_fronts.cc."""

import torch.nn.functional as F


def of_images(function):
  return lambda x: function(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


def max_pool(name, x, kernel, stride, pad=0):
  return ("max_pool2d_" + name, [x], of_images(
      lambda x: F.max_pool2d(x, kernel, stride, pad, ceil_mode=True)))


def avg_pool(name, x, kernel, stride, pad, ceil, counts_pad):
  return ("avg_pool2d_" + name, [x], of_images(
      lambda x: F.avg_pool2d(x, kernel, stride, pad, ceil, counts_pad)))


def adaptive(name, x, size):
  return ("adaptive_avg_pool2d_" + name, [x], of_images(
      lambda x: F.adaptive_avg_pool2d(x, size)))


def pad(name, x, rows, columns, mode):
  return ("pad2d_" + name, [x], of_images(
      lambda x: F.pad(x, [*columns, *rows], mode)))


CASES = [
    max_pool("ceil", [2, 5, 7, 3], 2, 2),
    max_pool("ceil_padded", [1, 6, 5, 2], 3, 2, 1),
    max_pool("ceil_left_out", [1, 5, 4, 2], 2, 3, 1),
    avg_pool("ceil", [2, 5, 7, 3], 2, 2, 0, True, True),
    avg_pool("ceil_padded", [1, 6, 5, 2], 3, 2, 1, True, True),
    avg_pool("ceil_of_image", [1, 6, 5, 2], 3, 2, 1, True, False),
    avg_pool("of_image", [2, 5, 6, 2], (3, 2), (1, 2), 1, False, False),
    adaptive("one", [2, 5, 4, 3], 1),
    adaptive("even", [2, 6, 4, 3], (3, 2)),
    adaptive("uneven", [2, 7, 5, 3], (3, 4)),
    adaptive("more", [1, 2, 3, 2], (5, 3)),
    pad("zeros", [1, 3, 4, 2], (1, 2), (0, 3), "constant"),
    pad("reflect", [1, 4, 3, 2], (3, 1), (2, 0), "reflect"),
    pad("replicate", [1, 3, 2, 2], (1, 4), (3, 2), "replicate"),
    pad("circular", [1, 3, 4, 2], (3, 1), (2, 4), "circular"),
    ("pad1d_reflect", [[2, 5, 3]],
     lambda x: F.pad(x.permute(0, 2, 1), [4, 1],
                     "reflect").permute(0, 2, 1)),
]
