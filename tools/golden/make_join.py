"""Writes tests/golden/join_f32.safetensors with PyTorch.

    python3 tools/golden/make_join.py tests/golden

The program is that of tests/troupe/join_test.cc: two ranks with 3 and 5 batches
under DistributedDataParallel.join(). Stored are the parameters at its end, which
are those of both ranks.
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
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
    if rank == 0:
        write_safetensors(f"{folder}/join_f32.safetensors", out,
                          {"batches": BATCHES})
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(train, (os.path.join(scratch, "store"), sys.argv[1]), nprocs=2)


if __name__ == "__main__":
    main()
