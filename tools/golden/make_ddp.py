"""Writes tests/golden/ddp.safetensors with PyTorch.

    python3 tools/golden/make_ddp.py tests/golden

Trains a small network with DistributedDataParallel over gloo in two processes,
once for each case and optimizer; tests/troupe/ddp_parity_test.cc trains the same
with DDP here. Stored are the losses of each rank, the parameters, which are the
same on both ranks, and the buffers of each.
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

from golden_values import formula, labels, write_safetensors

RANKS = 2
STEPS = 20
BATCH = 8  # samples of a micro-batch
RULES = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9,
                                      weight_decay=0.01, foreach=False),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01, weight_decay=0.01,
                                          foreach=False),
}

# `norm`: "batch" or "sync"; `used`: when a step uses the layer `extra`.
CASES = [
    dict(name="plain"),
    dict(name="unused_on_one_rank", used="rank 0", find_unused=True),
    dict(name="unused_in_turn", used="rank 0 and rank 1 in turn",
         find_unused=True),
    dict(name="unused_everywhere", used="even steps", find_unused=True),
    dict(name="no_sync", micro_batches=3),
    dict(name="buffers", norm="batch"),
    dict(name="sync_batch_norm", norm="sync"),
    dict(name="frozen", frozen="middle"),
    dict(name="static_graph", static_graph=True),
    dict(name="bf16_hook", bf16_hook=True),
]


class AllReduce(torch.autograd.Function):
    """The sum over the ranks: each rank's loss depends on every rank's x."""

    @staticmethod
    def forward(ctx, x):
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):
        return AllReduce.forward(ctx, grad)


class SyncBatchNorm(torch.nn.BatchNorm1d):
    """torch.nn.SyncBatchNorm by its definition, since PyTorch's refuses CPUs:
    batch norm with the statistics of all ranks' samples."""

    def forward(self, x):
        count = x.shape[0] * RANKS
        mean = AllReduce.apply(x.double().sum(0)) / count
        centred = x.double() - mean
        var = AllReduce.apply((centred * centred).sum(0)) / count
        with torch.no_grad():
            self.num_batches_tracked += 1
            unbiased = var * count / (count - 1)
            self.running_mean.lerp_(mean.float(), self.momentum)
            self.running_var.lerp_(unbiased.float(), self.momentum)
        y = (centred * torch.rsqrt(var + self.eps)).float()
        return y * self.weight + self.bias


class Net(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        if norm is not None:
            kind = SyncBatchNorm if norm == "sync" else torch.nn.BatchNorm1d
            self.norm = kind(8)
        self.middle = torch.nn.Linear(8, 8)
        self.extra = torch.nn.Linear(8, 8)
        self.last = torch.nn.Linear(8, 4)

    def forward(self, x, use_extra):
        # A norm right behind a linear would leave rounding errors alone as the
        # gradient of its bias, and Adam takes whole steps by those.
        x = torch.relu(self.first(x))
        if hasattr(self, "norm"):
            x = self.norm(x)
        x = self.middle(x)
        if use_extra:
            x = x + self.extra(torch.relu(x))
        return self.last(torch.relu(x))


def uses_extra(case, rank, step):
    return {"always": True, "rank 0": rank == 0, "even steps": step % 2 == 0,
            "rank 0 and rank 1 in turn": step % 2 == rank,
            }[case.get("used", "always")]


def train(case, rule, rank):
    """Returns the tensors to store: losses and buffers are this rank's."""
    model = Net(case.get("norm"))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(formula(f"ddp/{name}", list(p.shape), 0.5, torch.float32))
    if "frozen" in case:
        getattr(model, case["frozen"]).requires_grad_(False)
    ddp = DDP(model, find_unused_parameters=case.get("find_unused", False),
              static_graph=case.get("static_graph", False))
    if "bf16_hook" in case:
        ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = RULES[rule]([p for p in ddp.parameters() if p.requires_grad])
    micro_batches = case.get("micro_batches", 1)
    losses = []

    def backward(step, number):
        x = formula(f"ddp/x/{rank}/{number}", [BATCH, 6], 1.0, torch.float32)
        y = labels(f"ddp/y/{rank}/{number}", BATCH, 4, ignore_fifth=False)
        loss = F.cross_entropy(ddp(x, uses_extra(case, rank, step)), y)
        (loss / micro_batches).backward()
        losses.append(loss.item())

    for step in range(STEPS):
        optimizer.zero_grad()
        number = step * micro_batches
        with ddp.no_sync():
            for m in range(micro_batches - 1):
                backward(step, number + m)
        backward(step, number + micro_batches - 1)
        optimizer.step()

    out = {f"rank{rank}/losses": torch.tensor(losses, dtype=torch.float64)}
    for name, p in model.named_parameters():
        out[name] = p.detach()
    for name, b in model.named_buffers():
        out[f"rank{rank}/{name}"] = b.double()  # some are integers
    return out


def run(rank, folder, file):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store",
                            rank=rank, world_size=RANKS)
    tensors = {}
    for case in CASES:
        for rule in RULES:
            all_ranks = [None] * RANKS
            dist.all_gather_object(all_ranks, train(case, rule, rank))
            merged = {}
            for of_rank in all_ranks:
                for name, tensor in of_rank.items():
                    # Parameters: the same on all ranks.
                    assert torch.equal(merged.setdefault(name, tensor), tensor)
            for name, tensor in merged.items():
                tensors[f"{case['name']}/{rule}/{name}"] = tensor
    if rank == 0:
        write_safetensors(file, tensors, {"steps": STEPS, "batch": BATCH,
                                          "cases": CASES})
    dist.destroy_process_group()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    file = os.path.join(sys.argv[1], "ddp.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, args=(folder, file), nprocs=RANKS)


if __name__ == "__main__":
    main()
