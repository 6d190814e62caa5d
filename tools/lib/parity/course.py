"""The decisions of a run: which steps it skips, its loss scales, which evaluation
is the best, which checkpoints it leaves, when it stops early.

    course = run.course
    course.skipped, course.scales, course.last_step
    broken = check(case, got, want)     # ["loss scales: ...]", ...]

One rounding may turn such a decision, so PyTorch takes over those of the run, and
they are compared with the rules, applied to the run's own numbers.
"""

import dataclasses
import math

F16_MAX = 65504.0
# Gradients this far above F16_MAX overflow, and none that are below F16_MAX /
# SLACK do: between them it depends on sums inside a step, which may be larger.
ROUNDING, SLACK = 1.05, 256
GROWTH, BACKOFF = 2, 0.5  # of torch.amp.GradScaler


@dataclasses.dataclass
class Course:
    skipped: set = dataclasses.field(default_factory=set)  # from 0
    scales: list = dataclasses.field(default_factory=list)  # of each step
    last_step: int = 0  # 0: as the phases say
    best_step: int = 0  # where the link "best" points; 0: there is none
    saved_steps: list = dataclasses.field(default_factory=list)


def is_dynamic(train):
    scale = train.get("loss_scale", "auto")
    return scale == "dynamic" or (scale == "auto"
                                  and train["precision"] == "f16")


def expected_scales(train, skipped, steps):
    """The loss scale of each step, by the rule of GradScaler."""
    scale, finite, scales = train.get("loss_scale_init", 65536), 0, []
    for step in range(steps):
        scales.append(scale)
        if step in skipped:
            scale, finite = scale * BACKOFF, 0
            continue
        finite += 1
        if finite == train.get("loss_scale_growth_interval", 2000):
            scale, finite = scale * GROWTH, 0
    return scales


def reduced_in(config):
    """The dtype that sums over replicas are rounded to; None: their own."""
    comm = config.get("comm", {})
    hook = comm.get("hook", "none")
    return comm.get("reduction_dtype") or (
        None if hook == "none" else hook.split("_")[-1])


def wrong_skips(case, course, want):
    """Sentences about steps that are skipped, or not, against PyTorch's largest
    gradient."""
    config = case["config"]
    train = config["train"]
    lines = []
    for step, peak in enumerate(want.peaks):
        dp = next(phase["mesh"]["dp"] for phase in case["phases"]
                  if step < phase["until"])
        # Gradients in f16, or sums of them over the replicas.
        f16 = train["precision"] == "f16" or (
            dp > 1 and reduced_in(config) == "f16")
        scale = course.scales[step] if course.scales else train.get(
            "loss_scale", 1)
        scaled = peak * scale if not isinstance(scale, str) else peak
        skipped = step in course.skipped
        if skipped and not (f16 and scaled > F16_MAX / SLACK) or (
                not skipped and f16 and course.scales
                and scaled > F16_MAX * ROUNDING):
            lines.append("step %d is %s, with a largest gradient of %.4g" % (
                step + 1, "skipped" if skipped else "not skipped", scaled))
    return lines


class Track:
    """The best evaluation, and those that have not improved since."""

    def __init__(self, metric, min_delta):
        self._column = 1 if metric == "eval_loss" else 2
        self._sign = 1 if metric == "eval_loss" else -1
        self._min_delta = min_delta
        self.best, self._reference = math.inf, math.inf
        self.best_step, self.waited, self.steps_saved = 0, 0, set()

    def add(self, evaluation):
        step, value = evaluation[0], evaluation[self._column]
        value = math.nan if value is None else self._sign * value
        if value < self.best:
            self.best, self.best_step = value, step
            self.steps_saved.add(step)
        if value < self._reference - self._min_delta:
            self._reference, self.waited = value, 0
        else:
            self.waited += 1


def check(case, got, want):
    """Sentences about decisions that do not follow."""
    config, course, lines = case["config"], got.course, []
    train, checkpoint = config["train"], config.get("checkpoint", {})

    def same(what, found, expected):
        if found != expected:
            lines.append("%s: %s, not %s" % (what, found, expected))

    if is_dynamic(train):
        same("loss scales", course.scales, expected_scales(
            train, course.skipped, len(got.losses)))
    lines += wrong_skips(case, course, want)
    track = Track(checkpoint.get("best_metric", "eval_loss"),
                  train.get("early_stop_min_delta", 0))
    patience = train.get("early_stop_patience", 0)
    last = case["steps"]
    for evaluation in got.evaluations:
        track.add(evaluation)
        if patience and track.waited >= patience:
            last = evaluation[0]
            break
    same("last step", len(got.losses), last)
    saved = {min(phase["until"], last) for phase in case["phases"]}
    every = checkpoint.get("every", 0)
    if every:
        saved |= set(range(every, last + 1, every))
    if checkpoint.get("keep_best"):
        saved |= track.steps_saved
        same("best step", course.best_step, track.best_step)
    same("steps of checkpoints", course.saved_steps, sorted(saved))
    return lines
