"""Writes tests/golden/models_f64.safetensors with PyTorch: what small models give
and learn from weights that both sides compute.

    python3 tools/golden/make_models.py tests/golden

For each model: the outputs in training and then in evaluation, the sum of the
losses, and of each parameter's gradient its norm and three elements (the first,
the middle one, the last). tests/nn/models/golden_models_test.cc compares.
"""

import sys

import torch
from torch.nn import functional as F

from golden_values import formula, labels, write_safetensors
from torch_models import Gpt2, ResNet, Vgg, Vit

# Name, model, shape of the input (images are (N, H, W, C), tokens (N, T)) and
# number of classes or tokens.
CASES = [
    ("resnet18", lambda: ResNet(18, width=8, num_classes=10, cifar=True),
     [4, 16, 16, 3], 10),
    ("resnet50", lambda: ResNet(50, width=8, num_classes=10), [2, 64, 64, 3],
     10),
    ("vgg11", lambda: Vgg(11, width=4, hidden=16, num_classes=10, dropout=0),
     [2, 32, 32, 3], 10),
    ("vgg11_bn", lambda: Vgg(11, width=4, hidden=16, num_classes=10,
                             batch_norm=True, dropout=0), [3, 32, 32, 3], 10),
    ("gpt2", lambda: Gpt2(2, heads=2, width=32, context=16, vocab_size=65),
     [2, 12], 65),
    ("vit", lambda: Vit(2, heads=2, width=32, image_size=16, patch=4,
                        num_classes=10), [2, 16, 16, 3], 10),
]


def scale_of(shape):
    """A power of two near 2 / sqrt(fan in): outputs are about as large as
    inputs."""
    fan_in = torch.Size(shape).numel() // shape[0]
    scale = 1.0
    while scale * scale * fan_in > 4:
        scale /= 2
    return scale


def weight(case, name, shape, dtype):
    """Around 1 for the weights of norms, small for biases."""
    if len(shape) > 1:
        return formula(f"{case}/{name}", shape, scale_of(shape), dtype)
    value = formula(f"{case}/{name}", shape, 0.25, dtype)
    return value + 1 if name.endswith(".weight") else value


def run_case(case, make, shape, classes, dtype, out):
    model = make().to(dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weight(case, name, list(parameter.shape), dtype))
    tokens = len(shape) == 2
    count = torch.Size(shape if tokens else shape[:1]).numel()
    x = (labels(f"{case}/x", count, classes, False).reshape(shape) if tokens
         else formula(f"{case}/x", shape, 1.0, dtype))
    target = labels(f"{case}/target", count, classes, False)
    y = model.train()(x)
    loss = F.cross_entropy(y.reshape(-1, classes), target, reduction="sum")
    loss.backward()
    out[f"{case}/y"] = y
    out[f"{case}/loss"] = loss.reshape(1)
    for name, parameter in model.named_parameters():
        grad = parameter.grad.flatten()
        out[f"{case}/d/{name}"] = torch.stack(
            [grad.norm(), grad[0], grad[len(grad) // 2], grad[-1]])
    out[f"{case}/y_eval"] = model.eval()(x)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out = {}
    for case, make, shape, classes in CASES:
        run_case(case, make, shape, classes, torch.float64, out)
    spec = {"models": [case[0] for case in CASES]}
    write_safetensors(f"{sys.argv[1]}/models_f64.safetensors", out, spec)


if __name__ == "__main__":
    main()
