"""Runs a job of several processes on this machine, and finds what it leaves.

    certs = make_certificates(trainer, root)
    job = Processes([trainer, "train", ...], root, certs, count=2)
    job.start(0); job.start(1)           # or job.start_all()
    job[0].wait_line(r"^step 3/", deadline_s=60)
    job[1].signal(signal.SIGKILL)
    codes = job.end(deadline_s=60)       # {number: exit code}
    job.close()
    left_behind(mark)                    # processes that still run
"""

import ctypes
import os
import re
import select
import socket

from chaos.program import Program

# An environment variable that all processes of a test inherit.
MARK = "TROUPE_CHAOS_MARK"


def make_certificates(trainer, root, name="certs", uid=None):
    """Makes an authority and a certificate by it; returns the certificate's
    folder."""
    run = Program([trainer, "certs", "--dir=" + name], root, uid=uid)
    if run.end(deadline_s=60) != 0:
        raise RuntimeError(run.err())
    run.close()
    return os.path.join(root, name, "node")


class Port:
    """Reserves a port: it is bound without listening, so that process 0 can use
    it and no other program gets it."""

    def __init__(self):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()


class Processes:
    """Processes 0 to `count` - 1 of one job, each of which may be started."""

    def __init__(self, command, folder, certs, count, limits=None, uid=None):
        self._command, self._folder, self._certs = command, folder, certs
        self.count, self._uid = count, uid
        self._limits = limits or {}  # {number: limits}
        self._port = Port()
        self.runs = {}
        self.all_runs = []  # also those that a later one in `runs` replaced

    def __getitem__(self, number):
        return self.runs[number]

    @property
    def port(self):
        return self._port.number

    def host(self, _number):
        """Returns the words that run a program on that process's host, and its
        address."""
        return [], "127.0.0.1"

    def start(self, number, *words, certs=None, count=None):
        """Starts a process; `words` and the other arguments replace or extend
        those of the job."""
        placed = ["--process=%d" % number,
                  "--processes=%d" % (count or self.count),
                  "--master=%s:%d" % (self.host(0)[1], self.port)]
        if certs != "":
            placed.append("--certs=" + (certs or self._certs))
        run = Program([*self.host(number)[0], *self._command, *placed, *words], self._folder,
                      self._limits.get(number), self._uid)
        self.runs[number] = run
        self.all_runs.append(run)
        return run

    def start_all(self):
        for number in range(self.count):
            self.start(number)
        return self

    def signal(self, number):
        for run in self.runs.values():
            run.signal(number)

    def end(self, deadline_s):
        return {number: run.end(deadline_s)
                for number, run in sorted(self.runs.items())}

    def said(self):
        return "".join("  $ %s\n%s%s" % (
            " ".join(run.command), run.out()[-200:], run.err())
                       for run in self.all_runs)

    def close(self):
        for run in self.all_runs:
            run.close()
        self._port.close()


def _text(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid):
    """Returns whether the process exists and is not a zombie."""
    state = re.search(rb"^State:\s+(\S)", _text("/proc/%d/status" % pid), re.M)
    return bool(state) and state.group(1) not in b"ZX"


def left_behind(mark):
    """Returns the processes that still run, of those that were started with
    TROUPE_CHAOS_MARK=mark in their environment."""
    word = ("%s=%s" % (MARK, mark)).encode()
    found = []
    for pid in _pids():
        if pid == os.getpid() or not is_alive(pid):
            continue
        if word in _text("/proc/%d/environ" % pid).split(b"\0"):
            found.append("process %d: %s" % (
                pid, _text("/proc/%d/cmdline" % pid).replace(b"\0", b" ")))
    return found


def children(pid):
    return [int(word) for word in
            _text("/proc/%d/task/%d/children" % (pid, pid)).split()]


def _sockets(pid):
    found = set()
    try:
        for name in os.listdir("/proc/%d/fd" % pid):
            try:
                target = os.readlink("/proc/%d/fd/%s" % (pid, name))
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[len("socket:["):-1])
    except OSError:
        pass
    return found


def listening_ports(pid):
    """Returns the TCP ports on which the process listens."""
    ours, ports = _sockets(pid), set()
    for table in ("tcp", "tcp6"):
        for line in _text("/proc/net/" + table).decode().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in ours:
                ports.add(int(words[1].rsplit(":", 1)[1], 16))
    return sorted(ports)


def is_connected_to(pid, port):
    """Returns whether the process has a connection to that port."""
    ours = _sockets(pid)
    for line in _text("/proc/net/tcp").decode().splitlines()[1:]:
        words = line.split()
        if (words[3] == "01" and words[9] in ours
                and int(words[2].rsplit(":", 1)[1], 16) == port):
            return True
    return False


def _borrowed(pid, descriptor):
    """Returns a duplicate of a descriptor of another process."""
    pidfd = os.pidfd_open(pid)
    try:
        # 438 is pidfd_getfd(2), which Python lacks.
        got = ctypes.CDLL(None, use_errno=True).syscall(
            438, pidfd, descriptor, 0)
        if got < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return got
    finally:
        os.close(pidfd)


def _connected_socket(pid, name):
    """Returns open file `name` of a process if it is a connection, or None."""
    try:
        descriptor = _borrowed(pid, int(name))
    except OSError:
        return None  # it was closed meanwhile
    try:
        one = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return None
    try:
        one.getpeername()
        return one
    except OSError:
        one.close()
        return None


def cut_connection(pid, rng):
    """Ends a connection of that process for both ends, as if a cable broke;
    returns whether there was one."""
    try:
        names = os.listdir("/proc/%d/fd" % pid)
    except OSError:
        return False
    found = [each for each in (_connected_socket(pid, name)
                               for name in sorted(names, key=int)) if each]
    if found:
        try:
            rng.choice(found).shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended by itself
    for each in found:
        each.close()
    return bool(found)


def wait_end(pidfd, seconds):
    """Waits until that process, which need not be a child, has ended; returns
    whether it has."""
    return bool(select.select([pidfd], [], [], seconds)[0])
