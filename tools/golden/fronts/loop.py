"""PyTorch's side of tests/nn/fronts/loop_fronts.cc."""

import torch


def positive(x):
    return x * x + 0.5


def zeros_of(x):
    """Zeros with the gradient of x."""
    return x - x.detach()


def expression(x, y):
    return (2 * x - y / 3) * (1 - x) + 0.5 / positive(y) - (-x)[1] * y[:, 1:2]


CASES = [
    ("square_of", [[3, 5]], torch.square),
    ("rsqrt", [[3, 5]], lambda x: torch.rsqrt(positive(x))),
    ("pow_2", [[7]], lambda x: x ** 2),
    ("pow_3", [[7]], lambda x: x ** 3),
    ("pow_minus_2", [[7]], lambda x: positive(x) ** -2),
    ("pow_half", [[7]], lambda x: positive(x) ** 0.5),
    ("pow_1_7", [[3, 5]], lambda x: positive(x) ** 1.7),
    ("pow_0", [[4]], lambda x: x * x ** 0),
    ("abs", [[3, 5]], torch.abs),
    ("abs_at_0", [[4]], lambda x: torch.abs(zeros_of(x))),
    ("sin", [[3, 5]], lambda x: torch.sin(4 * x)),
    ("cos", [[3, 5]], lambda x: torch.cos(4 * x)),
    ("clamp", [[30]], lambda x: x.clamp(-0.3, 0.4)),
    ("clamp_below", [[30]], lambda x: x.clamp(min=-0.1)),
    ("clamp_at_the_limit", [[4]], lambda x: zeros_of(x).clamp(0, 0)),
    ("variance_of_all", [[4, 6]], torch.var),
    ("variance_of_rows", [[2, 3, 6]],
     lambda x: x.var((0, 2), correction=0, keepdim=True)),
    ("max_of_rows", [[4, 9]], lambda x: x.max(1).values),
    ("max_of_columns", [[2, 5, 3]], lambda x: x.max(1, keepdim=True).values),
    ("min_of_rows", [[4, 9]], lambda x: x.min(-1).values),
    ("max_of_ties", [[2, 5]], lambda x: zeros_of(x).max(1).values),
    ("amax_of_images", [[2, 3, 4, 3]], lambda x: x.amax((1, 2))),
    ("amin_of_all", [[3, 5]], torch.amin),
    ("amax_of_ties", [[2, 5]], lambda x: zeros_of(x).amax(1, keepdim=True)),
    ("stack_in_front", [[2, 3], [2, 3]], lambda *xs: torch.stack(xs, 0)),
    ("stack_behind", [[2, 3], [2, 3]], lambda *xs: torch.stack(xs, -1)),
    ("expand_rows", [[1, 4]], lambda x: x.expand(3, 4)),
    ("expand_in_front", [[4, 1]], lambda x: x.expand(2, 4, 3)),
    ("repeat", [[2, 3]], lambda x: x.repeat(2, 3)),
    ("repeat_in_front", [[2, 3]], lambda x: x.repeat(2, 1, 2)),
    ("flip_rows", [[4, 3]], lambda x: x.flip(0)),
    ("flip_both", [[2, 4, 3]], lambda x: x.flip(0, 2)),
    ("roll", [[4, 3]], lambda x: x.roll(1, 0)),
    ("roll_back", [[2, 5]], lambda x: x.roll(-7, 1)),
    ("roll_around", [[3, 2]], lambda x: x.roll(3, 0)),
    ("tril", [[2, 4, 5]], torch.tril),
    ("tril_above", [[4, 5]], lambda x: x.tril(1)),
    ("triu_below", [[5, 3]], lambda x: x.triu(-1)),
    ("var_expression", [[3, 4], [3, 4]], expression),
    ("var_shapes", [[2, 3, 4]],
     lambda x: x.transpose(0, 1).reshape(3, -1).unsqueeze(1)[..., -3:]
     .permute(2, 1, 0).squeeze(1) * x[1, :, 0]),
]
