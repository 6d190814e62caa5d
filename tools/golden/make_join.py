"""Writes tests/golden/join_f32.safetensors with PyTorch.

    python3 tools/golden/make_join.py tests/golden

The programs are those of tests/troupe/join_parity_test.cc: two ranks with 3 and 5
batches under DistributedDataParallel.join(), and two models in turn under
Join([a, b]). Stored are the parameters at their end, which are those of both ranks.
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from golden_values import formula, write_safetensors

BATCHES = [3, 5]
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.125,
                                         foreach=False),
}


def make_model():
    model = torch.nn.Sequential()
    model.add_module("fc1", torch.nn.Linear(4, 6))
    model.add_module("tanh", torch.nn.Tanh())
    model.add_module("fc2", torch.nn.Linear(6, 3))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(formula(f"join/{name}", list(p.shape), 0.5, p.dtype))
    return model


def train_two(rank, rule, make_optimizer):
    """Returns the parameters of two models, the second of which learns from what
    the first one gives."""
    last = torch.nn.Sequential()
    last.add_module("last", torch.nn.Linear(3, 2))
    with torch.no_grad():
        for name, p in last.named_parameters():
            p.copy_(formula(f"join/{name}", list(p.shape), 0.5, p.dtype))
    a, b = DistributedDataParallel(make_model()), DistributedDataParallel(last)
    of_a, of_b = make_optimizer(a.parameters()), make_optimizer(b.parameters())
    with Join([a, b]):
        for i in range(BATCHES[rank]):
            x = formula(f"join/x{rank}.{i}", [4, 4], 1.0, torch.float32)
            y = formula(f"join/y{rank}.{i}", [4, 3], 1.0, torch.float32)
            z = formula(f"join/z{rank}.{i}", [4, 2], 1.0, torch.float32)
            of_a.zero_grad()
            given = a(x)
            torch.nn.functional.mse_loss(given, y).backward()
            of_a.step()
            of_b.zero_grad()
            torch.nn.functional.mse_loss(b(given.detach()), z).backward()
            of_b.step()
    return {
        f"{rule}/two/{name}": p.detach().clone()
        for ddp in (a, b)
        for name, p in ddp.module.named_parameters()
    }


def train(rank, store, folder):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=2)
    out = {}
    for rule, make_optimizer in OPTIMIZERS.items():
        for divide in ("initial", "joined"):
            ddp = DistributedDataParallel(make_model())
            optimizer = make_optimizer(ddp.parameters())
            with ddp.join(divide_by_initial_world_size=divide == "initial"):
                for i in range(BATCHES[rank]):
                    x = formula(f"join/x{rank}.{i}", [4, 4], 1.0, torch.float32)
                    y = formula(f"join/y{rank}.{i}", [4, 3], 1.0, torch.float32)
                    optimizer.zero_grad()
                    torch.nn.functional.mse_loss(ddp(x), y).backward()
                    optimizer.step()
            for name, p in ddp.module.named_parameters():
                out[f"{rule}/{divide}/{name}"] = p.detach().clone()
        out.update(train_two(rank, rule, make_optimizer))
    if rank == 0:
        write_safetensors(f"{folder}/join_f32.safetensors", out,
                          {"batches": BATCHES})
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(train, (os.path.join(scratch, "store"), sys.argv[1]), nprocs=2)


if __name__ == "__main__":
    main()
