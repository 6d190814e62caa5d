"""The peer of the gpu_step benchmark: times steps of PyTorch on a GPU.

    torch_step.py --device=cuda          (or cpu, to try the script)

A question is a line "CASE DTYPE MODE SECONDS". The answer is the steps per
second: the median of ten blocks, or of fewer if the time has fewer steps. It is
"nan" if PyTorch does not run the mode; the reason is on standard error. Modes:

    eager             as written
    compile           torch.compile of forward and loss
    graphs            the whole step captured in one CUDA graph
    autocast_compile  as compile, under bf16 autocast with parameters in f32
    autocast_graphs   as graphs, likewise

All modes use PyTorch's fast settings: fused optimizers, gradients set to None,
cudnn.benchmark, channels_last for images, its own attention. There is no TF32,
as in Troupe. The batch is one fixed tensor on the GPU, and the loss is never
read. The models are those of train_case.h, from torch_train.py.
"""

import argparse
import contextlib
import os
import statistics
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import torch_train  # pylint: disable=wrong-import-position

BLOCKS = 10
WARM_UP_STEPS = 11  # required by the manuals of torch.cuda.graph and DDP


class Training:
    """The model, optimizer and batch of one case in one mode."""

    def __init__(self, device, case, dtype, mode):
        if mode.endswith("graphs") and device == "cpu":
            raise ValueError("a CPU has no CUDA graphs")
        case = torch_train.CASES[case]
        autocast = mode.startswith("autocast")
        kind = torch.bfloat16 if dtype == "bf16" and not autocast else None
        torch.manual_seed(0)
        self._device = device
        self._model = case.make_model().to(device, kind)
        self._inputs, self._targets, self._loss = (
            part.to(device, kind if part.is_floating_point() else None)
            if torch.is_tensor(part) else part
            for part in torch_train.make_batch(case))
        if len(case.sample) == 3:
            layout = {"memory_format": torch.channels_last}
            self._model = self._model.to(**layout)
            self._inputs = self._inputs.contiguous(**layout)
        self._autocast = autocast
        self._optimizer = torch_train.make_optimizer(
            case, self._model.parameters(), captured=mode.endswith("graphs"))
        self._forward = self._loss_of
        if mode.endswith("compile"):
            self._forward = torch.compile(self._loss_of)
        self._run = self._step
        for _ in range(WARM_UP_STEPS if device == "cuda" else 1):
            self._step()
        if mode.endswith("graphs"):
            self._run = self._captured()

    def _loss_of(self):
        with torch.autocast(self._device, torch.bfloat16,
                            enabled=self._autocast, cache_enabled=False):
            return self._loss(self._model(self._inputs).flatten(0, -2),
                              self._targets)

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
    # A warm-up of a quarter of the time determines the steps of a block.
    warm_end = time.perf_counter() + seconds / 4
    count, took = 1, training.time(1)
    while time.perf_counter() < warm_end:
        count = max(1, int(seconds / BLOCKS / took * count))
        took = training.time(count)
    step = took / count
    count = max(1, round(seconds / BLOCKS / step))
    blocks = max(1, min(BLOCKS, round(seconds / step)))
    return statistics.median(
        count / training.time(count) for _ in range(blocks))


def answers(device, lines):
    trainings, present = {}, None
    for line in lines:
        case, dtype, mode, seconds = line.split()
        key = case, dtype, mode
        if present != (case, dtype):
            # Frees the memory of the last case for the next one.
            present = case, dtype
            trainings.clear()
            training = None
            if device == "cuda":
                torch.cuda.empty_cache()
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
