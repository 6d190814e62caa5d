"""Writes tests/golden/models_f64.safetensors with PyTorch: outputs and losses
of small models, from weights that both sides compute.

    python3 tools/golden/make_models.py tests/golden

For each model, the file has the outputs in training and then in evaluation, the
sum of the losses, the norm and three elements (the first, the middle one, the
last) of each parameter's gradient, and the mean losses of 20 steps on this
batch and after them. tests/nn/models/golden_models_test.cc compares them.
tools/golden/parity.py does the same at full size.
"""

import sys

import torch
from torch.nn import functional as F

from golden_values import formula, labels, write_safetensors
from torch_models import make_model, make_optimizer

STEPS = 20
SGD = dict(kind="sgd", lr=0.015625, momentum=0.875)
ADAMW = dict(kind="adamw", lr=0.0009765625)

# x is the shape of the input: images (N, H, W, C) or tokens (N, T). `classes`
# is the number of different labels, and of different tokens.
CASES = [
    dict(name="resnet18", classes=10, optimizer=SGD, x=[4, 16, 16, 3],
         model=dict(kind="resnet", depth=18, width=8, num_classes=10,
                    cifar=True)),
    dict(name="resnet50", classes=10, optimizer=SGD, x=[2, 64, 64, 3],
         model=dict(kind="resnet", depth=50, width=8, num_classes=10)),
    dict(name="vgg11", classes=10, optimizer=SGD, x=[2, 32, 32, 3],
         model=dict(kind="vgg", depth=11, width=4, hidden=16, num_classes=10,
                    dropout=0)),
    dict(name="vgg11_bn", classes=10, optimizer=SGD, x=[3, 32, 32, 3],
         model=dict(kind="vgg", depth=11, width=4, hidden=16, num_classes=10,
                    batch_norm=True, dropout=0)),
    dict(name="gpt2", classes=65, optimizer=ADAMW, x=[2, 12],
         model=dict(kind="gpt2", layers=2, heads=2, width=32, context=16,
                    vocab_size=65)),
    dict(name="vit", classes=10, optimizer=ADAMW, x=[2, 16, 16, 3],
         model=dict(kind="vit", depth=2, heads=2, width=32, image_size=16,
                    patch=4, num_classes=10)),
]


def scale_of(shape):
    """Returns a power of two near 2 / sqrt(fan in), so that outputs are about
    as large as inputs."""
    fan_in = torch.Size(shape).numel() // shape[0]
    scale = 1.0
    while scale * scale * fan_in > 4:
        scale /= 2
    return scale


def weight(case, name, shape, dtype):
    """Returns a weight: around 1 for norms, small for biases."""
    if len(shape) > 1:
        return formula(f"{case}/{name}", shape, scale_of(shape), dtype)
    value = formula(f"{case}/{name}", shape, 0.25, dtype)
    return value + 1 if name.endswith(".weight") else value


def make_case(spec, dtype):
    """Returns the model with its weights, x and the labels."""
    case, shape, classes = spec["name"], spec["x"], spec["classes"]
    model = make_model(spec["model"]).to(dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weight(case, name, list(parameter.shape), dtype))
    tokens = len(shape) == 2
    count = torch.Size(shape if tokens else shape[:1]).numel()
    x = (labels(f"{case}/x", count, classes, False).reshape(shape) if tokens
         else formula(f"{case}/x", shape, 1.0, dtype))
    return model, x, labels(f"{case}/target", count, classes, False)


def run_case(spec, dtype, out):
    case = spec["name"]
    model, x, target = make_case(spec, dtype)
    y = model.train()(x)
    loss = F.cross_entropy(y.flatten(0, -2), target, reduction="sum")
    loss.backward()
    out[f"{case}/y"] = y
    out[f"{case}/loss"] = loss.reshape(1)
    for name, parameter in model.named_parameters():
        grad = parameter.grad.flatten()
        out[f"{case}/d/{name}"] = torch.stack(
            [grad.norm(), grad[0], grad[len(grad) // 2], grad[-1]])
    out[f"{case}/y_eval"] = model.eval()(x)


def run_steps(spec, dtype, out):
    model, x, target = make_case(spec, dtype)
    optimizer = make_optimizer(spec["optimizer"], model.train().parameters())
    losses = []
    for _ in range(STEPS + 1):
        loss = F.cross_entropy(model(x).flatten(0, -2), target)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    out[f"{spec['name']}/losses"] = torch.tensor(losses, dtype=dtype)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out = {}
    for spec in CASES:
        run_case(spec, torch.float64, out)
        run_steps(spec, torch.float64, out)
    write_safetensors(f"{sys.argv[1]}/models_f64.safetensors", out,
                      {"cases": CASES})


if __name__ == "__main__":
    main()
