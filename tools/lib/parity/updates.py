"""Optimizers and learning rates of the section [optimizer], by torch.optim.

    optimizer = make_optimizer(keys, named_parameters)
    rates = learning_rates(keys, lr, steps)
"""

import fnmatch
import math

import torch
from torch.optim import lr_scheduler as S

from torch_optimizers import Lamb, Lars


def base_rate(keys, global_batch_size):
    lr = keys.get("lr", 0.01 if keys["kind"] in ("sgd", "lars") else 0.001)
    times = global_batch_size / keys.get("lr_base_batch_size",
                                         global_batch_size)
    scaling = {"none": 1, "linear": times, "sqrt": math.sqrt(times)}
    return lr * scaling[keys.get("lr_scaling", "none")]


def decayed(keys, name, parameter):
    """Whether a parameter has weight decay."""
    if any(fnmatch.fnmatchcase(name, pattern)
           for pattern in keys.get("no_decay", [])):
        return False
    return parameter.dim() > 1 or not keys.get("no_decay_1d")


def make_optimizer(keys, named, lr):
    """The optimizer of the trainable ones of the pairs (name, parameter)."""
    kind = keys["kind"]
    decay = keys.get("weight_decay", 0.01 if kind == "adamw" else 0.0)
    by_decay = {}
    for name, p in named:
        if p.requires_grad:
            own = decay if decayed(keys, name, p) else 0.0
            by_decay.setdefault(own, []).append(p)
    groups = [dict(params=parameters, weight_decay=own)
              for own, parameters in by_decay.items()]
    betas = tuple(keys.get("betas", (0.9, 0.999)))
    if kind == "sgd":
        return torch.optim.SGD(groups, lr, keys.get("momentum", 0),
                               keys.get("dampening", 0),
                               nesterov=keys.get("nesterov", False))
    if kind == "lamb":
        return Lamb(groups, lr, betas, keys.get("eps", 1e-6))
    if kind == "lars":
        return Lars(groups, lr, keys.get("momentum", 0.9), decay,
                    keys.get("trust_coefficient", 0.001), keys.get("eps", 0.0))
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    return make(groups, lr, betas, keys.get("eps", 1e-8),
                amsgrad=keys.get("amsgrad", False))


SCHEDULES = {  # optimizer.schedule: PyTorch's scheduler of (optimizer, keys)
    "constant": lambda o, k, lr: S.LambdaLR(o, lambda step: 1.0),
    "step": lambda o, k, lr: S.StepLR(o, k.get("step_size", 1),
                                      k.get("gamma", 0.1)),
    "multi_step": lambda o, k, lr: S.MultiStepLR(o, k["milestones"],
                                                 k.get("gamma", 0.1)),
    "exponential": lambda o, k, lr: S.ExponentialLR(o, k.get("gamma", 0.1)),
    "cosine": lambda o, k, lr: S.CosineAnnealingLR(
        o, k["schedule_steps"], eta_min=k.get("min_factor", 0.0) * lr),
    "linear": lambda o, k, lr: S.LinearLR(o, 1.0, k.get("min_factor", 0.0),
                                          k["schedule_steps"]),
    "one_cycle": lambda o, k, lr: S.OneCycleLR(
        o, lr, total_steps=k["schedule_steps"], cycle_momentum=False),
    "polynomial": lambda o, k, lr: S.PolynomialLR(o, k["schedule_steps"],
                                                  k.get("power", 1.0)),
    "inverse_sqrt": lambda o, k, lr: S.LambdaLR(o, lambda step: math.sqrt(
        max(k.get("warmup_steps", 0), 1)
        / (max(k.get("warmup_steps", 0), 1) + step))),
}


def learning_rates(keys, lr, steps):
    """The learning rate of each step. The schedule follows the warm-up on an
    optimizer of its own, since SequentialLR disturbs some schedulers."""

    def rates_of(make, count):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr)
        scheduler, rates = make(optimizer), []
        for step in range(count):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if step + 1 < count:
                scheduler.step()
        return rates

    warm, start = keys.get("warmup_steps", 0), keys.get("warmup_start", 1 / 3)
    rates = []
    if warm and start > 0:
        rates = rates_of(lambda o: S.LinearLR(o, start, 1.0, warm), warm)
    elif warm:  # LinearLR refuses a start of 0
        rates = [lr * step / warm for step in range(warm)]
    schedule = SCHEDULES[keys.get("schedule", "constant")]
    keys = {"schedule_steps": max(1, steps - warm), **keys}
    rates += rates_of(lambda o: schedule(o, keys, lr), max(steps - warm, 0))
    return rates[:steps]
