"""Writes tests/golden/optimizers_{f32,f64}.safetensors with PyTorch.

    python3 tools/golden/make_optimizers.py tests/golden

Each case trains a weight and a bias for some steps on given gradients.
tests/nn/optim/golden_optimizers_test.cc reads the options of a case from the
file.
"""

import sys

import torch

from golden_values import DTYPES, formula, write_safetensors
from torch_optimizers import Lamb, Lars

SHAPES = {"weight": [4, 5], "bias": [5]}
STEPS = 5

CASES = [
    dict(name="adam", kind="adam", lr=0.1),
    dict(name="adam_decay", kind="adam", lr=0.1, betas=[0.8, 0.9], eps=0.01,
         weight_decay=0.05),
    dict(name="adam_amsgrad", kind="adam", lr=0.1, betas=[0.5, 0.6],
         amsgrad=True),
    dict(name="adamw", kind="adamw", lr=0.1),
    dict(name="adamw_amsgrad", kind="adamw", lr=0.1, weight_decay=0.2,
         betas=[0.5, 0.6], amsgrad=True),
    dict(name="adamw_no_decay_1d", kind="adamw", lr=0.1, weight_decay=0.3,
         no_decay_1d=True),
    dict(name="adamw_clip_norm", kind="adamw", lr=0.1, clip_grad_norm=1.0),
    dict(name="sgd_clip_norm", kind="sgd", lr=0.1, clip_grad_norm=1.0),
    dict(name="sgd_clip_nothing", kind="sgd", lr=0.1, clip_grad_norm=100.0),
    dict(name="sgd_clip_value", kind="sgd", lr=0.1, clip_grad_value=0.25),
    dict(name="sgd_ema", kind="sgd", lr=0.1, ema_decay=0.75),
    dict(name="adamw_ema", kind="adamw", lr=0.1, ema_decay=0.75),
    dict(name="lamb", kind="lamb", lr=0.1, weight_decay=0.05),
    dict(name="lamb_no_decay_1d", kind="lamb", lr=0.1, weight_decay=0.05,
         betas=[0.8, 0.9], eps=0.01, no_decay_1d=True),
    dict(name="lars", kind="lars", lr=0.5, weight_decay=0.05, momentum=0.9,
         trust_coefficient=0.1),
    dict(name="lars_no_momentum", kind="lars", lr=0.5, weight_decay=0.05,
         momentum=0.0, trust_coefficient=0.1, eps=0.01),
]


KINDS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam,
         "adamw": torch.optim.AdamW, "lamb": Lamb, "lars": Lars}
NOT_THE_OPTIMIZERS = ("name", "kind", "no_decay_1d", "clip_grad_norm",
                      "clip_grad_value", "ema_decay")


def optimizer_of(c, params):
    options = {k: v for k, v in c.items() if k not in NOT_THE_OPTIMIZERS}
    if c["kind"] in ("sgd", "adam", "adamw"):
        options["foreach"] = False
    groups = list(params.values())
    if c.get("no_decay_1d"):
        groups = [{"params": [p for p in groups if p.dim() > 1]},
                  {"params": [p for p in groups if p.dim() < 2],
                   "weight_decay": 0.0}]
    return KINDS[c["kind"]](groups, **options)


def make_case(c, dtype, out):
    name = c["name"]
    params = {key: formula(f"{name}/{key}", shape, 1.0, dtype).requires_grad_()
              for key, shape in SHAPES.items()}
    optimizer = optimizer_of(c, params)
    averages = {key: p.detach().clone() for key, p in params.items()}
    trajectory = {key: [] for key in params}
    for step in range(STEPS):
        for key, p in params.items():
            p.grad = formula(f"{name}/{key}/g{step}", SHAPES[key], 1.0, dtype)
        if "clip_grad_norm" in c:
            torch.nn.utils.clip_grad_norm_(params.values(),
                                           c["clip_grad_norm"])
        if "clip_grad_value" in c:
            torch.nn.utils.clip_grad_value_(params.values(),
                                            c["clip_grad_value"])
        optimizer.step()
        for key, p in params.items():
            trajectory[key].append(p.detach().clone())
            averages[key].lerp_(p.detach(), 1 - c.get("ema_decay", 0))
    for key in params:
        out[f"{name}/{key}"] = torch.stack(trajectory[key])
        if "ema_decay" in c:
            out[f"{name}/{key}/ema"] = averages[key]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for dtype_name, dtype in DTYPES.items():
        out = {}
        for c in CASES:
            make_case(c, dtype, out)
        write_safetensors(f"{sys.argv[1]}/optimizers_{dtype_name}.safetensors",
                          out, {"steps": STEPS, "cases": CASES})


if __name__ == "__main__":
    main()
