"""PyTorch's side of the benchmarks of training steps: ddp_step and nn.

Three ways to run it:

    torch_train.py --ranks=2                     answers questions
    torch_train.py --once=first_step --case=toy_mlp
    torch_train.py --ranks=2 --once=peak_memory --case=mlp_25m

A question is a line "CASE PRECISION MODE SECONDS". The answer is the steps per
second after a warm-up: the median of ten blocks, or of fewer if the time has
fewer steps; or "nan" if PyTorch does not run it, with the reason on standard
error. PRECISION is f32, or bf16 by autocast, with parameters in f32. Modes:

    eager           as written
    channels_last   the same with images, activations and weights in that layout
    compile         torch.compile of forward and loss; images are channels_last
    tensor          GPTs, on several ranks: tensor parallel by DTensor, not DDP
    zero1           the optimizer is a ZeroRedundancyOptimizer
    zero2, zero3    fully_shard in place of DDP, a unit for each child with
                    parameters, without and with reshard_after_forward

`first_step` answers at the end of the first step. `peak_memory` answers after
some steps with the peak resident memory in MiB, summed over the processes;
`memory_growth` likewise, minus the memory before the model was made.

Each rank is a process with one thread; one rank is a plain module without DDP,
several are DDP over Gloo. The models, batches and optimizers are those of
train_case.h. Some choices favour the peer: its batch is one fixed tensor, so
nothing is loaded, and its loss is never read; optimizers are fused; attention
is PyTorch's own.
"""

import argparse
import dataclasses
import os
import statistics
import sys
import tempfile
import time
import typing

import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden"))
import torch_models  # pylint: disable=wrong-import-position

BLOCKS = 10
ONCE_STEPS = 11
WIDE = 2236
GPT2_VOCAB = 50304
SHARDED = ("zero2", "zero3")  # modes that use fully_shard


def attend(qkv, heads, causal):
    n, t, d3 = qkv.shape
    q, k, v = qkv.view(n, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return y.transpose(1, 2).reshape(n, t, d3 // 3)


torch_models.attend = attend


class FromChannelsFirst(nn.Module):
    """Adapts a model of images (N, H, W, C) to PyTorch's (N, C, H, W)."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x.permute(0, 2, 3, 1))


class Recomputed(nn.Module):
    """A block with activation checkpointing."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.block, x,
                                                 use_reentrant=False)


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


def resnet(depth):
    return FromChannelsFirst(torch_models.ResNet(depth))


def vit_tiny():
    return FromChannelsFirst(torch_models.Vit(
        12, heads=3, width=192, image_size=64, patch=8, num_classes=1000))


def gpt(layers, recomputed=False):
    model = torch_models.Gpt2(layers, heads=4, width=256, context=128,
                              vocab_size=256)
    if recomputed:
        model.h = nn.Sequential(*[Recomputed(block) for block in model.h])
    return model


def wide_gpt(layers, width):
    return torch_models.Gpt2(layers, heads=width // 64, width=width,
                             context=256, vocab_size=256)


def split_layers(model, ranks):
    """Makes a Gpt2 this rank's part of a tensor parallel one.

    A rank's rows of c_attn are not those of its heads, so that the numbers are
    those of another network of the same size and speed.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module)
    parallelize_module(model, init_device_mesh("cpu", (ranks,)), {
        "wte": RowwiseParallel(input_layouts=Replicate()),
        "h.*.attn.c_attn": ColwiseParallel(),
        "h.*.attn.c_proj": RowwiseParallel(),
        "h.*.mlp.c_fc": ColwiseParallel(),
        "h.*.mlp.c_proj": RowwiseParallel(),
        "lm_head": ColwiseParallel(output_layouts=Replicate()),
    })
    model.lm_head.weight = model.wte.weight
    for block in model.h:
        block.attn.heads //= ranks


def parameter_groups(model, mode):
    """Returns the parameters; a fused optimizer takes DTensors apart."""
    if mode != "tensor":
        return model.parameters()
    from torch.distributed.tensor import DTensor
    parameters = list(model.parameters())
    split = [p for p in parameters if isinstance(p, DTensor)]
    whole = [p for p in parameters if not isinstance(p, DTensor)]
    return [{"params": group} for group in (split, whole)]


def gpt2():
    return torch_models.Gpt2(12, heads=12, width=768, context=1024,
                             vocab_size=GPT2_VOCAB)


@dataclasses.dataclass
class Case:
    make_model: typing.Callable
    sample: tuple  # shape of one sample
    outputs: int
    batch: int
    regression: bool = False
    tokens: bool = False  # each token has a target, and AdamW is used


def image_case(make_model, side=64, batch=8):
    return Case(make_model, (3, side, side), 1000, batch)


def gpt_case(make_model):
    return Case(make_model, (128,), 256, 8, tokens=True)


def wide_gpt_case(layers, width):
    return Case(lambda: wide_gpt(layers, width), (256,), 256, 4, tokens=True)


CASES = {
    "toy_mlp": Case(lambda: mlp([10, 10, 5]), (10,), 5, 20, regression=True),
    "toy_cnn": Case(lenet, (3, 32, 32), 10, 16),
    "mnist_mlp": Case(lambda: mlp([784, 512, 512, 10]), (784,), 10, 64),
    "mlp_25m": Case(lambda: mlp([WIDE] * 6, bias=False), (WIDE,), WIDE, 64),
    "resnet18": image_case(lambda: resnet(18)),
    "resnet50": image_case(lambda: resnet(50)),
    "vgg11": image_case(lambda: FromChannelsFirst(torch_models.Vgg(11))),
    "vit_tiny": image_case(vit_tiny),
    "gpt": gpt_case(lambda: gpt(4)),
    "gpt_w512": wide_gpt_case(4, 512),
    "gpt_w1024": wide_gpt_case(2, 1024),
    "gpt12": gpt_case(lambda: gpt(12)),
    "gpt12_recomputed": gpt_case(lambda: gpt(12, recomputed=True)),
    "resnet50_224": image_case(lambda: resnet(50), side=224, batch=256),
    "gpt2": Case(gpt2, (1024,), GPT2_VOCAB, 32, tokens=True),
}


def make_batch(case):
    """Returns inputs, targets and the loss function."""
    shape = (case.batch, *case.sample)
    if case.tokens:
        inputs = torch.randint(case.outputs, shape)
    else:
        inputs = torch.rand(shape) * 2 - 1
    if case.regression:
        return (inputs, torch.rand(case.batch, case.outputs) * 2 - 1,
                nn.MSELoss())
    targets = torch.randint(case.outputs,
                            shape if case.tokens else (case.batch,))
    return inputs, targets.flatten(), nn.CrossEntropyLoss()


def make_optimizer(case, parameters, captured=False, mode="eager"):
    """`captured`: a CUDA graph may record its steps."""
    # fully_shard's tensors have no fused SGD.
    fused = mode not in SHARDED or case.tokens
    kind, options = torch.optim.SGD, {"lr": 0.01, "fused": fused}
    if case.tokens:
        kind, options = torch.optim.AdamW, {"lr": 1e-3, "fused": fused,
                                            "capturable": captured}
    if mode == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(parameters, kind, **options)
    return kind(parameters, **options)


def shard(model, reshard):
    """Divides parameters, gradients and states among the ranks (FSDP2)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for child in model.children():
        if any(True for _ in child.parameters()):
            fully_shard(child, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, reshard_after_forward=reshard)


class Training:
    """The model, optimizer and batch of one case."""

    def __init__(self, case, precision, mode, ranks):
        case = CASES[case]
        torch.manual_seed(0)
        self.model = case.make_model()
        self.inputs, self.targets, self.loss = make_batch(case)
        self.bf16 = precision == "bf16"
        if len(case.sample) == 3 and mode != "eager":
            layout = {"memory_format": torch.channels_last}
            self.model = self.model.to(**layout)
            self.inputs = self.inputs.contiguous(**layout)
        if mode in SHARDED:
            shard(self.model, reshard=mode == "zero3")
        if mode == "tensor":
            split_layers(self.model, ranks)
        self.optimizer = make_optimizer(case, parameter_groups(self.model, mode),
                                        mode=mode)
        if ranks > 1 and mode not in SHARDED and mode != "tensor":
            # These are the faster settings of DDP.
            self.model = nn.parallel.DistributedDataParallel(
                self.model, gradient_as_bucket_view=True, static_graph=True)
        self.forward = self.loss_of
        if mode == "compile":
            self.forward = torch.compile(self.loss_of)

    def loss_of(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            return self.loss(self.model(self.inputs).flatten(0, -2),
                             self.targets)

    def steps(self, count):
        for _ in range(count):
            self.optimizer.zero_grad()
            self.forward().backward()
            self.optimizer.step()

    def time(self, count):
        begin = time.perf_counter()
        self.steps(count)
        return time.perf_counter() - begin


def agree(value, ranks):
    """Broadcasts rank 0's value to all ranks."""
    if ranks == 1:
        return value
    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


def rate(training, seconds, ranks):
    # A warm-up of a quarter of the time determines the steps of a block.
    warm_end = time.perf_counter() + seconds / 4
    count, took = 1, training.time(1)
    while agree(time.perf_counter() < warm_end, ranks):
        count = agree(max(1, int(seconds / BLOCKS / took * count)), ranks)
        took = training.time(count)
    step = agree(took / count, ranks)
    count = max(1, round(seconds / BLOCKS / step))
    blocks = max(1, min(BLOCKS, round(seconds / step)))
    return statistics.median(
        count / training.time(count) for _ in range(blocks))


class Trainings:
    """The trainings of the present case and precision, by mode."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.present = None
        self.by_mode = {}

    def get(self, case, precision, mode):
        """Returns None if PyTorch does not run the mode."""
        if (case, precision) != self.present:
            self.present = case, precision
            self.by_mode.clear()
            if "torch._dynamo" in sys.modules:
                torch.compiler.reset()
        if mode not in self.by_mode:
            self.by_mode[mode] = self.make(case, precision, mode)
        return self.by_mode[mode]

    def make(self, case, precision, mode):
        try:
            training = Training(case, precision, mode, self.ranks)
            training.steps(1)
            return training
        except Exception as why:  # pylint: disable=broad-except
            print("PyTorch, %s %s %s: %s" % (case, precision, mode,
                                             str(why).split("\n")[0]),
                  file=sys.stderr)
            return None


def serve(rank, ranks, answers):
    trainings = Trainings(ranks)
    while True:
        line = sys.stdin.readline().split() if rank == 0 else None
        line = agree(line, ranks)
        if not line:
            return
        training = trainings.get(*line[:3])
        answer = (rate(training, float(line[3]), ranks) if training
                  else float("nan"))
        if rank == 0:
            print(answer, file=answers, flush=True)


def memory_mib(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return float(line.split()[1]) / 1024
    return 0.0


def idle_memory_mib():
    """Returns the memory of the process, and resets its peak."""
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")
    return memory_mib("VmRSS")


def once(rank, options, answers):
    idle = idle_memory_mib() if options.once == "memory_growth" else 0
    training = Training(options.case, options.precision, "eager",
                        options.ranks)
    training.steps(1)
    if options.once == "first_step":
        print(1, file=answers, flush=True)
        return
    training.steps(ONCE_STEPS - 1)
    memory = torch.tensor(memory_mib("VmHWM") - idle)
    if options.ranks > 1:
        torch.distributed.all_reduce(memory)
    if rank == 0:
        print(memory.item(), file=answers, flush=True)


def run(rank, store, options, answers=None):
    torch.set_num_threads(1)
    ranks = options.ranks
    if ranks > 1:
        torch.distributed.init_process_group(
            "gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    if options.once:
        once(rank, options, answers)
    else:
        serve(rank, ranks, answers)
    if ranks > 1:
        # Skips the shutdown of Gloo, which sometimes ends in "terminate
        # called", once all ranks are done.
        torch.distributed.barrier()
        if rank > 0:
            os._exit(0)


def take_stdout():
    """Returns a file for answers on stdout; redirects what compilers print
    there to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument(
        "--once", choices=["first_step", "peak_memory", "memory_growth"])
    parser.add_argument("--case", choices=list(CASES))
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    options = parser.parse_args()
    answers = take_stdout()
    if options.ranks == 1:
        run(0, "", options, answers)
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        spawn = mp.get_context("spawn")
        children = [
            spawn.Process(target=run, args=(rank, store, options))
            for rank in range(1, options.ranks)
        ]
        for child in children:
            child.start()
        run(0, store, options, answers)
        for child in children:
            child.join()
    os._exit(0)


if __name__ == "__main__":
    main()
