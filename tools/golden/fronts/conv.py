"""PyTorch's side of tests/nn/fronts/conv_fronts.cc."""

import torch.nn.functional as F


def nchw(x):
  return x.permute(0, 3, 1, 2)


def nhwc(y):
  return y.permute(0, 2, 3, 1)


def same_pads(window):
  """Returns the arguments of F.pad: (left, right) of columns, then of rows."""
  pads = []
  for kernel, dilation in zip(window["kernel"][::-1],
                              window["dilation"][::-1]):
    total = dilation * (kernel - 1)
    pads += [total // 2, total - total // 2]
  return pads


def window(r, s, stride_h=1, stride_w=1, pad_h=0, pad_w=0, dilation_h=1,
           dilation_w=1):
  return dict(kernel=(r, s), stride=(stride_h, stride_w), pad=(pad_h, pad_w),
              dilation=(dilation_h, dilation_w))


def conv2d(name, x, outputs, win, groups=1, mode="constant", same=False):
  def run(x, w, b):
    x = nchw(x)
    pad = win["pad"]
    if same and mode == "constant":
      pad = "same"
    elif same or mode != "constant":
      pads = same_pads(win) if same else [pad[1], pad[1], pad[0], pad[0]]
      x, pad = F.pad(x, pads, mode), 0
    return nhwc(F.conv2d(x, w, b, win["stride"], pad, win["dilation"],
                         groups))
  weight = [outputs, x[3] // groups, *win["kernel"]]
  return ("conv2d_" + name, [x, weight, [outputs]], run)


def conv1d(name, x, outputs, kernel, stride=1, pad=0, dilation=1, groups=1,
           mode="constant"):
  def run(x, w, b):
    x, left = x.permute(0, 2, 1), pad
    if mode != "constant":
      x, left = F.pad(x, [pad, pad], mode), 0
    return F.conv1d(x, w, b, stride, left, dilation, groups).permute(0, 2, 1)
  return ("conv1d_" + name, [x, [outputs, x[2] // groups, kernel], [outputs]],
          run)


def transposed(name, x, weight, win, groups=1, output_padding=(0, 0)):
  def run(x, w, b):
    return nhwc(F.conv_transpose2d(nchw(x), w, b, win["stride"], win["pad"],
                                   output_padding, groups, win["dilation"]))
  return ("conv_transpose2d_" + name, [x, weight, [weight[1] * groups]], run)


CASES = [
    conv2d("grouped", [2, 5, 4, 6], 4, window(3, 3, 1, 1, 1, 1), groups=2),
    conv2d("grouped_pixels", [2, 3, 4, 6], 9, window(1, 1), groups=3),
    conv2d("depthwise", [2, 6, 5, 3], 3, window(3, 2, 2, 1, 1, 0), groups=3),
    conv2d("depthwise_twice", [1, 4, 5, 2], 4, window(3, 3, 1, 1, 1, 1),
           groups=2),
    conv2d("dilated", [2, 7, 6, 2], 3, window(3, 2, 1, 2, 1, 2, 2, 3)),
    conv2d("dilated_depthwise", [1, 7, 8, 3], 3,
           window(3, 3, 1, 1, 2, 2, 2, 2), groups=3),
    conv2d("reflect", [1, 4, 5, 2], 3, window(3, 3, 1, 1, 1, 2),
           mode="reflect"),
    conv2d("replicate", [1, 4, 5, 2], 3, window(3, 3, 2, 1, 1, 2),
           mode="replicate"),
    conv2d("circular", [1, 4, 5, 2], 3, window(3, 3, 1, 1, 1, 2),
           mode="circular"),
    conv2d("same_even", [1, 4, 5, 2], 3, window(2, 4, 1, 1, 0, 0, 3, 1),
           same=True),
    conv2d("same_odd", [1, 4, 5, 2], 3, window(3, 5), same=True),
    conv2d("same_circular", [1, 4, 5, 2], 3, window(2, 3), mode="circular",
           same=True),
    conv1d("plain", [2, 9, 3], 4, 3),
    conv1d("strided", [2, 10, 2], 3, 4, 3, 2, 2),
    conv1d("grouped", [2, 6, 4], 6, 3, 1, 1, groups=2),
    conv1d("circular", [1, 7, 2], 2, 4, 1, 3, mode="circular"),
    ("conv_transpose1d", [[2, 4, 3], [3, 2, 4], [2]],
     lambda x, w, b: F.conv_transpose1d(
         x.permute(0, 2, 1), w, b, 3, 1, 2).permute(0, 2, 1)),
    transposed("plain", [2, 3, 4, 3], [3, 2, 3, 2], window(3, 2)),
    transposed("pixels", [2, 3, 2, 3], [3, 4, 1, 1], window(1, 1)),
    transposed("doubled", [2, 3, 4, 3], [3, 2, 2, 2], window(2, 2, 2, 2)),
    transposed("uneven", [1, 4, 3, 2], [2, 3, 3, 4], window(3, 4, 2, 3, 1, 1),
               output_padding=(1, 2)),
    transposed("grouped", [1, 3, 4, 4], [4, 3, 3, 3],
               window(3, 3, 2, 1, 1, 1), groups=2),
    transposed("depthwise", [1, 3, 4, 3], [3, 1, 3, 3],
               window(3, 3, 2, 2, 1, 1), groups=3, output_padding=(1, 1)),
    transposed("dilated", [1, 3, 4, 2], [2, 2, 2, 3],
               window(2, 3, 2, 1, 1, 2, 3, 2), output_padding=(1, 0)),
    ("conv_transpose2d_no_bias", [[1, 3, 2, 2], [2, 3, 2, 3]],
     lambda x, w: nhwc(F.conv_transpose2d(nchw(x), w))),
]
