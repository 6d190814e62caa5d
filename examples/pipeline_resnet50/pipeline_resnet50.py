# The same as pipeline_resnet50.cc, with PyTorch:
#
#   torchrun --nproc-per-node=2 pipeline_resnet50.py
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.profiler import profile, schedule
from torchvision.models import resnet50

STEPS, CLASSES = 6, 1000


def half(rank):
    """Returns the layers of a rank."""
    torch.manual_seed(0)
    r = resnet50()
    if rank == 0:
        stem = nn.Sequential(r.conv1, r.bn1, r.relu, r.maxpool)
        return nn.Sequential(stem, r.layer1, r.layer2)
    return nn.Sequential(r.layer3, r.layer4, r.avgpool, nn.Flatten(), r.fc)


def train(rank, shape, micro_batches):
    """Trains on one batch, and returns the seconds of a step."""
    model = half(rank)
    stage = PipelineStage(model, rank, 2, torch.device("cpu"))
    pipeline = ScheduleGPipe(stage, micro_batches, loss_fn=F.cross_entropy)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    folder = f"pipeline_resnet50_{micro_batches}"
    os.makedirs(folder, exist_ok=True)
    profiler = profile(
        schedule=schedule(wait=2, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank{rank}.json"),
    )
    images = torch.randn(shape)
    labels = torch.randint(0, CLASSES, shape[:1])
    means = []
    with profiler:
        for step in range(STEPS):
            if step == 1:
                begin = time.time()
            sgd.zero_grad()
            if rank == 0:
                pipeline.step(images)
            else:
                losses = []
                pipeline.step(target=labels, losses=losses)
                means.append(sum(losses).item() / micro_batches)
            sgd.step()
            profiler.step()
    seconds = (time.time() - begin) / (STEPS - 1)
    if rank == 0:
        print(profiler.key_averages().table(row_limit=10))
    else:
        assert means[-1] < means[0], "it has not learnt"
    return seconds


def run(rank, image, batch):
    shape = (batch, 3, image, image)
    sequential = train(rank, shape, micro_batches=1)
    pipelined = train(rank, shape, micro_batches=4)
    if rank == 0:
        print(f"one after the other: {sequential:.3f} s a step")
        print(f"pipelined: {pipelined:.3f} s a step")


if __name__ == "__main__":
    image, batch = map(int, sys.argv[1:]) if len(sys.argv) == 3 else (64, 8)
    dist.init_process_group("gloo")
    run(dist.get_rank(), image, batch)
    dist.destroy_process_group()
