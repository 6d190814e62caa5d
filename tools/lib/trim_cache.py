"""Keeps a disk cache of Bazel's below a size: Bazel 4 itself never removes anything.

  python3 tools/lib/trim_cache.py ~/.cache/troupe-bazel --gigabytes=30

When the folder holds more, the files that were used longest ago are removed until it
holds three quarters of it, and one line says so. A file was used when it was written
or read; with the usual mount option `relatime` reads are noted once a day. A build
that runs meanwhile makes again what it misses.
"""

import argparse
import os
import sys

GIGABYTE = 10**9

# So the next run does not have to remove files again.
KEPT_SHARE = 0.75


def entries(folder):
    """(last use, size, path) of all files; those that vanish meanwhile are left out."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            found.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    return found


def trim(folder, limit):
    """Returns (bytes before, bytes removed). `limit` is in bytes."""
    found = sorted(entries(folder))
    before = sum(size for _, size, _ in found)
    removed = 0
    if before <= limit:
        return before, removed
    for _, size, path in found:
        if before - removed <= KEPT_SHARE * limit:
            break
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        removed += size
    return before, removed


def main(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        epilog="Files leave by their last use, oldest first.",
    )
    parser.add_argument("folder")
    parser.add_argument("--gigabytes", type=float, required=True, metavar="N")
    options = parser.parse_args(arguments)
    if not options.gigabytes > 0:
        parser.error(
            f"--gigabytes={options.gigabytes:g}: expected a size above zero"
        )
    if not os.path.isdir(options.folder):
        return 0
    before, removed = trim(options.folder, options.gigabytes * GIGABYTE)
    if removed:
        print(
            f"        the build cache {options.folder} held {before / GIGABYTE:.1f} GB: "
            f"{removed / GIGABYTE:.1f} GB used longest ago are removed"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
