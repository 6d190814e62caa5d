# The same as hybrid_loop.cc, with PyTorch:
#
#   torchrun --nproc-per-node=4 hybrid_loop.py
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel as DDP

STEPS, BATCH = 20, 20


def run():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    dp, pp = mesh["dp"].get_group(), mesh["pp"].get_group()
    torch.manual_seed(0)
    first_part = nn.Sequential(nn.Linear(10, 10), nn.ReLU())
    is_first = dist.get_rank(pp) == 0
    part = first_part if is_first else nn.Linear(10, 5)
    ddp = DDP(part, process_group=dp)
    stage = PipelineStage(ddp, dist.get_rank(pp), 2, torch.device("cpu"), group=pp)
    pipeline = Schedule1F1B(stage, 4, loss_fn=nn.MSELoss())
    sgd = torch.optim.SGD(ddp.parameters(), lr=0.1)
    # Each replica has a batch of its own.
    torch.manual_seed(dist.get_rank())
    x = torch.randn(BATCH, 10)
    y = torch.randn(BATCH, 5)
    means = []
    for _ in range(STEPS):
        sgd.zero_grad()
        if is_first:
            pipeline.step(x)
        else:
            losses = []
            pipeline.step(target=y, losses=losses)
            mean = sum(losses).detach() / (2 * len(losses))
            dist.all_reduce(mean, group=dp)
            means.append(mean.item())
        sgd.step()
    weight = next(ddp.parameters()).detach()
    all_weights = [torch.empty_like(weight) for _ in range(2)]
    dist.all_gather(all_weights, weight, group=dp)
    assert torch.equal(*all_weights), "the replicas differ"
    if not is_first:
        assert means[-1] < means[0], "it has not learnt"
        if dist.get_rank(dp) == 0:
            print(f"loss {means[0]:.4f}, then {means[-1]:.4f}; the replicas are equal")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
