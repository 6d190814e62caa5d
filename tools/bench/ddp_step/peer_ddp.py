"""The peer of the ddp_step benchmark: PyTorch, and its DDP over Gloo.

Three ways to run it:

    peer_ddp.py --ranks=2                      answers questions
    peer_ddp.py --ranks=1 --once=first_step --case=toy_mlp
    peer_ddp.py --ranks=2 --once=peak_memory --case=mlp_25m

A question is a line "CASE SECONDS"; the answer is the steps per second: the
median of ten blocks, after a warm-up. `first_step` answers at the end of the
first step, `peak_memory` after some steps with the largest resident memory in
MiB, added over the processes.

One process per rank, one thread each; one rank is a plain module without DDP.
The models, batches and optimizer are those of ddp_case.h. What favours the
peer: its batch is one fixed tensor, so nothing is loaded, and its loss is never
read.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import torch
from torch import nn

BLOCKS = 10
WIDE = 2236


def mlp(widths, bias=True):
    layers = []
    for i in range(1, len(widths)):
        if i > 1:
            layers.append(nn.ReLU())
        layers.append(nn.Linear(widths[i - 1], widths[i], bias=bias))
    return nn.Sequential(*layers)


def lenet():
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))


# Model, shape of a sample, outputs, batch.
CASES = {
    "toy_mlp": (lambda: mlp([10, 10, 5]), (10,), 5, 20),
    "toy_cnn": (lenet, (3, 32, 32), 10, 16),
    "mnist_mlp": (lambda: mlp([784, 512, 512, 10]), (784,), 10, 64),
    "mlp_25m": (lambda: mlp([WIDE] * 6, bias=False), (WIDE,), WIDE, 64),
}


class Training:
    """One case, ready to step."""

    def __init__(self, case, ranks):
        make_model, sample, outputs, batch = CASES[case]
        torch.manual_seed(0)
        self.model = make_model()
        if ranks > 1:
            # The faster settings of DDP.
            self.model = nn.parallel.DistributedDataParallel(
                self.model, gradient_as_bucket_view=True, static_graph=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.inputs = torch.rand(batch, *sample) * 2 - 1
        if case == "toy_mlp":
            self.targets = torch.rand(batch, outputs) * 2 - 1
            self.loss = nn.MSELoss()
        else:
            self.targets = torch.randint(outputs, (batch,))
            self.loss = nn.CrossEntropyLoss()

    def steps(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            self.loss(self.model(self.inputs), self.targets).backward()
            self.optimizer.step()

    def time(self, count):
        begin = time.perf_counter()
        self.steps(count)
        return time.perf_counter() - begin


def agree(value, ranks):
    """Rank 0's value, on every rank."""
    if ranks == 1:
        return value
    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


def rate(training, seconds, ranks):
    # How many steps a block has: found in a warm-up of a quarter of the time.
    warm_end = time.perf_counter() + seconds / 4
    count, took = 1, training.time(1)
    while agree(time.perf_counter() < warm_end, ranks):
        count = agree(max(1, int(seconds / BLOCKS / took * count)), ranks)
        took = training.time(count)
    count = agree(max(1, round(seconds / BLOCKS / took * count)), ranks)
    return statistics.median(
        count / training.time(count) for _ in range(BLOCKS))


def serve(rank, ranks):
    trainings = {}
    while True:
        line = sys.stdin.readline().split() if rank == 0 else None
        line = agree(line, ranks)
        if not line:
            return
        case, seconds = line[0], float(line[1])
        if case not in trainings:
            trainings[case] = Training(case, ranks)
        answer = rate(trainings[case], seconds, ranks)
        if rank == 0:
            print(answer, flush=True)


def peak_memory_mib():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) / 1024
    return 0.0


def once(rank, ranks, what, case):
    training = Training(case, ranks)
    training.steps(1)
    if what == "first_step":
        print(1, flush=True)
        return
    training.steps(10)
    memory = torch.tensor(peak_memory_mib())
    if ranks > 1:
        torch.distributed.all_reduce(memory)
    if rank == 0:
        print(memory.item(), flush=True)


def run(rank, ranks, store, options):
    torch.set_num_threads(1)
    if ranks > 1:
        torch.distributed.init_process_group(
            "gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    if options.once:
        once(rank, ranks, options.once, options.case)
    else:
        serve(rank, ranks)
    if ranks > 1:
        # Tearing Gloo down now and then ends in "terminate called": nothing is
        # left to do, so none does it, once all have come here.
        torch.distributed.barrier()
        if rank > 0:
            os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--once", choices=["first_step", "peak_memory"])
    parser.add_argument("--case", choices=list(CASES))
    options = parser.parse_args()
    if options.ranks == 1:
        run(0, 1, "", options)
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        spawn = mp.get_context("spawn")
        children = [
            spawn.Process(target=run,
                          args=(rank, options.ranks, store, options))
            for rank in range(1, options.ranks)
        ]
        for child in children:
            child.start()
        run(0, options.ranks, store, options)
        for child in children:
            child.join()
    os._exit(0)


if __name__ == "__main__":
    main()
