"""Compares models of full size with PyTorch: from the same weights, outputs,
loss, every gradient and the losses of 20 steps.

    bazel build //tools/golden:parity
    python3 tools/golden/parity.py                   # all models, some minutes
    python3 tools/golden/parity.py gpt vit_tiny      # some of them
    ... --thin            narrow models, in seconds, to try the comparison
    ... --draw=1          other weights and samples
    ... --folder=FOLDER   keep PyTorch's results, 2.3 GB for all

Needs PyTorch (a CPU is enough). For each model it writes a folder with
weights.safetensors, PyTorch's state_dict, and case.safetensors, PyTorch's
results in f64 and the errors of its own f32. The program then trains from these
weights in f64 on the reference kernels and in f32 on the cpu kernels, and
prints one table; `bazel-bin/tools/golden/parity --help` says what is in it.
docs/numerics.md has the limits, and what was seen.

Models are in training: batch norms take the statistics of the batch, and
dropout is 0. The steps are all on one batch.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

from golden_values import write_safetensors
from torch_models import make_model, make_optimizer

STEPS = 20
SGD = dict(kind="sgd", lr=0.01, momentum=0.9)
ADAMW = dict(kind="adamw", lr=0.001)

# x is the shape of the input: images (N, H, W, C) or tokens (N, T). `thin` has
# the arguments of the model that --thin changes.
CASES = {
    "resnet18": dict(
        model=dict(kind="resnet", depth=18, num_classes=1000),
        optimizer=SGD, x=[4, 64, 64, 3], thin=dict(width=4, num_classes=10)),
    "resnet50": dict(
        model=dict(kind="resnet", depth=50, num_classes=1000),
        optimizer=SGD, x=[4, 64, 64, 3], thin=dict(width=4, num_classes=10)),
    "vgg11": dict(
        model=dict(kind="vgg", depth=11, num_classes=1000, dropout=0),
        # It has no norms, and diverges at the learning rate of the others.
        optimizer=dict(SGD, lr=1e-4), x=[2, 32, 32, 3],
        thin=dict(width=4, hidden=32, num_classes=10)),
    "gpt": dict(
        model=dict(kind="gpt2", layers=4, heads=4, width=256, context=128,
                   vocab_size=512),
        optimizer=ADAMW, x=[2, 64], thin=dict(width=32)),
    "vit_tiny": dict(
        model=dict(kind="vit", depth=12, heads=3, width=192, image_size=224,
                   patch=16, num_classes=1000),
        optimizer=ADAMW, x=[2, 224, 224, 3],
        thin=dict(width=24, patch=56, num_classes=10)),
}


def fill(model):
    """Sets initial values as large as in practice. Those of norms and biases
    are not all 1 and 0, which would hide mistakes. The last norm of a residual
    block begins small (Goyal et al. 2017): otherwise a deep network of random
    weights is chaotic, and PyTorch's own f32 has two correct digits."""
    names = {name for name, _ in model.named_parameters()}
    last = "bn3.weight" if "layer1.0.bn3.weight" in names else "bn2.weight"
    for name, p in model.named_parameters():
        if name.startswith("layer") and name.endswith(last):
            nn.init.normal_(p, 0.2, 0.02)
        elif p.dim() == 1:
            nn.init.normal_(p, 1 if name.endswith(".weight") else 0, 0.1)
        elif p.dim() == 4 or name.startswith("classifier."):
            nn.init.kaiming_normal_(p, nonlinearity="relu")
        else:
            nn.init.normal_(p, 0, 0.02)


def train(case, weights, x, labels, dtype):
    """Returns the output and {name: gradient} of the first step, and the losses
    of all steps."""
    model = make_model(case["model"])
    model.load_state_dict(weights)
    model = model.to(dtype).train()
    optimizer = make_optimizer(case["optimizer"], model.parameters())
    x = x.to(dtype) if x.is_floating_point() else x
    losses = []
    for step in range(STEPS + 1):
        output = model(x)
        loss = F.cross_entropy(output.flatten(0, -2), labels.flatten())
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            sys.exit("PyTorch's loss is %g after %d steps: take a lower "
                     "learning rate" % (losses[-1], len(losses) - 1))
        if step == STEPS:
            break
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            first = output.detach().clone()
            gradients = {name: p.grad.clone()
                         for name, p in model.named_parameters()}
        optimizer.step()
    return first, gradients, losses


def error(got, want):
    return ((got.double() - want).norm() / want.norm()).item()


def write_case(folder, name, case, draw):
    """Writes the folder of a case. Its name and the number `draw` seed all
    random numbers."""
    torch.manual_seed(sum(name.encode()) + 10000 * draw)
    os.makedirs(folder, exist_ok=True)
    model = make_model(case["model"])
    fill(model)
    weights = model.state_dict()
    shape = case["x"]
    if len(shape) == 2:
        classes = case["model"]["vocab_size"]
        x, labels = torch.randint(classes, shape), torch.randint(classes, shape)
    else:
        x = torch.randn(shape)
        labels = torch.randint(case["model"]["num_classes"], shape[:1])
    write_safetensors(f"{folder}/weights.safetensors", weights, {})
    output, gradients, losses = train(case, weights, x, labels, torch.float64)
    output_f32, gradients_f32, losses_f32 = train(case, weights, x, labels,
                                                  torch.float32)
    spec = dict(
        name=name, model=case["model"], optimizer=case["optimizer"],
        torch=torch.__version__,
        f32=dict(output=error(output_f32, output), losses=losses_f32,
                 gradients={key: error(gradients_f32[key], gradient)
                            for key, gradient in gradients.items()}))
    tensors = dict(x=x, labels=labels, output=output,
                   losses=torch.tensor(losses, dtype=torch.float64),
                   **{f"gradients/{key}": gradient
                      for key, gradient in gradients.items()})
    write_safetensors(f"{folder}/case.safetensors", tensors, spec)


def compare(arguments, folder):
    begin = time.monotonic()
    folders = []
    for name in arguments.models or CASES:
        case = CASES[name]
        if arguments.thin:
            case = dict(case, model=dict(case["model"], **case["thin"]))
        folders.append(os.path.join(folder, name))
        write_case(folders[-1], name, case, arguments.draw)
    middle = time.monotonic()
    code = subprocess.run([arguments.program, *folders]).returncode
    print(f"PyTorch took {(middle - begin) / 60:.1f} minutes, "
          f"the program {(time.monotonic() - middle) / 60:.1f}")
    return code


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*",
                        help=f"of {', '.join(CASES)}; none: all of them")
    parser.add_argument("--thin", action="store_true", help="narrow models")
    parser.add_argument("--draw", type=int, default=0,
                        help="number of other weights and samples")
    parser.add_argument("--folder", help="where to write, and leave, files")
    parser.add_argument("--program", default=os.path.join(
        here, "..", "..", "bazel-bin", "tools", "golden", "parity"))
    arguments = parser.parse_args()
    for name in arguments.models:
        if name not in CASES:
            parser.error(f"there is no model {name}; there are "
                         f"{', '.join(CASES)}")
    if not os.path.exists(arguments.program):
        parser.error(f"there is no {arguments.program}: bazel build "
                     "//tools/golden:parity")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if arguments.folder:
        sys.exit(compare(arguments, arguments.folder))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(compare(arguments, folder))


if __name__ == "__main__":
    main()
