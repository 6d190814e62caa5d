"""PyTorch's side of the benchmark of pipelines: torch.distributed.pipelining.

    torch_pipeline.py                            answers questions

A question is a line "CASE SCHEDULE MICRO_BATCHES SECONDS". The answer is the
milliseconds of a step: the median of blocks, after a warm-up; or "nan" if
PyTorch does not run it, with the reason on standard error. SCHEDULE is `gpipe`,
`1f1b`, or one of PyTorch's schedules with two chunks per rank: `interleaved`,
`zb_v`. Two processes with one thread and half of the layers each communicate
over Gloo.

The models and optimizers are those of train_case.h. Some choices favour the
peer: its batch is one fixed tensor, and its loss is never read; optimizers are
fused; attention is PyTorch's own.
"""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import torch_train  # pylint: disable=wrong-import-position

RANKS = 2


class Embedded(nn.Module):
    """The embeddings of a GPT."""

    def __init__(self, model):
        super().__init__()
        self.wte, self.wpe = model.wte, model.wpe

    def forward(self, x):
        return self.wte(x) + self.wpe(torch.arange(x.shape[1]))


def gpt_layers():
    model = torch_train.gpt(8)
    head = nn.Linear(256, 256, bias=False)
    return [Embedded(model), *model.h, nn.Sequential(model.ln_f, head)]


def mlp_layers():
    return list(torch_train.mlp([1024] * 9))


# Maker of layers, shape of a micro-batch, number of classes, and whether each
# token has a target.
CASES = {
    "gpt8": (gpt_layers, (8, 128), 256, True),
    "mlp8": (mlp_layers, (128, 1024), 1024, False),
}

SCHEDULES = {
    "gpipe": (pipelining.ScheduleGPipe, 1),
    "1f1b": (pipelining.Schedule1F1B, 1),
    "interleaved": (pipelining.ScheduleInterleaved1F1B, 2),
    "zb_v": (pipelining.ScheduleZBVZeroBubble, 2),
}


def stage_numbers(rank, schedule, chunks):
    if chunks == 1:
        return [rank]
    if schedule == "zb_v":
        return [rank, 2 * RANKS - 1 - rank]
    return [rank, rank + RANKS]


class Pipeline:
    """The stage, schedule, optimizer and batch of one case."""

    def __init__(self, rank, case, schedule, micro_batches):
        make_layers, shape, outputs, tokens = CASES[case]
        torch.manual_seed(0)
        layers = make_layers()
        kind, chunks = SCHEDULES[schedule]
        stages = RANKS * chunks
        cut = [round(i * len(layers) / stages) for i in range(stages + 1)]
        parts = {
            i: nn.Sequential(*layers[cut[i]:cut[i + 1]])
            for i in stage_numbers(rank, schedule, chunks)
        }
        whole = (shape[0] * micro_batches, *shape[1:])
        if tokens:
            self.inputs = torch.randint(outputs, whole)
            self.targets = torch.randint(outputs, whole)
        else:
            self.inputs = torch.rand(whole) * 2 - 1
            self.targets = torch.randint(outputs, whole[:1])
        loss = nn.CrossEntropyLoss()
        parameters = [p for part in parts.values() for p in part.parameters()]
        optimizer = torch.optim.AdamW if tokens else torch.optim.SGD
        self.optimizer = optimizer(parameters, lr=1e-3 if tokens else 0.01,
                                   fused=True)
        made = [
            pipelining.PipelineStage(part, i, stages, torch.device("cpu"))
            for i, part in parts.items()
        ]
        self.first = 0 in parts
        self.last = stages - 1 in parts
        self.schedule = kind(
            made[0] if chunks == 1 else made, n_microbatches=micro_batches,
            loss_fn=lambda y, t: loss(y.flatten(0, -2), t.flatten()))

    def step(self):
        self.optimizer.zero_grad()
        inputs = [self.inputs] if self.first else []
        if self.last:
            self.schedule.step(*inputs, target=self.targets, losses=[])
        else:
            self.schedule.step(*inputs)
        self.optimizer.step()

    def time(self, count):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        dist.barrier()
        return time.perf_counter() - begin


def agree(value):
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def measure(rank, case, schedule, micro_batches, seconds):
    pipeline = Pipeline(rank, case, schedule, micro_batches)
    pipeline.time(2)
    took = agree(pipeline.time(1))
    count = max(1, round(seconds / 5 / took))
    blocks = max(1, min(5, round(seconds / took)))
    times = sorted(pipeline.time(count) / count for _ in range(blocks))
    return 1e3 * times[len(times) // 2]


def serve(rank, answers):
    while True:
        line = agree(sys.stdin.readline().split() if rank == 0 else None)
        if not line:
            return
        try:
            answer = measure(rank, line[0], line[1], int(line[2]),
                             float(line[3]))
        except Exception as why:  # pylint: disable=broad-except
            print("PyTorch, %s: %s" % (" ".join(line), why), file=sys.stderr)
            answer = float("nan")
        if rank == 0:
            print(answer, file=answers, flush=True)


def run(rank, store, answers=None):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank,
                            world_size=RANKS)
    serve(rank, answers)
    dist.barrier()
    if rank > 0:
        os._exit(0)


def main():
    answers = torch_train.take_stdout()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        child = mp.get_context("spawn").Process(target=run, args=(1, store))
        child.start()
        run(0, store, answers)
        child.join()
    os._exit(0)


if __name__ == "__main__":
    main()
