"""A case trained by PyTorch, in one process.

    run = train(case, samples, start, torch.float64)
    run.parameters["0.weight"], run.losses[0], run.evaluations[-1]

The gradient of a step is that of the loss of the whole global batch: replicas,
micro-batches and stages change it only where batch norms take the statistics of
a part of the batch, or where dropout draws.

In bf16 and f16 the network has that dtype, and the optimizer, which updates
parameters of its own, f32, as torch.amp's examples do it.
"""

import dataclasses
import fnmatch

import torch

from parity import philox
from parity.losses import Loss
from parity.network import Network
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


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def in_dtype(x, dtype):
    return x.to(dtype) if x.is_floating_point() else x


# Factor of gradients of 16 bits, so that few of them underflow.
SCALE = 64


class Training:

    def __init__(self, case, samples, start, dtype):
        config = self._config = case["config"]
        self._case, self._samples, self._dtype = case, samples, dtype
        self._net = Network(config["model"]["layers"],
                            case["sample_shape"]).to(dtype)
        self._net.load_state_dict({name: in_dtype(value, dtype)
                                   for name, value in start.items()})
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
        self._loss = Loss(config["loss"], self._loss_dtype)
        self._averages = {name: p.detach().clone()
                          for name, p in self._trained}
        self._sync = config["model"].get("sync_batch_norm", False)
        self._step = 0
        self.run = Run(rates=learning_rates(keys, rate, case["steps"]))

    def phase(self, phase):
        """Trains until phase["until"] on the phase's mesh."""
        dp = phase["mesh"]["dp"]
        # The buffers of each replica.
        self._buffers = [self._buffers_now()] * dp
        while self._step < phase["until"]:
            self._train_step(dp, phase["train"]["micro_batch_size"])
            self._step += 1
            every = self._config["train"].get("eval_every",
                                              self._steps_per_epoch())
            if self._step % every == 0 or self._step == phase["until"]:
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

    def _steps_per_epoch(self):
        return (self._config["data"]["train_count"]
                // self._config["train"]["global_batch_size"])

    def _batch(self):
        """x and y of the samples of this step."""
        size = self._config["train"]["global_batch_size"]
        epoch, at = divmod(self._step, self._steps_per_epoch())
        order = philox.epoch_order(self._config["data"]["train_count"],
                                   self._config["train"]["seed"], epoch)
        return self._stack([self._samples.train(epoch, i)
                            for i in order[at * size:(at + 1) * size]])

    def _stack(self, pairs):
        x, y = (torch.stack(part) for part in zip(*pairs))
        return in_dtype(x, self._dtype), in_dtype(y, self._loss_dtype)

    def _forward(self, x, positions):
        self._net.set_dropout(self._config["train"]["seed"], self._step,
                              positions)
        return self._net(x[positions])

    def _output(self, x, dp, micro):
        """The outputs of a global batch, of which replica r has the r-th part,
        cut into micro-batches."""
        size = len(x)
        if not self._net.has_batch_norm():
            return self._forward(x, list(range(size)))
        share, rows = size // dp, [None] * size
        for begin in range(0, share, micro):
            parts = [[r * share + i for i in
                      range(begin, min(begin + micro, share))]
                     for r in range(dp)]
            if self._sync:
                parts = [sum(parts, [])]
            for r, positions in enumerate(parts):
                self._set_buffers(self._buffers[r])
                output = self._forward(x, positions)
                self._buffers[r] = self._buffers_now()
                for position, row in zip(positions, output):
                    rows[position] = row
            if self._sync:
                self._buffers = [self._buffers[0]] * dp
        return torch.stack(rows)

    def _backward(self, loss):
        """Sets the gradients of the parameters that are trained, also of those
        that no loss reaches."""
        self._net.zero_grad()
        scale = SCALE if self._short else 1
        (loss * scale).backward()
        own = dict(self._net.named_parameters())
        for name, p in self._trained:
            gradient = own[name].grad
            p.grad = (torch.zeros_like(p) if gradient is None
                      else gradient.to(p.dtype) / scale)

    @torch.no_grad()
    def _copy_parameters(self):
        """Rounds the optimizer's parameters to the network's."""
        if self._short:
            own = dict(self._net.named_parameters())
            for name, p in self._trained:
                own[name].copy_(p)

    def _train_step(self, dp, micro):
        keys, run = self._config["optimizer"], self.run
        x, y = self._batch()
        output = self._output(x, dp, micro).to(self._loss_dtype)
        loss = self._loss(output, y)
        self._backward(loss)
        trained = [p for _, p in self._trained]
        if keys.get("clip_grad_norm"):
            run.norms.append(torch.nn.utils.clip_grad_norm_(
                trained, keys["clip_grad_norm"]).item())
        if keys.get("clip_grad_value"):
            torch.nn.utils.clip_grad_value_(trained, keys["clip_grad_value"])
        run.losses.append(loss.item())
        run.accuracies.append(self._loss.accuracy(output, y))
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
            for i in range(self._config["data"]["test_count"])])
        output = self._net(x).to(self._loss_dtype)
        self._net.train()
        self.run.evaluations.append((
            self._step, self._loss(output, target).item(),
            self._loss.accuracy(output, target)))

    def _buffers_now(self):
        return {name: value.clone()
                for name, value in self._net.named_buffers()}

    def _set_buffers(self, values):
        """Sets new tensors: autograd keeps those that a forward has used."""
        for name, value in values.items():
            path, word = name.rsplit(".", 1)
            setattr(self._net.get_submodule(path), word, value.clone())


def train(case, samples, start, dtype):
    training = Training(case, samples, start, dtype)
    for phase in case["phases"]:
        training.phase(phase)
    return training.finish()
