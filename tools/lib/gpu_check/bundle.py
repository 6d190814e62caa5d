"""The folder that tools/gpu_bundle makes, and programs of it as processes.

    with Bundle("/tmp/troupe-gpu-0.1.0") as bundle:
        outcome = bundle.run(["bin/trainer", "--version"], limit_s=10)
        outcome.code, outcome.out, outcome.err, outcome.timed_out

What programs leave in bundle.scratch goes at the end. A process that outlives
its limit is killed with all that it has started.
"""

import collections
import os
import signal
import subprocess
import tempfile

Outcome = collections.namedtuple("Outcome", "code out err timed_out")

OUTPUT_BYTES_MAX = 4 << 20  # the end of it is kept


def text_of(file):
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - OUTPUT_BYTES_MAX))
    return file.read().decode(errors="replace")


def run(command, limit_s, cwd=None, env=None):
    """Its end, whatever that is; a program that does not start has code 127."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True)
        except OSError as why:
            return Outcome(127, "", "%s: %s" % (command[0], why), False)
        timed_out = False
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            # Also what it has left behind.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = process.wait()
        return Outcome(code, text_of(out), text_of(err), timed_out)


class Bundle:

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        # Where tests and benchmarks look for their data.
        self.data = self.path("data")
        self.scratch = tempfile.TemporaryDirectory(prefix="gpu_check.")

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.scratch.cleanup()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def scratch_path(self, *parts):
        return os.path.join(self.scratch.name, *parts)

    def version(self):
        try:
            with open(self.path("VERSION"), encoding="utf-8") as text:
                return text.read().strip()
        except OSError:
            return "unknown"

    def tests(self):
        """Paths of the GPU tests, by name."""
        try:
            names = sorted(os.listdir(self.path("tests")))
        except FileNotFoundError:
            return []
        return [os.path.join("tests", name) for name in names]

    def command(self, words, before=()):
        """A program of the folder, found by its path in it, with NVIDIA's
        libraries; `before` is put in front of it, a sanitizer, say."""
        return ([self.path("with_cuda")] + list(before) +
                [self.path(words[0])] + list(words[1:]))

    def run(self, words, limit_s, env=None, before=()):
        # What was measured once is the choice of later pieces, too: equal bits.
        whole = dict(os.environ, XDG_CACHE_HOME=self.scratch_path("cache"),
                     **(env or {}))
        os.makedirs(self.data, exist_ok=True)
        return run(self.command(words, before), limit_s, cwd=self.data,
                   env=whole)

    def run_plain(self, words, limit_s):
        """A script of the folder, as it is."""
        return run([self.path(words[0])] + list(words[1:]), limit_s)


def complaint(outcome, limit_s=None):
    """Why it failed, as one line."""
    if outcome.timed_out:
        return "not done in %s" % (
            "its time" if limit_s is None else "%.0f s" % limit_s)
    lines = [line.strip() for line in (outcome.err + "\n" + outcome.out)
             .splitlines() if line.strip()]
    said = lines[0] if outcome.err.strip() else (lines or ["nothing"])[-1]
    how = ("signal %d" % -outcome.code if outcome.code < 0
           else "code %d" % outcome.code)
    return "%s: %s" % (how, said[:200])
