"""Keeps a disk cache of Bazel's below a size: Bazel 4 itself never removes anything.

  python3 tools/lib/trim_cache.py ~/.cache/troupe-bazel --gigabytes=30

When the folder holds more, the files that were used longest ago are removed until it
holds three quarters of it, and one line says so. A file was used when it was written
or read; with the usual mount option `relatime` reads are noted once a day. A build
that runs meanwhile makes again what it misses.

A precompiled header counts as used a week later than it was. A compiler does not make
the same bytes twice, so everything compiled with a lost one would be compiled again.
The entries that tell which action made a file (ac/) stay as long as that file (cas/).
"""

import argparse
import os
import re
import sys

GIGABYTE = 10**9

# So the next run does not have to remove files again.
KEPT_SHARE = 0.75

# How precompiled headers begin: GCC's and clang's.
PRECOMPILED = (b"gpch", b"CPCH")
PRECOMPILED_STAYS_SECONDS = 7 * 24 * 3600

# A file of the cache is named by its SHA-256.
HASH = re.compile(rb"[0-9a-f]{64}")


def is_precompiled(path):
    with open(path, "rb") as content:
        return content.read(4) in PRECOMPILED


def contents(folder):
    """(last use, size, path) of all files of `cas`, less those that vanish meanwhile."""
    found = []
    for parent, _, names in os.walk(os.path.join(folder, "cas")):
        for name in names:
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
                used = max(status.st_atime, status.st_mtime)
                if is_precompiled(path):
                    used += PRECOMPILED_STAYS_SECONDS
            except FileNotFoundError:
                continue
            found.append((used, status.st_size, path))
    return found


def remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def forget(folder, names):
    """Removes the actions whose outputs have one of these names, and left the cache."""
    for parent, _, actions in os.walk(os.path.join(folder, "ac")):
        for action in actions:
            path = os.path.join(parent, action)
            try:
                with open(path, "rb") as result:
                    outputs = HASH.findall(result.read())
            except FileNotFoundError:
                continue
            if not names.isdisjoint(outputs):
                remove(path)


def trim(folder, limit):
    """Returns (bytes before, bytes removed), in files of `cas`. `limit` is in bytes."""
    found = sorted(contents(folder))
    before = sum(size for _, size, _ in found)
    removed = 0
    if before <= limit:
        return before, removed
    names = set()
    for _, size, path in found:
        if before - removed <= KEPT_SHARE * limit:
            break
        remove(path)
        names.add(os.path.basename(path).encode())
        removed += size
    forget(folder, names)
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
