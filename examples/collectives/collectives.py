# The same as collectives.cc, with PyTorch:
#
#   torchrun --nproc-per-node=4 collectives.py
import torch
import torch.distributed as dist


# Ends the program unless all elements of the tensor have the value.
def expect(tensor, value, what):
    assert torch.all(tensor == value), f"{what} has other values"


def run(r, n):
    last = n - 1

    tensor = torch.full((2,), r + 1.0)
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM)
    expect(tensor, n * (n + 1) // 2, "all_reduce")

    tensor = torch.full((2,), float(r))
    dist.broadcast(tensor, src=last)
    expect(tensor, last, "broadcast")

    tensor = torch.full((2,), float(r))
    dist.reduce(tensor, dst=0, op=dist.ReduceOp.MAX)
    if r == 0:
        expect(tensor, last, "reduce")

    rows = [torch.empty(2) for _ in range(n)]
    dist.all_gather(rows, torch.full((2,), float(r)))
    expect(rows[last], last, "all_gather")

    rows = [torch.empty(2) for _ in range(n)] if r == 0 else None
    dist.gather(torch.full((2,), float(r)), rows, dst=0)
    if r == 0:
        expect(rows[1], 1, "gather")

    tensor = torch.zeros(2)
    rows = list(torch.full((n, 2), 7.0)) if r == 0 else None
    dist.scatter(tensor, rows, src=0)
    expect(tensor, 7, "scatter")

    tensor = torch.empty(2)
    dist.reduce_scatter_tensor(tensor, torch.full((2 * n,), float(r)))
    expect(tensor, n * last // 2, "reduce_scatter")

    rows = torch.empty(n, 1)
    dist.all_to_all_single(rows, torch.full((n, 1), float(r)))
    expect(rows[last], last, "all_to_all")

    # A group of some of the ranks, and a reduction that goes on meanwhile.
    others = torch.ones(1000)
    work = dist.all_reduce(others, async_op=True)
    group = dist.new_group([0, 1])
    if r < 2:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=group)
        expect(tensor, 2, "all_reduce in a group")
    work.wait()
    expect(others, n, "all_reduce beside it")

    dist.barrier()
    if r == 0:
        print(f"all collectives are right on {n} ranks")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
