"""A run of the trainer as a child process, and its output.

    run = Program([trainer, "train", "--config=..."], folder, limits=limits)
    run.wait(0.3)                       # False: it is still running
    os.kill(run.pid, signal.SIGTERM)
    run.wait_line(r"^step 3/", deadline_s=60)    # None: it ended without
    code = run.end(deadline_s=60)       # its exit code; raises Hang
    run.out(), run.err()                # what it printed
"""

import os
import re
import resource
import select
import shutil
import subprocess
import threading
import time

# Limit on the time to read the stacks of a hanging process.
STACKS_S_MAX = 60


def become(uid):
    """Changes the user of this process for good."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def done_as(uid, what):
    """Returns whether a child could change to that user and run `what()`."""
    child = os.fork()
    if child == 0:
        try:
            become(uid)
            what()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class Hang(Exception):
    """A program did not end in time; the text has its stacks."""


class Reader:
    """Collects the output of a pipe, which limits on file sizes do not cut."""

    def __init__(self, pipe):
        self._bytes = bytearray()
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(pipe,),
                                        daemon=True)
        self._thread.start()

    def _read(self, pipe):
        with pipe:
            while some := os.read(pipe.fileno(), 65536):
                with self._changed:
                    self._bytes += some
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_match(self, pattern, seconds):
        """Waits for the first match of `pattern`; returns None if the pipe ends
        without one, and after `seconds`."""
        found = None

        def found_or_ended():
            nonlocal found
            found = re.search(pattern, self.text(), re.M)
            return found or self._ended
        with self._changed:
            self._changed.wait_for(found_or_ended, seconds)
        return found

    def finish(self):
        self._thread.join()

    def has_ended(self):
        return self._ended

    def text(self):
        return bytes(self._bytes).decode("utf-8", "replace")


class Program:
    """A child process. `limits` are resource limits {RLIMIT_...: value}; `uid`
    is its user, if root runs it."""

    def __init__(self, command, folder, limits=None, uid=None):
        self.command, self._uid = command, uid

        def prepare():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            become(uid)
            for limit, value in (limits or {}).items():
                resource.setrlimit(limit, (value, value))

        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=folder, preexec_fn=prepare,
            start_new_session=True)
        self._out = Reader(self._process.stdout)
        self._err = Reader(self._process.stderr)
        self.pid = self._process.pid
        self._ended = os.pidfd_open(self.pid)

    def wait(self, seconds):
        """Waits for the end for at most `seconds`; returns whether it came."""
        return bool(select.select([self._ended], [], [], seconds)[0])

    def wait_until(self, condition, deadline_s):
        """Returns whether `condition()` became true before the end. It polls
        without a pause, as the condition may hold for microseconds only."""
        deadline = time.monotonic() + deadline_s
        while not condition():
            if self.wait(0):
                return False
            if time.monotonic() > deadline:
                self._hang(deadline_s)
        return True

    def wait_line(self, pattern, deadline_s):
        """Waits for a match of `pattern` in the output; returns None if the
        program ends without one."""
        found = self._out.wait_match(pattern, deadline_s)
        if not found and not self.wait(0) and not self._out.has_ended():
            self._hang(deadline_s)
        return found

    def signal(self, number):
        if not self.wait(0):
            self._process.send_signal(number)

    def limit(self, which, value):
        """Lowers a limit of the program, if it still runs."""
        # Root needs a capability to limit another user, the user itself none.
        done_as(self._uid,
                lambda: resource.prlimit(self.pid, which, (value, value)))

    def end(self, deadline_s):
        """Waits for the end; returns the exit code, negative for a signal."""
        if not self.wait(deadline_s):
            self._hang(deadline_s)
        self._out.finish()
        self._err.finish()
        return self._process.wait()

    def out(self):
        return self._out.text()

    def err(self):
        return self._err.text()

    def close(self):
        """Kills the program if it still runs."""
        if not self.wait(0):
            self._process.kill()
        self._process.wait()
        os.close(self._ended)

    def _hang(self, deadline_s):
        stacks = stacks_of(self.pid)
        raise Hang("hangs for %d s: %s\n%s%s%s" % (
            deadline_s, " ".join(self.command), self.out(), self.err(),
            stacks))


def stacks_of(pid):
    """Returns the stacks of all threads, as far as this machine shows them."""
    if shutil.which("gdb"):
        try:
            done = subprocess.run(
                ["gdb", "-p", str(pid), "-batch", "-ex",
                 "thread apply all backtrace"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=STACKS_S_MAX, check=False)
            if "Thread " in done.stdout:
                return done.stdout
        except subprocess.TimeoutExpired:
            pass
    lines = []
    for task in sorted(os.listdir("/proc/%d/task" % pid), key=int):
        for name in ("comm", "wchan", "syscall", "stack"):
            try:
                with open("/proc/%d/task/%s/%s" % (pid, task, name),
                          encoding="utf-8") as file:
                    lines.append("%s %s: %s" % (
                        task, name, file.read().strip()))
            except OSError:
                pass
    return "\n".join(lines) + "\n"
