"""What this machine lets a trial do: mount a small disk, become nobody.

    machine.enter_namespace()            # at the start; mounts end with us
    here = machine.Machine(folder)
    here.disks, here.uid, here.words()   # what there is
    with here.disk("on/this/folder", size_bytes=8 << 20): ...
"""

import contextlib
import os
import subprocess
import sys

from chaos.program import done_as

# Set where we are in a mount namespace of our own.
MARK = "TROUPE_CHAOS_NAMESPACE"


def enter_namespace():
    """Runs this program anew in a mount namespace of its own, as root or in a
    user namespace, where one of them works."""
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
    """`folder` is where the trials are: whoever runs them may enter it."""

    def __init__(self, folder):
        self.disks = MARK in os.environ
        # A user that nothing else runs as: limits count all its threads.
        nobody = 200_000 + os.getpid()
        self.uid = None
        if os.geteuid() == 0:
            os.chmod(folder, 0o711)
            # Neither a sandbox nor a folder of root's keeps them out?
            if done_as(nobody, lambda: os.stat(os.path.join(folder, "."))):
                self.uid = nobody
        # Root is not bound by a limit on processes.
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
        """How many threads the user of the runs has already."""
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
        """A disk of its own at the folder `path`, for a while."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size_bytes,
                        "chaos", path], check=True)
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", path], check=True)
