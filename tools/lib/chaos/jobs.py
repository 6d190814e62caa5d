"""The small job of a trial, drawn by its seed, and the same in every run.

    job = jobs.draw(rng)
    job.options(checkpoint_dir)          # words for `trainer train`
    str(job)                             # "ranks 4, pp 2, width 64, ..."
"""

import dataclasses

# Layouts as (ranks, stages, samples of a micro-batch).
LAYOUTS = ((1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 1, 2), (2, 2, 4), (4, 2, 3))
GLOBAL_BATCH_SIZE = 24
# Number of elements of a sample.
INPUTS = {"synthetic": 10, "glyphs": 784}
# Number of steps that take about a second, by the width.
STEPS_BY_TIME = {16: 9000, 64: 4000, 256: 500}


@dataclasses.dataclass(frozen=True)
class Job:
    ranks: int
    stages: int
    micro_batch_size: int
    threads: int  # number of threads for a rank's kernels
    width: int
    data: str
    inline_bytes: str
    steps: int
    every: int  # steps between checkpoints; 0: only by time
    every_minutes: float
    keep: int

    def __str__(self):
        saving = ("every %d" % self.every if self.every
                  else "every %.0f ms" % (self.every_minutes * 60e3))
        return ("ranks %d, pp %d, threads %d, width %d, %s, %d steps, saved %s"
                ", keep %d" % (self.ranks, self.stages, self.threads,
                               self.width, self.data, self.steps, saving,
                               self.keep))

    def tensor_bytes(self):
        """Returns the bytes of the weights; the momentum has as many."""
        return 4 * (self.width * (INPUTS[self.data] + self.width + 10)
                    + 2 * self.width + 10)

    def checkpoint_bytes(self):
        """Returns a limit on the bytes of a checkpoint with all its files."""
        return 2 * self.tensor_bytes() + 40_000

    def options(self, checkpoint_dir):
        settings = {
            "model.kind": "mlp",
            "model.widths": "%d,%d" % (self.width, self.width),
            "data.kind": self.data,
            "data.train_count": 480,
            "data.test_count": 48,
            "train.steps": self.steps,
            "train.global_batch_size": GLOBAL_BATCH_SIZE,
            "train.micro_batch_size": self.micro_batch_size,
            "train.threads_per_rank": self.threads,
            "train.eval_every": self.steps,
            "optimizer.lr": 0.01,
            "optimizer.momentum": 0.9,
            "mesh.pp": self.stages,
            "comm.inline_bytes": self.inline_bytes,
            "comm.timeout_s": 60,
            "checkpoint.dir": checkpoint_dir,
            "checkpoint.every": self.every,
            "checkpoint.every_minutes": self.every_minutes,
            "checkpoint.keep": self.keep,
        }
        if self.stages == 2:
            settings["mesh.cuts"] = "2"
        words = ["train", "--resume", "--ranks=%d" % self.ranks]
        for key, value in settings.items():
            words += ["--set", "%s=%s" % (key, value)]
        return words


def draw(rng):
    ranks, stages, micro_batch_size = rng.choice(LAYOUTS)
    width = rng.choice(sorted(STEPS_BY_TIME))
    every = rng.choice((1, 1, 1, 2, 5, 0))
    return Job(
        ranks=ranks, stages=stages, micro_batch_size=micro_batch_size,
        threads=rng.choice((1, 1, 2)), width=width,
        data=rng.choice(sorted(INPUTS)),
        inline_bytes=rng.choice(("0", "auto", "1GiB")),
        steps=20 + rng.randrange(60) * max(every, 1) if every
        else STEPS_BY_TIME[width],
        every=every,
        every_minutes=0 if every else rng.choice((0.0005, 0.002, 0.005)),
        keep=rng.randint(1, 3))
