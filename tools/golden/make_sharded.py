"""Writes tests/golden/sharded_f64.safetensors with PyTorch: trainings of a small
GPT whose parameters or optimizer states are divided between two processes.

    python3 tools/golden/make_sharded.py tests/golden

    tensor    parallelize_module() with column and row layers, attention by
              heads, and the tied table of an odd vocabulary by rows
    zero      DistributedDataParallel and ZeroRedundancyOptimizer

Stored are the mean loss of each step, and of each parameter at the end the sum,
the norm and three elements (the first, the middle one, the last) of the whole.
tests/actors/sim/golden_divided_test.cc trains the same with mesh.tp and with
zero.stage.
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Replicate, init_device_mesh
from torch.distributed.tensor.parallel import (ColwiseParallel,
                                               RowwiseParallel,
                                               parallelize_module)
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from golden_values import labels, write_safetensors
from make_models import weight
from torch_models import attend, make_model

RANKS = 2
STEPS = 8
SAMPLES = 4  # of a step
MODEL = dict(kind="gpt2", layers=2, heads=2, width=16, context=6, vocab_size=11)
RULES = {
    "sgd": (torch.optim.SGD, dict(lr=0.0625, momentum=0.875)),
    "adamw": (torch.optim.AdamW, dict(lr=0.00390625)),
}


def gpt():
    model = make_model(MODEL).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(weight("sharded", name, list(p.shape), p.dtype))
    return model


def batch(step):
    """Returns tokens and targets of a step, [samples, context] each."""
    return [labels(f"sharded/{what}{step}", SAMPLES * MODEL["context"],
                   MODEL["vocab_size"], False).reshape(SAMPLES, -1)
            for what in ("x", "y")]


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, -2), y.flatten())


def summary(tensors):
    """Returns what is stored of each parameter."""
    return {name: torch.stack([p.sum(), p.norm(), p.flatten()[0],
                               p.flatten()[p.numel() // 2], p.flatten()[-1]])
            for name, p in tensors.items()}


# --- tensor parallelism -------------------------------------------------------


class SplitAttention(nn.Module):
    """GptAttention with the layers of queries, keys and values apart, as only
    each of them is cut by heads in equal pieces."""

    def __init__(self, whole):
        super().__init__()
        self.heads = whole.heads // RANKS
        width = whole.c_proj.weight.shape[0]
        for i, name in enumerate("qkv"):
            layer = nn.Linear(width, width).double()
            rows = slice(i * width, (i + 1) * width)
            with torch.no_grad():
                layer.weight.copy_(whole.c_attn.weight[rows])
                layer.bias.copy_(whole.c_attn.bias[rows])
            setattr(self, name, layer)
        self.c_proj = whole.c_proj

    def forward(self, x):
        parts = torch.cat([self.q(x), self.k(x), self.v(x)], dim=2)
        return self.c_proj(attend(parts, self.heads, causal=True))


def parallel_gpt():
    model = gpt()
    mesh = init_device_mesh("cpu", (RANKS,))
    for block in model.h:
        block.attn = SplitAttention(block.attn)
        parallelize_module(block, mesh, {
            "attn.q": ColwiseParallel(),
            "attn.k": ColwiseParallel(),
            "attn.v": ColwiseParallel(),
            "attn.c_proj": RowwiseParallel(),
            "mlp.c_fc": ColwiseParallel(),
            "mlp.c_proj": RowwiseParallel(),
        })
    parallelize_module(model, mesh, {
        "wte": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(output_layouts=Replicate()),
    })
    model.lm_head.weight = model.wte.weight
    return model


def whole_parameters(model):
    """Returns the parameters by the names of a GPT on one rank."""
    whole = {name: p.full_tensor() if isinstance(p, DTensor) else p
             for name, p in model.named_parameters()}
    for name in list(whole):
        if ".attn.q." in name:
            parts = [whole.pop(name.replace(".q.", f".{part}."))
                     for part in "qkv"]
            whole[name.replace(".q.", ".c_attn.")] = torch.cat(parts)
    return whole


def train_tensor(rank, rule):
    model = parallel_gpt()
    cut = sum(isinstance(p, DTensor) for p in model.parameters())
    assert cut == 1 + 12 * MODEL["layers"], cut
    kind, options = RULES[rule]
    optimizer = kind(model.parameters(), foreach=False, **options)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, *batch(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, whole_parameters(model)


# --- ZeRO -----------------------------------------------------------------------


def train_zero(rank, rule):
    model = DistributedDataParallel(gpt())
    kind, options = RULES[rule]
    optimizer = ZeroRedundancyOptimizer(model.parameters(), kind,
                                        foreach=False, **options)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = (t.chunk(RANKS)[rank] for t in batch(step))
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        mean = loss.detach() / RANKS
        dist.all_reduce(mean)
        losses.append(mean)
    return losses, dict(model.module.named_parameters())


CASES = {"tensor": train_tensor, "zero": train_zero}


def worker(rank, folder, rendezvous):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}",
                            rank=rank, world_size=RANKS)
    tensors = {}
    for case, train in CASES.items():
        for rule in RULES:
            losses, parameters = train(rank, rule)
            tensors[f"{case}/{rule}/losses"] = torch.stack(losses)
            for name, values in summary(parameters).items():
                tensors[f"{case}/{rule}/{name}"] = values.detach()
    if rank == 0:
        write_safetensors(
            f"{folder}/sharded_f64.safetensors", tensors,
            dict(steps=STEPS, samples=SAMPLES, model=MODEL,
                 optimizers={rule: options
                             for rule, (_, options) in RULES.items()}))
    dist.barrier()  # the other process stays until the file is whole
    dist.destroy_process_group()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        torch.multiprocessing.spawn(
            worker, (sys.argv[1], os.path.join(scratch, "rendezvous")),
            nprocs=RANKS)


if __name__ == "__main__":
    main()
