"""Writes tests/golden/fronts_<family>_{f32,f64}.safetensors with PyTorch.

    python3 tools/golden/make_fronts.py tests/golden [family ...]

A family is a file of tools/golden/fronts with a list CASES of (name, shapes,
function). The case of that name in AllFrontCases()
(tests/nn/fronts/front_case.h) must agree with this function of PyTorch on
tensors of these shapes. The function takes the tensors and returns the output,
or {sum, count, correct} of a loss. Shapes are in Troupe's order; images are
(N, H, W, C).
"""

import importlib
import os
import sys

import torch

from golden_values import DTYPES, formula, write_safetensors


def make_case(case, dtype, out):
    name, shapes, function = case
    inputs = [formula(f"{name}/{i}", shape, 1.0, dtype).requires_grad_()
              for i, shape in enumerate(shapes)]
    y = function(*inputs)
    if isinstance(y, tuple):
        y[0].backward()
        stored = torch.tensor([float(v) for v in y], dtype=torch.float64)
    else:
        y.backward(formula(f"{name}/dy", list(y.shape), 1.0, dtype))
        stored = y
    out[f"{name}/y"] = stored
    for i, x in enumerate(inputs):
        out[f"{name}/d{i}"] = (x.grad if x.grad is not None
                               else torch.zeros_like(x))


def make_family(folder, family):
    cases = importlib.import_module(f"fronts.{family}").CASES
    for dtype_name, dtype in DTYPES.items():
        out = {}
        for case in cases:
            make_case(case, dtype, out)
        write_safetensors(f"{folder}/fronts_{family}_{dtype_name}.safetensors",
                          out, {"cases": [case[0] for case in cases]})


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fronts")
    families = sys.argv[2:] or sorted(
        name[:-3] for name in os.listdir(here) if name.endswith(".py"))
    for family in families:
        make_family(sys.argv[1], family)


if __name__ == "__main__":
    main()
