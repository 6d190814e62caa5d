"""Runs a case with the trainer, and reads what it leaves.

    run = run_trainer("bazel-bin/tools/trainer", case, samples, start, folder)
    run.parameters["0.weight"], run.losses[0]      # training.Run

The folder keeps the configuration of each phase, as phase-1.toml, the first
values, the log and the checkpoints.
"""

import json
import os
import subprocess

from safetensors.torch import load_file, save_file

from parity.training import Run

DEADLINE_S = 120  # limit on the time of a phase


class Refused(Exception):
    """The trainer takes the configuration for wrong."""


class Failed(Exception):
    """The trainer ends with an error, or not at all."""


def toml(value):
    """JSON's notation is TOML's, too, for what a configuration has."""
    return json.dumps(value)


def config_text(sections):
    return "\n".join("[%s]\n%s" % (name, "".join(
        "%s = %s\n" % (key, toml(value)) for key, value in keys.items()))
                     for name, keys in sections.items() if keys)


def phase_config(case, phase, samples, folder):
    config = case["config"]
    return {
        **config,
        "model": {**config["model"],
                  "init_from": os.path.join(folder, "start.safetensors")},
        "data": samples.config,
        "train": {**config["train"], **phase["train"],
                  "steps": phase["until"]},
        "mesh": phase["mesh"],
        "checkpoint": {"dir": os.path.join(folder, "saved"),
                       "every_minutes": 0.0},
        "log": {"every": 1, "file": os.path.join(folder, "log.jsonl"),
                "progress": "off"},
    }


def run_phase(trainer, path, resume):
    command = [trainer, "train", "--config=" + path]
    command += ["--resume"] if resume else []
    try:
        end = subprocess.run(command, capture_output=True, text=True,
                             timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed("the trainer does not end in %d s" %
                     DEADLINE_S) from error
    said = end.stderr.strip()[-400:]
    if end.returncode == 2:
        raise Refused(said)
    if end.returncode != 0:
        raise Failed("the trainer ends with %d: %s" % (end.returncode, said))


def run_trainer(trainer, case, samples, start, folder):
    save_file({name: value if case["config"]["train"]["precision"] == "f64"
               or not value.is_floating_point() else value.float()
               for name, value in start.items()
               if not name.endswith("num_batches_tracked")},
              os.path.join(folder, "start.safetensors"))
    for number, phase in enumerate(case["phases"], start=1):
        path = os.path.join(folder, "phase-%d.toml" % number)
        with open(path, "w", encoding="utf-8") as file:
            file.write(config_text(phase_config(case, phase, samples, folder)))
        run_phase(trainer, path, resume=number > 1)
    return read_run(case, folder)


def read_shards(folder, stem):
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith(stem) and name.endswith(".safetensors"):
            tensors.update(load_file(os.path.join(folder, name)))
    return tensors


def read_run(case, folder):
    checkpoint = os.path.join(folder, "saved", "step-%08d" % case["steps"])
    model = read_shards(checkpoint, "model")
    run = Run(states=read_shards(checkpoint, "optimizer"))
    for name, value in model.items():
        buffer = name.rsplit(".", 1)[-1] in (
            "running_mean", "running_var", "num_batches_tracked")
        (run.buffers if buffer else run.parameters)[name] = value
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    for line in lines:
        loss = float("nan") if line.get("loss") is None else line["loss"]
        if line["kind"] == "train":
            run.losses.append(loss)
            run.rates.append(line["lr"])
            run.accuracies.append(line.get("accuracy"))
            if "grad_norm" in line:
                run.norms.append(line["grad_norm"])
        elif line["kind"] == "evaluation":
            run.evaluations.append((line["step"], loss, line.get("accuracy")))
    return run
