"""The job of a trial over several processes, drawn by its seed.

    job = process_jobs.draw(rng, processes=3)
    job.options(checkpoint_dir)          # words for each `trainer train`
    str(job)
"""

import dataclasses

from chaos import jobs

# Layouts as (ranks, stages, samples of a micro-batch, cuts), by processes.
LAYOUTS = {
    2: ((2, 1, 0, ""), (2, 2, 4, "2"), (4, 2, 3, "2"), (3, 1, 0, "")),
    3: ((3, 1, 0, ""), (3, 3, 4, "1,2"), (4, 2, 3, "2")),
    4: ((4, 1, 0, ""), (4, 2, 3, "2")),
}
LIVENESS_S = 2
JOIN_S = 5


@dataclasses.dataclass(frozen=True)
class Job:
    one: jobs.Job  # the same job in one process
    processes: int
    cuts: str
    transport: str

    @property
    def steps(self):
        return self.one.steps

    @property
    def keep(self):
        return self.one.keep

    def __str__(self):
        return "%d processes by %s, %s" % (
            self.processes, self.transport, self.one)

    def tensor_bytes(self):
        return self.one.tensor_bytes()

    def checkpoint_bytes(self):
        return self.one.checkpoint_bytes()

    def options(self, checkpoint_dir):
        words = self.one.options(checkpoint_dir)
        settings = {"comm.transport": self.transport,
                    "comm.liveness_s": LIVENESS_S, "comm.join_s": JOIN_S,
                    "log.every": 1}
        if self.cuts:
            settings["mesh.cuts"] = self.cuts
        for key, value in settings.items():
            words += ["--set", "%s=%s" % (key, value)]
        return words


def draw(rng, processes):
    ranks, stages, micro_batch_size, cuts = rng.choice(LAYOUTS[processes])
    every = rng.choice((2, 5, 10))
    return Job(
        one=jobs.Job(
            ranks=ranks, stages=stages, micro_batch_size=micro_batch_size,
            threads=1, width=rng.choice((16, 64, 256)),
            data=rng.choice(sorted(jobs.INPUTS)),
            inline_bytes=rng.choice(("0", "auto")),
            steps=20 + rng.randrange(40) * every, every=every, every_minutes=0,
            keep=rng.randint(1, 3)),
        processes=processes, cuts=cuts,
        transport=rng.choice(("auto", "shm", "tcp")))
