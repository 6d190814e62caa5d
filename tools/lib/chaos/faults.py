"""Faults that are injected into a run, and the outcomes that each permits.

Each fault is a function of a Strike. It starts a run, injects the fault at a
random moment and returns the runs that it started, which have ended or are
about to. `outcome()` returns how a run ended, or raises Wrong.
"""

import re
import resource
import signal

# Exit codes of the trainer (tools/trainer/terminal/exit_codes.h).
OK, FAILED, STOPPED, AT_ONCE = 0, 1, 3, 130

NO_SPACE = r"No space left on device; free space there"
TOO_LARGE = r"File too large; raise the limit on file sizes"
NO_THREADS = (r"Resource temporarily unavailable.*; "
              r"raise (its|the system's) limits")
NO_MEMORY = (r"has no memory for|bad_alloc|Cannot allocate memory|"
             r"std::length_error|" + NO_THREADS)
IN_USE = r"another run writes checkpoints into .*: it is held by"


class Wrong(Exception):
    """A run did not behave as it must."""


class Strike:
    """The arguments of a fault: the round's random number generator, its job
    and disk, and the durations of an undisturbed run, until its first step and
    from there."""

    def __init__(self, rng, start, job, machine, seconds, disk):
        self.rng, self.start, self.job, self.machine = rng, start, job, machine
        self.disk = disk
        self._start_s, self._train_s = seconds

    def wait(self, run):
        """Waits for a random moment of the run: sometimes before its first
        step, mostly within its remaining steps, and often while it saves."""
        seconds = self.rng.random() * self._start_s
        if self.rng.random() < 0.9:
            left = 1 - max(self.disk.steps(), default=0) / self.job.steps
            seconds = self._start_s + (
                self.rng.random() * 0.75 * self._train_s * left)
        run.wait(seconds)
        if self.rng.random() < 0.5:
            run.wait_until(self.disk.is_being_written, self.disk.deadline_s)
            run.wait(self.rng.random() ** 4 * 0.02)
        self.disk.note()


def outcome(run, code, right, errors=()):
    """Returns how `run` ended, in a few words. `right` lists the permitted exit
    codes, `errors` patterns of the permitted messages."""
    if code < 0 and code not in right:
        # Before its handlers are installed and after they are removed, signals
        # have their default action.
        if -code in right and not run.out():
            return "before the start"
        if -code in right and re.search(r"^to go on: ", run.out(), re.M):
            return "after the end"
        raise Wrong("ended by signal %d" % -code)
    if code not in right:
        raise Wrong("exit code %d" % code)
    said = run.err()
    if code == FAILED:
        line = re.fullmatch(r"trainer: (.*)\n", said)
        if not line:
            raise Wrong("exit code 1 without one line that says why")
        if not any(re.search(error, line.group(1)) for error in errors):
            raise Wrong("it fails with another error")
        return "failed, and said why"
    if said:
        raise Wrong("it complains, with exit code %d" % code)
    if code == OK and "test accuracy:" not in run.out():
        raise Wrong("complete, but not evaluated at its end")
    if code == STOPPED and "stopped" not in run.out():
        raise Wrong("exit code 3, and it does not say that it stopped")
    if "stopped before the first step" in run.out():
        return "before the start"
    return {OK: "complete", STOPPED: "stopped and saved",
            AT_ONCE: "ended at once", -signal.SIGKILL: "killed"}[code]


def _signal(*numbers):
    def fault(strike):
        run = strike.start()
        strike.wait(run)
        run.signal(numbers[0])
        for number in numbers[1:]:
            run.wait(strike.rng.random() * 0.5)
            run.signal(number)
        return [run]
    return fault


def _pause(strike):
    run = strike.start()
    strike.wait(run)
    run.signal(signal.SIGSTOP)
    run.wait(strike.rng.random() * 0.5)
    run.signal(signal.SIGCONT)
    return [run]


def _full_disk(strike):
    run = strike.start()
    strike.wait(run)
    # Often leaves no space, else less than a checkpoint needs.
    left = max(0, strike.rng.random() * 2 - 1)
    strike.disk.fill(int(left * 2 * strike.job.tensor_bytes()))
    return [run]


def _file_size(strike):
    run = strike.start()
    strike.wait(run)
    run.limit(resource.RLIMIT_FSIZE,
              int(strike.rng.random() * strike.job.tensor_bytes()))
    return [run]


def _threads(strike):
    threads = strike.machine.threads()
    # A job of R ranks has 3 R + 5 threads, and others before it begins.
    most = 4 * strike.job.ranks + 10
    limits = {resource.RLIMIT_NPROC: threads + strike.rng.randint(1, most)}
    strike.disk.note()
    return [strike.start(limits)]


def _memory_at_start(strike):
    # From the memory that the libraries need to that which any job needs.
    size = int((1 << 26) * 2 ** (strike.rng.random() * 5))
    strike.disk.note()
    return [strike.start({resource.RLIMIT_AS: size})]


def _memory_later(strike):
    run = strike.start()
    strike.wait(run)
    run.limit(resource.RLIMIT_AS, int(strike.rng.random() * (1 << 29)))
    return [run]


def _two_runs(strike):
    first = strike.start()
    if strike.rng.random() < 0.7:
        strike.wait(first)
    else:
        strike.disk.note()
    return [first, strike.start()]


# Name: (function, permitted exit codes, permitted errors). See outcome() for
# signal numbers among the codes.
FAULTS = {
    "kill -9": (_signal(signal.SIGKILL), (OK, -signal.SIGKILL), ()),
    "SIGTERM": (_signal(signal.SIGTERM), (OK, STOPPED, signal.SIGTERM), ()),
    "SIGHUP": (_signal(signal.SIGHUP), (OK, STOPPED, signal.SIGHUP), ()),
    "SIGINT": (_signal(signal.SIGINT), (OK, STOPPED, signal.SIGINT), ()),
    "SIGINT twice": (_signal(signal.SIGINT, signal.SIGINT),
                     (OK, STOPPED, AT_ONCE, signal.SIGINT), ()),
    "SIGSTOP, SIGCONT": (_pause, (OK,), ()),
    "full disk": (_full_disk, (OK, FAILED), (NO_SPACE,)),
    "file size limit": (_file_size, (OK, FAILED), (TOO_LARGE,)),
    "thread limit": (_threads, (OK, FAILED), (NO_THREADS,)),
    "memory limit": (_memory_at_start, (OK, FAILED), (NO_MEMORY,)),
    "memory limit later": (_memory_later, (OK, FAILED), (NO_MEMORY,)),
    "two runs": (_two_runs, (OK, FAILED), (IN_USE,)),
}
