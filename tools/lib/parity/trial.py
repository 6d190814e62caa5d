"""One case: drawn, trained by both sides, compared.

    outcome = try_case(trainer, seed=17, folder="/tmp/17")
    outcome.word            # "alike", "different", "failed" or "refused"
"""

import dataclasses
import json
import os

import torch

from parity.comparison import changed, compare
from parity.draw import draw_case, draw_start
from parity.network import Network
from parity.program import Failed, Refused, run_trainer
from parity.samples import Samples
from parity.training import train


DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
          "f16": torch.float16}


@dataclasses.dataclass
class Outcome:
    case: dict
    word: str
    lines: list = dataclasses.field(default_factory=list)

    def __str__(self):
        train = self.case["config"]["train"]
        mesh = ", then ".join(" ".join(
            "%s=%s" % pair for pair in phase["mesh"].items())
                              for phase in self.case["phases"])
        return "%s: %s on %s; %s; %s; %s" % (
            self.word, train["precision"], train["device"],
            self.case["config"]["optimizer"]["kind"], mesh,
            ", ".join(self.case["config"]["model"]["layers"]))


def try_case(trainer, seed, folder, precision=None, plant=()):
    """`plant`: (section, key, factor) of numbers that PyTorch's side alone gets,
    to see whether the difference is found."""
    case = draw_case(seed, precision)
    os.makedirs(folder)
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        json.dump(case, file, indent=1)
    start, samples = draw_start(case), Samples(case, folder)
    try:
        got = run_trainer(trainer, case, samples, start, folder)
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
    want = train(other, samples, start, torch.float64)
    dtype = DTYPES[config["train"]["precision"]]
    nearby = train(other, samples,
                   changed(start, seed) if dtype is torch.float64 else start,
                   dtype)
    void = Network(config["model"]["layers"],
                   case["sample_shape"]).void_biases()
    differences = compare(case, got, want, nearby, void)
    return Outcome(case, "different" if differences else "alike", differences)
