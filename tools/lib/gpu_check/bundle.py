"""The folder that tools/gpu_bundle makes; runs its programs as processes.

    with Bundle("/tmp/troupe-gpu-0.1.0") as bundle:
        outcome = bundle.run(["bin/trainer", "--version"], limit_s=10)
        outcome.code, outcome.out, outcome.err, outcome.timed_out

bundle.scratch is removed at the end. A process that exceeds its limit is killed
with all processes that it started.
"""

import collections
import os
import signal
import subprocess
import tempfile

Outcome = collections.namedtuple("Outcome", "code out err timed_out")

OUTPUT_BYTES_MAX = 4 << 20  # only the end of the output is kept


def text_of(file):
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - OUTPUT_BYTES_MAX))
    return file.read().decode(errors="replace")


def run(command, limit_s, cwd=None, env=None):
    """Runs a command; returns its outcome. A program that does not start has
    code 127."""
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
            # Also kills the processes that it has left.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        code = process.wait()
        return Outcome(code, text_of(out), text_of(err), timed_out)


class Bundle:

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        # Working folder of tests and benchmarks, which has their data.
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
        """Returns the paths of the GPU tests, by name."""
        try:
            names = sorted(os.listdir(self.path("tests")))
        except FileNotFoundError:
            return []
        return [os.path.join("tests", name) for name in names]

    def command(self, words, before=()):
        """Returns the words that run a program of the folder with NVIDIA's
        libraries; words[0] is its path in the folder. `before` runs it, for
        example a sanitizer."""
        return ([self.path("with_cuda")] + list(before) +
                [self.path(words[0])] + list(words[1:]))

    def run(self, words, limit_s, env=None, before=()):
        # Pieces share the choices that one of them measured: equal bits.
        whole = dict(os.environ, XDG_CACHE_HOME=self.scratch_path("cache"),
                     **(env or {}))
        os.makedirs(self.data, exist_ok=True)
        return run(self.command(words, before), limit_s, cwd=self.data,
                   env=whole)

    def run_plain(self, words, limit_s):
        """Runs a script of the folder without NVIDIA's libraries."""
        return run([self.path(words[0])] + list(words[1:]), limit_s)


def complaint(outcome, limit_s=None):
    """Returns why a program failed, in one line."""
    if outcome.timed_out:
        return "not done in %s" % (
            "its time" if limit_s is None else "%.0f s" % limit_s)
    lines = [line.strip() for line in (outcome.err + "\n" + outcome.out)
             .splitlines() if line.strip()]
    said = lines[0] if outcome.err.strip() else (lines or ["nothing"])[-1]
    how = ("signal %d" % -outcome.code if outcome.code < 0
           else "code %d" % outcome.code)
    return "%s: %s" % (how, said[:200])
