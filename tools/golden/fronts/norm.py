"""PyTorch's side of tests/nn/fronts/norm_fronts.cc."""

import torch
import torch.nn.functional as F


def channels_first(function):
    """Makes `function`, of x with channels second, take x with them last."""
    return lambda x, *rest: function(x.movedim(-1, 1), *rest).movedim(1, -1)


def group_norm(groups):
    return channels_first(lambda x, *weights: F.group_norm(x, groups, *weights))


@channels_first
def batch_norm(x, *weights):
    return F.batch_norm(x, None, None, *weights, training=True)


@channels_first
def evaluated(x, w, b):
    mean = torch.tensor([0.5, -0.25, 1], dtype=x.dtype)
    var = torch.tensor([1, 0.5, 2], dtype=x.dtype)
    return F.batch_norm(x, mean, var, w, b, training=False, eps=1e-3)


def residual_relu(x, residual, w, b):
    return F.relu(batch_norm(x, w, b) + residual)


CASES = [
    ("layer_norm_affine", [[4, 7], [7], [7]],
     lambda x, w, b: F.layer_norm(x, [7], w, b)),
    ("layer_norm_no_bias", [[2, 3, 6], [6]],
     lambda x, w: F.layer_norm(x, [6], w)),
    ("layer_norm_no_weight", [[4, 7]], lambda x: F.layer_norm(x, [7])),
    ("layer_norm_two_axes", [[3, 2, 5], [2, 5], [2, 5]],
     lambda x, w, b: F.layer_norm(x, [2, 5], w, b)),
    ("add_layer_norm", [[4, 7], [4, 7], [7], [7]],
     lambda a, b, w, bias: (a + b) * F.layer_norm(a + b, [7], w, bias)),
    ("add_layer_norm_broadcast", [[2, 3, 7], [3, 7], [7]],
     lambda a, b, w: (a + b) * F.layer_norm(a + b, [7], w)),
    ("add_rms_norm", [[2, 3, 6], [2, 3, 6], [6]],
     lambda a, b, w: (a + b) * F.rms_norm(a + b, [6], w, eps=1e-6)),
    ("rms_norm", [[2, 3, 6], [6]],
     lambda x, w: F.rms_norm(x, [6], w, eps=1e-6)),
    ("rms_norm_no_weight", [[4, 5]], lambda x: F.rms_norm(x, [5])),
    ("group_norm_images", [[2, 3, 4, 6], [6], [6]], group_norm(3)),
    ("group_norm_one_place", [[5, 6], [6], [6]], group_norm(2)),
    ("group_norm_no_weight", [[2, 5, 4]], group_norm(1)),
    ("batch_norm_of_rows", [[5, 4], [4], [4]], batch_norm),
    ("batch_norm_of_sequences", [[3, 4, 2], [2], [2]], batch_norm),
    ("batch_norm_of_images", [[2, 3, 2, 5], [5], [5]], batch_norm),
    ("batch_norm_no_weight", [[6, 3]], batch_norm),
    ("batch_norm_relu", [[2, 3, 2, 4], [4], [4]],
     lambda x, w, b: F.relu(batch_norm(x, w, b))),
    ("batch_norm_residual_relu", [[2, 3, 2, 4], [2, 3, 2, 4], [4], [4]],
     residual_relu),
    ("batch_norm_evaluated", [[4, 2, 3], [3], [3]], evaluated),
]
