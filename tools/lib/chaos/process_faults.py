"""Faults that are injected into one process of a job, and the outcomes that
each permits for it and for the others.

Each fault is a function of a Strike. It strikes `strike.victim` while the job
runs; verdict() returns how the job ended, or raises Wrong.
"""

import re
import resource
import signal
import socket

from chaos import processes
from chaos.faults import (AT_ONCE, FAILED, NO_MEMORY, NO_SPACE, OK, STOPPED,
                          TOO_LARGE, Wrong)
from chaos.process_jobs import LIVENESS_S

HOST = socket.gethostname()
# Errors when a process is lost before it has joined; process 0 is then named by
# its address.
NOT_THERE = (r"did not join within|cannot reach process 0|do not come to terms|"
             r"did not set up its ranks|given up before|"
             r"process 0 \(127\.0\.0\.1:\d+\) (is (lost|gone)|has given no)")


class Strike:
    """The arguments of a fault. `early`: it strikes before all processes have
    joined; `late`: at the end of the job."""

    def __init__(self, rng, job, spec, disk, deadline_s):
        self.rng, self.job, self.spec, self.disk = rng, job, spec, disk
        self.number = rng.randrange(spec.processes)
        moment = rng.random()
        self.early, self.late = moment < 0.15, moment > 0.85
        self._deadline_s = deadline_s

    @property
    def victim(self):
        return self.job[self.number]

    def wait(self):
        """Waits for a random moment: while the processes start, at some step,
        while a checkpoint is being written, or at the end."""
        if self.early:
            self.victim.wait(self.rng.random() * 0.1)
            self.disk.note()
            return
        done = max(self.disk.steps(), default=0)
        step = self.rng.randint(done + 1, max(done + 1, self.spec.steps))
        if self.late:
            # The job evaluates, or reports its end.
            self.job[0].wait_line(r"^after step |^done: ", self._deadline_s)
            self.victim.wait(self.rng.random() ** 4 * 0.1)
            self.disk.note()
            return
        # Without this line the job has completed or failed.
        self.job[0].wait_line(r"^step %d/|^done: " % step, self._deadline_s)
        if self.rng.random() < 0.5:
            self.job[0].wait_until(self.disk.is_being_written,
                                   self._deadline_s)
            self.victim.wait(self.rng.random() ** 4 * 0.02)
        self.disk.note()

    def name(self):
        return r"process %d \(%s, pid %d(, ranks? [^)]*)?\)" % (
            self.number, re.escape(HOST), self.victim.pid)


def _signal(*numbers):
    def fault(strike):
        strike.wait()
        for number in numbers:
            strike.victim.signal(number)
            strike.victim.wait(strike.rng.random() * 0.5)
    return fault


def _short_stop(strike):
    strike.wait()
    strike.victim.signal(signal.SIGSTOP)
    strike.victim.wait(strike.rng.random() * LIVENESS_S / 4)
    strike.victim.signal(signal.SIGCONT)


def _long_stop(strike):
    strike.wait()
    strike.victim.signal(signal.SIGSTOP)
    for number, run in strike.job.runs.items():
        if number != strike.number:
            run.end(10 * LIVENESS_S)
    strike.victim.signal(signal.SIGCONT)


def _cut_link(strike):
    if strike.number == 0:
        # The other end of a connection of process 0 would be unknown.
        strike.number = strike.rng.randrange(1, strike.spec.processes)
    strike.wait()
    processes.cut_connection(strike.victim.pid, strike.rng)


def _memory(strike):
    strike.wait()
    strike.victim.limit(resource.RLIMIT_AS,
                        int(strike.rng.random() * (1 << 29)))


def _full_disk(strike):
    strike.wait()
    strike.disk.fill(0)


def _file_size(strike):
    strike.wait()
    strike.victim.limit(resource.RLIMIT_FSIZE,
                        int(strike.rng.random() * 1000))


# Name: (function, permitted exit codes of the victim and of the others, pattern
# of the message of those that fail; %s is the victim's name).
FAULTS = {
    "kill -9": (_signal(signal.SIGKILL), (OK, -signal.SIGKILL), (OK, FAILED),
                r"%s is (lost|gone): "),
    "SIGINT": (_signal(signal.SIGINT), (OK, STOPPED), (OK, STOPPED), None),
    "SIGTERM": (_signal(signal.SIGTERM), (OK, STOPPED), (OK, STOPPED), None),
    "SIGINT twice": (_signal(signal.SIGINT, signal.SIGINT),
                     (OK, STOPPED, AT_ONCE), (OK, STOPPED, FAILED),
                     r"%s is (lost|gone): "),
    "short stop": (_short_stop, (OK,), (OK,), None),
    "long stop": (_long_stop, (OK, FAILED), (OK, FAILED),
                  r"%s has given no sign of life for |"
                  r"%s (is (lost|gone): |closed the connection)"),
    # The process at either end of the link names the other one.
    "cut link": (_cut_link, (OK, FAILED), (OK, FAILED),
                 r"process \d \(.*\) (is (lost|gone): |closed the connection)"),
    "memory limit": (_memory, (OK, FAILED), (OK, FAILED),
                     NO_MEMORY + r"|%s (is (lost|gone): |"
                     r"closed the connection)"),
    "full disk": (_full_disk, (OK, FAILED), (OK, FAILED), NO_SPACE),
    "file size limit": (_file_size, (OK, FAILED), (OK, FAILED),
                        TOO_LARGE + r"|shared memory: File too large; raise"),
}


def verdict(strike, name, codes):
    """Returns how the job ended, in a few words."""
    _, of_victim, of_others, said = FAULTS[name]
    pattern = said and said.replace("%s", strike.name())
    if strike.early:
        # The victim may have died before its handlers were installed, or have
        # given up.
        of_victim += (FAILED, STOPPED, -signal.SIGINT, -signal.SIGTERM)
        of_others += (FAILED, STOPPED)
        pattern = "|".join(filter(None, (
            pattern, NOT_THERE, strike.name() + " is (lost|gone): ")))
    # Libraries that lack memory while they start print their own messages.
    in_own_words = strike.early and name == "memory limit"
    if in_own_words:
        of_victim += (-signal.SIGABRT,)
    if re.search(r"^to go on", strike.job[0].out(), re.M):
        # The victim may be ending, with its handlers removed.
        of_victim += (-signal.SIGINT, -signal.SIGTERM)
    for number, code in codes.items():
        is_victim = number == strike.number
        if code not in (of_victim if is_victim else of_others):
            raise Wrong("process %d ends with %d" % (number, code))
        if code == FAILED and not (is_victim and in_own_words):
            _check_words(number, strike.job[number].err(), pattern, is_victim)
    others = {code for number, code in codes.items()
              if number != strike.number}
    if strike.number == 0 and codes[0] not in (OK, STOPPED):
        # The victim may die while it reports the end: processes that received
        # that have completed.
        others = {code for code in others if code != FAILED} or others
    if len(others) > 1:
        raise Wrong("the others do not agree: %s" % codes)
    return {OK: "complete", STOPPED: "stopped and saved",
            FAILED: "failed, and said why"}[others.pop()]


def _check_words(number, said, pattern, is_victim):
    line = re.fullmatch(r"trainer: (.*)\n", said)
    if not line:
        raise Wrong("process %d fails without one line that says why" % number)
    # A victim that was stopped learns that it was given up, or that the others
    # have ended.
    if not re.search(pattern, line.group(1)) and not (
            is_victim and re.search(r" (is|are) (lost|gone)|closed the conn",
                                    line.group(1))):
        raise Wrong("process %d fails with another error" % number)
