"""Measures libtorch_ddp.cc beside PyTorch's DDP over Gloo, by turns.

    nice -n -20 python3 compare.py build/libtorch_ddp --rounds=9

Both train the same model on two ranks, each in a process with one thread, on
equal batches. Prints the median step of each round, the medians over rounds, and
the median of the rounds' quotients. The Python that runs it must have torch.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "libtorch_ddp.py")


def median_step_ms(command):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    output = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    return float(re.search(r"median step ([\d.]+) ms", output).group(1))


def compare(program, model, rounds, steps):
    options = [f"--model={model}", f"--steps={steps}"]
    commands = [
        [program] + options,
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         "--nproc-per-node=2", SCRIPT] + options,
    ]
    times = ([], [])
    for number in range(rounds):
        # The order alternates, so that neither side is always the first.
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            times[side].append(median_step_ms(commands[side]))
        print(f"{model}: {times[0][-1]:.1f} ms, PyTorch {times[1][-1]:.1f} ms",
              flush=True)
    ratio = statistics.median(theirs / ours for ours, theirs in zip(*times))
    ours, theirs = (statistics.median(side) for side in times)
    print(f"{model}, median of {rounds}: {ours:.1f} ms, PyTorch {theirs:.1f} ms, "
          f"{ratio:.2f} times")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", default="mlp,resnet18")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    for name in args.models.split(","):
        compare(args.program, name, args.rounds, args.steps)
