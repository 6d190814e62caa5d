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

DEADLINE_S = 120  # limit on the time of a phase, unless another is given


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
        "train": {**config["train"], **phase["train"], **(
            {"epochs": case["epochs"]} if "epochs" in case
            else {"steps": phase["until"]})},
        "mesh": phase["mesh"],
        "checkpoint": {**config.get("checkpoint", {}), "keep": 0,
                       "dir": os.path.join(folder, "saved"),
                       "every_minutes": 0.0},
        "log": {"every": 1, "file": os.path.join(folder, "log.jsonl"),
                "progress": "off"},
    }


def run_phase(trainer, path, resume, deadline_s):
    command = [trainer, "train", "--config=" + path]
    command += ["--resume"] if resume else []
    try:
        end = subprocess.run(command, capture_output=True, text=True,
                             timeout=deadline_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed("the trainer does not end in %g s; on a busy machine raise "
                     "--deadline" % deadline_s) from error
    said = end.stderr.strip()[-400:]
    if end.returncode == 2:
        raise Refused(said)
    if end.returncode != 0:
        raise Failed("the trainer ends with %d: %s" % (end.returncode, said))


def run_trainer(trainer, case, samples, start, folder,
                deadline_s=DEADLINE_S):
    save_file({name: value if case["config"]["train"]["precision"] == "f64"
               or not value.is_floating_point() else value.float()
               for name, value in start.items()
               if not name.endswith("num_batches_tracked")},
              os.path.join(folder, "start.safetensors"))
    for number, phase in enumerate(case["phases"], start=1):
        path = os.path.join(folder, "phase-%d.toml" % number)
        with open(path, "w", encoding="utf-8") as file:
            file.write(config_text(phase_config(case, phase, samples, folder)))
        run_phase(trainer, path, number > 1, deadline_s)
    return read_run(folder)


def read_shards(folder, stem):
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith(stem) and name.endswith(".safetensors"):
            tensors.update(load_file(os.path.join(folder, name)))
    return tensors


def step_folder(step):
    return "step-%08d" % step


def is_buffer(name):
    return name.rsplit(".", 1)[-1] in ("running_mean", "running_var",
                                       "num_batches_tracked")


def read_run(folder):
    run = Run()
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as log:
        for line in log:
            read_line(run, json.loads(line))
    saved = os.path.join(folder, "saved")
    course = run.course
    course.last_step = len(run.losses)
    course.saved_steps = sorted(int(name[len("step-"):])
                                for name in os.listdir(saved)
                                if name.startswith("step-"))
    best = os.path.join(saved, "best")
    if os.path.islink(best):
        course.best_step = int(os.readlink(best)[len("step-"):])
    last = os.path.join(saved, step_folder(course.last_step))
    run.states = read_shards(last, "optimizer")
    run.states.pop("loss_scaler", None)
    skipped = run.states.pop("skipped_steps", None)
    if skipped is not None:  # of a constant scale
        course.skipped = set(range(int(skipped.item())))
    run.buffers = {name: value
                   for name, value in read_shards(last, "model").items()
                   if is_buffer(name)}
    for step in course.saved_steps:
        model = read_shards(os.path.join(saved, step_folder(step)), "model")
        run.saved[step] = {name: value for name, value in model.items()
                           if not is_buffer(name)}
    run.parameters = run.saved.pop(course.last_step)
    return run


def read_line(run, line):
    loss = float("nan") if line.get("loss") is None else line["loss"]
    if line["kind"] == "train":
        run.losses.append(loss)
        run.rates.append(line["lr"])
        run.accuracies.append(line.get("accuracy"))
        if "grad_norm" in line:
            run.norms.append(line["grad_norm"])
        if "loss_scale" in line:
            course = run.course
            if line["skipped_steps"] > len(course.skipped):
                course.skipped.add(line["step"] - 1)
            course.scales.append(line["loss_scale"])
    elif line["kind"] == "evaluation":
        run.evaluations.append((line["step"], loss, line.get("accuracy")))
