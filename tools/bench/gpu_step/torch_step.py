"""The peer of the gpu_step benchmark: steps of PyTorch on a GPU.

    torch_step.py --device=cuda          (or cpu, to try the script)

A question is a line "CASE DTYPE MODE SECONDS"; the answer is the steps per
second, the median of ten blocks, or "nan" where PyTorch does not run it so; the
reason is on standard error. Modes:

    eager            as written
    compile          torch.compile of forward and loss
    graphs           the whole step captured in one CUDA graph
    autocast_graphs  the same under bf16 autocast, with parameters in f32

What makes PyTorch fast is on everywhere: fused SGD, gradients set to None,
cudnn.benchmark, channels_last for images. No TF32, as in Troupe. The batch is
one fixed tensor on the GPU, and the loss is never read. The models are those of
train_case.h.
"""

import argparse
import contextlib
import statistics
import sys
import time

import torch
from torch import nn

BLOCKS = 10
WARM_UP_STEPS = 11  # what torch.cuda.graph's manual asks for, and DDP's


def mlp(widths):
    layers = []
    for i in range(1, len(widths)):
        if i > 1:
            layers.append(nn.ReLU())
        layers.append(nn.Linear(widths[i - 1], widths[i]))
    return nn.Sequential(*layers)


def lenet():
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))


# Model, shape of a sample, outputs, batch, whether it is a regression.
CASES = {
    "toy_mlp": (lambda: mlp([10, 10, 5]), (10,), 5, 20, True),
    "toy_cnn": (lenet, (3, 32, 32), 10, 16, False),
    "mnist_mlp": (lambda: mlp([784, 512, 512, 10]), (784,), 10, 64, False),
}


class Training:
    """One case in one mode, ready to step."""

    def __init__(self, device, case, dtype, mode):
        if mode.endswith("graphs") and device == "cpu":
            raise ValueError("a CPU has no CUDA graphs")
        make_model, sample, outputs, batch, regression = CASES[case]
        autocast = mode.startswith("autocast")
        kind = torch.bfloat16 if dtype == "bf16" and not autocast else None
        torch.manual_seed(0)
        self._device = device
        self._model = make_model().to(device, kind)
        self._inputs = torch.randn(batch, *sample, device=device, dtype=kind)
        if len(sample) == 3:
            layout = {"memory_format": torch.channels_last}
            self._model = self._model.to(**layout)
            self._inputs = self._inputs.contiguous(**layout)
        if regression:
            self._targets = torch.randn(batch, outputs, device=device,
                                        dtype=kind)
            self._loss = nn.MSELoss()
        else:
            self._targets = torch.randint(outputs, (batch,), device=device)
            self._loss = nn.CrossEntropyLoss()
        self._autocast = autocast
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01,
                                          fused=True)
        self._forward = self._loss_of
        if mode == "compile":
            self._forward = torch.compile(self._loss_of)
        self._run = self._step
        for _ in range(WARM_UP_STEPS if device == "cuda" else 1):
            self._step()
        if mode.endswith("graphs"):
            self._run = self._captured()

    def _loss_of(self):
        if not self._autocast:
            return self._loss(self._model(self._inputs), self._targets)
        with torch.autocast(self._device, torch.bfloat16, cache_enabled=False):
            return self._loss(self._model(self._inputs), self._targets)

    def _step(self):
        self._optimizer.zero_grad(set_to_none=True)
        self._forward().backward()
        self._optimizer.step()

    def _captured(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self._optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self._step()
        return graph.replay

    def time(self, count):
        synchronize(self._device)
        begin = time.perf_counter()
        for _ in range(count):
            self._run()
        synchronize(self._device)
        return time.perf_counter() - begin


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def rate(training, seconds):
    # How many steps a block has: found in a warm-up of a quarter of the time.
    warm_end = time.perf_counter() + seconds / 4
    count, took = 1, training.time(1)
    while time.perf_counter() < warm_end:
        count = max(1, int(seconds / BLOCKS / took * count))
        took = training.time(count)
    count = max(1, round(seconds / BLOCKS / took * count))
    return statistics.median(
        count / training.time(count) for _ in range(BLOCKS))


def answers(device, lines):
    trainings = {}
    for line in lines:
        case, dtype, mode, seconds = line.split()
        key = case, dtype, mode
        try:
            if key not in trainings:
                # Compilers write to standard output, where answers go.
                with contextlib.redirect_stdout(sys.stderr):
                    trainings[key] = Training(device, *key)
            training = trainings[key]
            yield rate(training, float(seconds)) if training else "nan"
        except Exception as why:  # pylint: disable=broad-except
            trainings[key] = None
            print("PyTorch, %s: %s" % (" ".join(key), str(why).split("\n")[0]),
                  file=sys.stderr)
            yield "nan"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    for answer in answers(options.device, sys.stdin):
        print(answer, flush=True)


if __name__ == "__main__":
    main()
