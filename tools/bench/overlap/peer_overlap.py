"""The peer of the overlap benchmark: PyTorch, and its DDP over Gloo, one rank on
each host.

    peer_overlap.py --rank=0 --ranks=2 --master=10.0.0.1:29555

A question to rank 0 is a line "BATCH STEPS"; the answer is the milliseconds of
a step: the median of STEPS steps after two to warm up. The other ranks run the
same steps. The model is the MLP of 25 million parameters that the benchmark
trains; its batch is one fixed tensor.
"""

import argparse
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WIDE = 2236
LAYERS = 5


def make_model():
    layers = []
    for i in range(LAYERS):
        if i > 0:
            layers.append(nn.ReLU())
        layers.append(nn.Linear(WIDE, WIDE, bias=False))
    return nn.Sequential(*layers)


def measure(model, batch, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.rand(batch, WIDE) * 2 - 1
    targets = torch.randint(WIDE, (batch,))
    loss = nn.CrossEntropyLoss()
    ms = []
    for _ in range(steps + 2):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()
        ms.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(ms[2:])


def serve(rank, ranks):
    torch.manual_seed(0)
    model = make_model()
    if ranks > 1:
        # These are the faster settings of DDP.
        model = nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True, static_graph=True)
    while True:
        words = sys.stdin.readline().split() if rank == 0 else []
        question = torch.tensor([int(word) for word in words] or [0, 0])
        if ranks > 1:
            dist.broadcast(question, src=0)
        batch, steps = question.tolist()
        if batch == 0:
            return
        answer = measure(model, batch, steps)
        if rank == 0:
            print(answer, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--master", default="127.0.0.1:29555")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.ranks > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")
        dist.init_process_group(
            "gloo", init_method="tcp://" + options.master, rank=options.rank,
            world_size=options.ranks)
    serve(options.rank, options.ranks)
    # Skips the shutdown of Gloo, which sometimes ends in "terminate called".
    os._exit(0)


if __name__ == "__main__":
    main()
