"""Prints the tables of troupe::Profiler and torch.profiler side by side.

    bazel build //tools/bench/profiler:resnet_profile
    python3 tools/bench/profiler/profiler_tables.py
    ... --depth=18 --image=64 --batch=8 --steps=4 --row-limit=20

Both profile the same training steps on one core, one after the other: a ResNet-50
with 4 images of 224 x 224, cross entropy, SGD with momentum. Needs PyTorch (a CPU is
enough). Rows are sorted by self time: that of an operator without those that it
calls; percentages are those of all steps. Exits 1 if a profile leaves out more than
a tenth of its steps' time.
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
GOLDEN = os.path.join(HERE, "..", "..", "golden")
WARMUP = 2
CLASSES = 1000
COVERED_MIN = 0.9
STEP = "ProfilerStep"
ROW = "%-30s %5s %8s %6s %8s"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(
        ROOT, "bazel-bin/tools/bench/profiler/resnet_profile"))
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--row-limit", type=int, default=10)
    return parser.parse_args()


def ours(args):
    """Returns the milliseconds of all steps, and (name, calls, self, total) rows."""
    command = [args.program, "--rows"]
    command += [f"--{name}={getattr(args, name)}"
                for name in ("depth", "image", "batch", "steps")]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    first, *lines = out.splitlines()
    rows = []
    for line in lines:
        name, calls, self_ms, total_ms = line.split("\t")
        rows.append((name, int(calls), float(self_ms), float(total_ms)))
    return float(first), rows


def torchs(args):
    """Returns the same of torch.profiler."""
    sys.path.insert(0, GOLDEN)
    # Imports of PyTorch take seconds, which wrong arguments need not wait for.
    # pylint: disable=import-outside-toplevel
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    import torch_models

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch_models.ResNet(args.depth)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    # The model takes images as (N, H, W, C) and turns them around: those in memory
    # are channels first, PyTorch's default.
    images = torch.randn(args.batch, 3, args.image, args.image).permute(0, 2, 3, 1)
    labels = torch.randint(0, CLASSES, (args.batch,))
    steps = schedule(wait=0, warmup=WARMUP, active=args.steps, repeat=1)
    ended = []
    with profile(activities=[ProfilerActivity.CPU], schedule=steps,
                 on_trace_ready=lambda p: ended.append(p.key_averages())) as profiler:
        for _ in range(WARMUP + args.steps):
            sgd.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            sgd.step()
            profiler.step()
    rows, whole = [], 0.0
    for event in ended[0]:
        row = (event.key, event.count, event.self_cpu_time_total / 1000,
               event.cpu_time_total / 1000)
        if event.key.startswith(STEP):
            whole += row[3]
        else:
            rows.append(row)
    return whole, sorted(rows, key=lambda row: -row[2])


def table(title, whole, rows, limit):
    """Returns the lines of a table, and the part of `whole` that is in its rows."""
    def line(name, calls, self_ms, total_ms):
        return ROW % (name[:30], calls, "%.1f" % self_ms,
                      "%.1f%%" % (100 * self_ms / whole), total_ms)
    inside = sum(row[2] for row in rows)
    lines = [f"{title}: {whole:.1f} ms",
             ROW % ("operator", "calls", "self ms", "self", "total ms")]
    lines += [line(*row[:3], "%.1f" % row[3]) for row in rows[:limit]]
    rest = rows[limit:]
    if rest:
        lines.append(line(f"{len(rest)} more", sum(row[1] for row in rest),
                          sum(row[2] for row in rest), ""))
    lines.append(line("outside operators", "", whole - inside, ""))
    return lines, inside / whole


def main():
    args = parse_arguments()
    if not os.path.exists(args.program):
        sys.exit(f"there is no {args.program}; build it by \"bazel build "
                 "//tools/bench/profiler:resnet_profile\", or give --program")
    left, own_part = table("troupe::Profiler", *ours(args), args.row_limit)
    right, peer_part = table("torch.profiler", *torchs(args), args.row_limit)
    images = "1 image" if args.batch == 1 else f"{args.batch} images"
    steps = "1 step" if args.steps == 1 else f"{args.steps} steps"
    print(f"ResNet-{args.depth}, {steps} with {images} of {args.image} x "
          f"{args.image}, one core\n")
    width = max(map(len, left)) + 3
    for i in range(max(len(left), len(right))):
        pair = [lines[i] if i < len(lines) else "" for lines in (left, right)]
        print((pair[0].ljust(width) + pair[1]).rstrip())
    for name, part in (("troupe::Profiler", own_part), ("torch.profiler", peer_part)):
        if not COVERED_MIN <= part <= 1.001:
            sys.exit(f"the operators of {name} have {100 * part:.1f} % of its steps; "
                     "profile longer steps, on a host without other load")


if __name__ == "__main__":
    main()
