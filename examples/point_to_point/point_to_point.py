# The same as point_to_point.cc, with PyTorch:
#
#   python3 point_to_point.py
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run_blocking(rank):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor, dst=1)
    else:
        dist.recv(tensor, src=0)
    print(f"[{rank}] has {tensor.item():g}")
    assert tensor.item() == 1, "the message was lost"


def run_nonblocking(rank):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        work = dist.isend(tensor, dst=1)
    else:
        work = dist.irecv(tensor, src=0)
    work.wait()
    print(f"[{rank}] has {tensor.item():g}")
    assert tensor.item() == 1, "the message was lost"


def start(rank, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    run_blocking(rank)
    run_nonblocking(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(start, args=(2,), nprocs=2)
