"""The peer of the all_reduce benchmark: torch.distributed over Gloo.

Reads lines "BYTES COUNT BLOCKS". For each, runs BLOCKS blocks of COUNT
all_reduces of BYTES bytes of f32 in --ranks processes (over loopback, one
thread each), and answers with the microseconds of one all_reduce on rank 0:
the median of the blocks, after one to warm up.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def measure(size_bytes, count, blocks):
    values = torch.zeros(size_bytes // 4)
    us = []
    for _ in range(blocks + 1):
        begin = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(values)
        us.append((time.perf_counter() - begin) / count * 1e6)
    return statistics.median(us[1:])


def run(rank, ranks, store):
    # Rank 0 broadcasts each line to the others; 0 bytes ends them.
    dist.init_process_group(
        "gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    while True:
        question = torch.zeros(3, dtype=torch.int64)
        if rank == 0:
            line = sys.stdin.readline().split()
            if line:
                question = torch.tensor([int(word) for word in line])
        dist.broadcast(question, src=0)
        size_bytes, count, blocks = question.tolist()
        if size_bytes == 0:
            break
        us = measure(size_bytes, count, blocks)
        if rank == 0:
            print(us, flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    ranks = parser.parse_args().ranks
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        others = mp.get_context("spawn")
        children = [
            others.Process(target=run, args=(rank, ranks, store))
            for rank in range(1, ranks)
        ]
        for child in children:
            child.start()
        run(0, ranks, store)
        for child in children:
            child.join()


if __name__ == "__main__":
    main()
