"""What this machine permits a trial: to mount a small disk, to change the user.

    machine.enter_namespace()            # at the start; mounts end with this
    here = machine.Machine(folder)
    here.disks, here.uid, here.words()   # what is permitted
    with here.disk("on/this/folder", size_bytes=8 << 20): ...
"""

import contextlib
import os
import subprocess
import sys

from chaos.program import done_as

# Environment variable; set if this process is in its own mount namespace.
MARK = "TROUPE_CHAOS_NAMESPACE"


def enter_namespace():
    """Restarts this program in its own mount namespace, as root or in a user
    namespace, if one of these is permitted."""
    if MARK in os.environ:
        return
    environment = dict(os.environ, **{MARK: "1"})
    for options in (["--mount"], ["--mount", "--user", "--map-root-user"]):
        try:
            works = subprocess.run(
                ["unshare", *options, "mount", "-t", "tmpfs", "chaos", "/mnt"],
                stdin=subprocess.DEVNULL, capture_output=True,
                check=False).returncode == 0
        except FileNotFoundError:
            return
        if works:
            os.execvpe("unshare", ["unshare", *options, sys.executable,
                                   *sys.argv], environment)


class Machine:
    """`folder` holds the trials; the user of the runs may enter it."""

    def __init__(self, folder):
        self.disks = MARK in os.environ
        # No other process has this user: limits count all threads of a user.
        nobody = 200_000 + os.getpid()
        self.uid = None
        if os.geteuid() == 0:
            os.chmod(folder, 0o711)
            # A sandbox or a folder of root's may deny access.
            if done_as(nobody, lambda: os.stat(os.path.join(folder, "."))):
                self.uid = nobody
        # A limit on processes does not apply to root.
        self.bound = self.uid is not None or os.geteuid() != 0

    def words(self):
        lines = ["full disks: " + (
            "a tmpfs of a few MiB" if self.disks else
            "none can be mounted (no root, no user namespaces); a limit on "
            "file sizes stands for them")]
        if self.uid is not None:
            lines.append("the trainer runs as user %d" % self.uid)
        if not self.bound:
            lines.append("no limits on threads: they do not bind root, who "
                         "cannot become another user here")
        return lines

    def threads(self):
        """Returns the number of threads that the user of the runs has."""
        if self.uid is not None:
            return 0
        count = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.stat("/proc/" + pid).st_uid == os.geteuid():
                    count += len(os.listdir("/proc/%s/task" % pid))
            except OSError:
                pass
        return count

    def make_folder(self, path):
        os.makedirs(path)
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)

    @contextlib.contextmanager
    def disk(self, path, size_bytes):
        """Context in which a small disk is mounted on the folder `path`."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size_bytes,
                        "chaos", path], check=True)
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", path], check=True)
