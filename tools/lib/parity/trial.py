"""One case: drawn, trained by both sides, compared.

    outcome = try_case(trainer, seed=17, folder="/tmp/17")
    outcome.word            # "alike", "alike beside more runs",
                            # "different", "failed" or "refused"
"""

import dataclasses
import json
import os

import torch

from parity.comparison import MORE, Noise, compare
from parity.draw import draw_case, draw_start
from parity.models import network_of
from parity.program import DEADLINE_S, Failed, Refused, run_trainer
from parity.samples import Samples
from parity.training import train


DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
          "f16": torch.float16}


@dataclasses.dataclass
class Outcome:
    case: dict
    word: str
    lines: list = dataclasses.field(default_factory=list)

    def precision(self):
        return self.case["config"]["train"]["precision"] if self.case else ""

    def __str__(self):
        train = self.case["config"]["train"]
        mesh = ", then ".join(" ".join(
            "%s=%s" % pair for pair in phase["mesh"].items())
                              for phase in self.case["phases"])
        return "%s: %s on %s; %s; %s; %s" % (
            self.word, train["precision"], train["device"],
            self.case["config"]["optimizer"]["kind"], mesh,
            model_text(self.case["config"]["model"]))


def model_text(model):
    if "layers" in model:
        return ", ".join(model["layers"])
    return " ".join("%s=%s" % pair for pair in model.items())


def try_case(trainer, seed, folder, precision=None, plant=(),
             deadline_s=DEADLINE_S):
    """`plant`: (section, key, factor) of numbers that PyTorch's side alone gets,
    to see whether the difference is found. `deadline_s`: limit on the time of the
    trainer in a phase."""
    return run_case(trainer, draw_case(seed, precision), seed, folder, plant,
                    deadline_s)


def run_case(trainer, case, seed, folder, plant=(), deadline_s=DEADLINE_S):
    """`seed`: of the noise."""
    os.makedirs(folder)
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        json.dump(case, file, indent=1)
    start, samples = draw_start(case), Samples(case, folder)
    try:
        got = run_trainer(trainer, case, samples, start, folder, deadline_s)
    except Refused as error:
        return Outcome(case, "refused", [str(error)])
    except Failed as error:
        return Outcome(case, "failed", [str(error)])
    config = case["config"]
    for section, key, factor in plant:
        value = config[section].get(key)
        if value is not None:
            config = {**config, section: {
                **config[section], key: type(value)(value * factor)}}
    other = {**case, "config": config}
    network = network_of(case)

    def pytorch(dtype, rounds, noise=None):
        """The parameters of 16 bits get the noise in each step, on their way to
        the network; those of the others once, since they have it from then on.
        In each step, so do the gradients at the network's outputs: samples
        whose gradients cancel out leave their roundings."""
        first = start
        if noise and dtype in (torch.float64, torch.float32):
            first = {name: noise(value) for name, value in start.items()}
        return train(other, samples, first, dtype, got.course, rounds, noise)

    want = pytorch(torch.float64, rounds=False)
    precision = config["train"]["precision"]
    differences, nearby = [], []
    for i in range(1 + MORE):
        # Beside f64, f64 is only near with noise.
        noise = Noise(precision, seed + i) if i or precision == "f64" else None
        nearby.append(pytorch(DTYPES[precision], True, noise))
        differences = compare(other, got, want, nearby, network)
        if not differences:
            break
    word = ("different" if differences else "alike" if len(nearby) == 1
            else "alike beside more runs")
    return Outcome(case, word, differences)
