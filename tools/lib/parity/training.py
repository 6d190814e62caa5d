"""A case trained by PyTorch, in one process.

    run = train(case, samples, start, torch.float64, course)
    run.parameters["0.weight"], run.losses[0], run.evaluations[-1]

The gradient of a step is that of the loss of the whole global batch: replicas,
micro-batches and stages change it only where batch norms take the statistics of
a part of the batch, or where dropout draws.

In bf16 and f16 the network has that dtype, and the optimizer, which updates
parameters of its own, f32, as torch.amp's examples do it. There, and where
replicas add up in another dtype (comm.reduction_dtype), gradients are rounded
where the trainer's are: in each micro-batch, and in each sum of two. Under comm.hook
each sum over the replicas is rounded once.

`course` is what the trainer decided by numbers at the edge of a range, which one
rounding may change: the steps that it skipped, its loss scales, and its last
step. course.py checks that the decisions follow the rules.
"""

import dataclasses
import fnmatch

import torch

from parity.batches import Batches
from parity.course import Course, reduced_in
from parity.losses import Loss
from parity.models import network_of
from parity.samples import is_classification
from parity.updates import base_rate, learning_rates, make_optimizer


@dataclasses.dataclass
class Run:
    """What a training leaves; tensors by the names that checkpoints have."""
    parameters: dict = dataclasses.field(default_factory=dict)
    buffers: dict = dataclasses.field(default_factory=dict)
    states: dict = dataclasses.field(default_factory=dict)
    losses: list = dataclasses.field(default_factory=list)
    accuracies: list = dataclasses.field(default_factory=list)
    rates: list = dataclasses.field(default_factory=list)
    norms: list = dataclasses.field(default_factory=list)
    evaluations: list = dataclasses.field(default_factory=list)
    # {step: parameters} behind it.
    saved: dict = dataclasses.field(default_factory=dict)
    # The largest element of a step's gradients, not divided by the number of
    # targets.
    peaks: list = dataclasses.field(default_factory=list)
    course: Course = dataclasses.field(default_factory=Course)


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def in_dtype(x, dtype):
    return x.to(dtype) if x.is_floating_point() else x


SHORT = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


class Training:

    def __init__(self, case, samples, start, dtype, course, rounds, noise):
        config = self._config = case["config"]
        self._samples, self._dtype = samples, dtype
        self._batches = Batches(case, samples.part)
        self._course, self._noise = course, noise
        self._net = network_of(case).to(dtype)
        self._load(start)
        for name, p in self._net.named_parameters():
            p.requires_grad_(
                not matches(name, config["model"].get("freeze", [])))
        self._named = list(self._net.named_parameters())
        self._short = dtype in (torch.bfloat16, torch.float16)
        if self._short:
            self._named = [(n, torch.nn.Parameter(p.float(), p.requires_grad))
                           for n, p in self._named]
        self._trained = [(n, p) for n, p in self._named if p.requires_grad]
        keys = config["optimizer"]
        rate = base_rate(keys, config["train"]["global_batch_size"])
        self._optimizer = make_optimizer(keys, self._named, rate)
        self._loss_dtype = torch.float32 if self._short else dtype
        self._loss = Loss(config["loss"], is_classification(config["data"]),
                          self._loss_dtype)
        self._averages = {name: p.detach().clone()
                          for name, p in self._trained}
        self._sync = config["model"].get("sync_batch_norm", False)
        self._reduced = SHORT.get(config["comm"].get("reduction_dtype")
                                  if rounds else None)
        # Of comm.hook, which rounds each sum once.
        self._gathered = (SHORT.get(reduced_in(config))
                          if rounds and self._reduced is None else None)
        self._step = 0
        self.run = Run(rates=learning_rates(keys, rate, case["steps"]))
        self._copy_parameters()

    @torch.no_grad()
    def _load(self, start):
        for named in (self._net.named_parameters(), self._net.named_buffers()):
            for name, value in named:
                value.copy_(start[name])

    def phase(self, phase):
        """Trains until phase["until"] on the phase's mesh."""
        dp = phase["mesh"]["dp"]
        # The buffers of each replica.
        self._buffers = [self._buffers_now()] * dp
        until = min(phase["until"], self._course.last_step or phase["until"])
        while self._step < until:
            self._train_step(dp, phase["train"]["micro_batch_size"])
            self._step += 1
            self.run.saved[self._step] = {name: p.detach().clone()
                                          for name, p in self._named}
            every = self._config["train"].get("eval_every",
                                              self._batches.per_epoch)
            if self._step % every == 0 or self._step == until:
                self._evaluate()
        self._set_buffers(self._buffers[0])

    def finish(self):
        run = self.run
        for name, p in self._named:
            run.parameters[name] = p.detach().clone()
            for word, value in self._optimizer.state.get(p, {}).items():
                if torch.is_tensor(value) and value.shape == p.shape and (
                        word != "step"):
                    run.states["%s.%s" % (name, word)] = value
        if self._config["optimizer"].get("ema_decay"):
            run.states.update({name + ".ema_value": value
                               for name, value in self._averages.items()})
        run.buffers = self._buffers_now()
        return run

    def _batch(self):
        """x and y of the samples of this step."""
        epoch, numbers = self._batches.of_step(self._step)
        return self._stack([self._samples.train(epoch, i) for i in numbers])

    def _stack(self, pairs):
        x, y = (torch.stack(part) for part in zip(*pairs))
        return in_dtype(x, self._dtype), in_dtype(y, self._loss_dtype)

    def _forward(self, x, positions):
        self._net.set_dropout(self._config["train"]["seed"], self._step,
                              positions)
        return self._net(x[positions])

    def _parts(self, size, dp, micro):
        """The forwards of a step: pairs of a replica and the positions of its
        samples in the global batch, of which replica r has the r-th part. Batch norms that are
        synchronised see those of all replicas at once."""
        if not (self._rounds() or self._net.has_batch_norm()):
            return [(0, list(range(size)))]
        parts = []
        for of_each in self._batches.parts(size, dp, micro):
            if self._sync and self._net.has_batch_norm():
                of_each = [sum(of_each, [])]
            parts += [(r, each) for r, each in enumerate(of_each) if each]
        return parts

    def _rounds(self):
        """Whether gradients are rounded in each micro-batch."""
        return self._short or self._reduced is not None

    def _scale(self):
        """The loss scale of this step, in which gradients may underflow."""
        scale = self._config["train"].get("loss_scale", 1)
        if self._course.scales:
            scale = self._course.scales[self._step]
        return scale if self._short and not isinstance(scale, str) else 1

    def _forward_backward(self, x, y, dp, micro):
        """Sets the gradients of the parameters that are trained, also of those
        that no loss reaches. Returns the outputs of the global batch."""
        rows, sums, losses = [None] * len(x), [{} for _ in range(dp)], []
        own = dict(self._net.named_parameters())
        self._net.zero_grad()
        for r, positions in self._parts(len(x), dp, micro):
            self._set_buffers(self._buffers[r])
            output = self._forward(x, positions).to(self._loss_dtype)
            if self._noise and output.requires_grad:
                output.register_hook(self._noise)
            self._buffers[r] = self._buffers_now()
            for position, row in zip(positions, output):
                rows[position] = row
            loss = self._loss.sum(output, y[positions]) * self._scale()
            if not self._rounds():
                losses.append(loss)
                continue
            loss.backward()
            for name, p in own.items():
                if p.grad is not None:
                    sums[r][name] = sums[r].get(name, 0) + p.grad
                    p.grad = None
        if self._sync and self._net.has_batch_norm():
            self._buffers = [self._buffers[0]] * dp
        output = torch.stack(rows)
        if losses:
            sum(losses).backward()
            sums = [{name: p.grad for name, p in own.items()
                     if p.grad is not None}]
        divisor = self._loss.divisor(output, y)
        peak = 0
        for name, p in self._trained:
            gradient = self._reduce([each[name] for each in sums
                                     if name in each], p)
            if self._gathered is not None and dp > 1:
                gradient = gradient.to(self._gathered).to(self._dtype)
            peak = max(peak, gradient.abs().max().item())
            # Without a target that counts, PyTorch's gradients are 0.
            p.grad = gradient.to(p.dtype) / (self._scale() * (divisor or 1))
        self.run.peaks.append(peak)
        return output.detach()

    def _reduce(self, gradients, parameter):
        """The sum of the gradients of the replicas."""
        total = None
        for gradient in gradients:
            if self._reduced is not None and len(gradients) > 1:
                gradient = gradient.to(self._reduced)
            total = gradient if total is None else total + gradient
        return torch.zeros_like(parameter) if total is None else (
            total.to(self._dtype))

    @torch.no_grad()
    def _copy_parameters(self):
        """Rounds the optimizer's parameters to the network's, with noise."""
        if self._short:
            own = dict(self._net.named_parameters())
            for name, p in self._trained:
                own[name].copy_(self._noise(p) if self._noise else p)

    def _train_step(self, dp, micro):
        run = self.run
        x, y = self._batch()
        output = self._forward_backward(x, y, dp, micro)
        run.losses.append(self._loss(output, y).item())
        run.accuracies.append(self._loss.accuracy(output, y))
        if self._step in self._course.skipped:
            run.norms.append(None)
        else:
            self._update()

    def _update(self):
        keys, run = self._config["optimizer"], self.run
        trained = [p for _, p in self._trained]
        if keys.get("clip_grad_norm"):
            run.norms.append(torch.nn.utils.clip_grad_norm_(
                trained, keys["clip_grad_norm"]).item())
        if keys.get("clip_grad_value"):
            torch.nn.utils.clip_grad_value_(trained, keys["clip_grad_value"])
        for group in self._optimizer.param_groups:
            group["lr"] = run.rates[self._step]
        self._optimizer.step()
        self._copy_parameters()
        for name, p in self._trained:
            self._averages[name].lerp_(p.detach(),
                                       1 - keys.get("ema_decay", 0.0))

    @torch.no_grad()
    def _evaluate(self):
        """Evaluates on the test samples, with the first replica's buffers."""
        self._net.eval()
        self._set_buffers(self._buffers[0])
        x, target = self._stack([
            self._samples.test(i)
            for i in range(self._samples.test_count)])
        output = self._net(x).to(self._loss_dtype)
        self._net.train()
        # An evaluation in which nothing counts has no loss, whatever is its
        # reduction: a sum of 0 would be the best one.
        loss = self._loss(output, target).item()
        if not self._loss.counts(output, target):
            loss = float("nan")
        self.run.evaluations.append((
            self._step, loss, self._loss.accuracy(output, target)))

    def _buffers_now(self):
        return {name: value.clone()
                for name, value in self._net.named_buffers()}

    def _set_buffers(self, values):
        """Sets new tensors: autograd keeps those that a forward has used."""
        for name, value in values.items():
            path, word = name.rsplit(".", 1)
            setattr(self._net.get_submodule(path), word, value.clone())


def train(case, samples, start, dtype, course, rounds=True, noise=None):
    """`rounds`: whether sums over replicas are rounded. `noise`: a function of a
    parameter of 16 bits that disturbs it."""
    training = Training(case, samples, start, dtype, course, rounds, noise)
    for phase in case["phases"]:
        training.phase(phase)
    return training.finish()
