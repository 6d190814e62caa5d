"""Which shared libraries a program needs, and which of them to take along.

    libraries = bundled_libraries(program)       # {name: path}
    names = needed_by(program)                   # what it asks for itself
    version = newest_symbol_version(program, "GLIBC")    # (2, 34)

Everything is read with binutils, and libraries are found as the compiler finds
them.
"""

import os
import re
import subprocess

# Shared libraries of the packages that every Debian 12 has: those of
# `debootstrap --variant=minbase`, as far as anything here needs them.
OF_DEBIAN = frozenset([
    "ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libgcc_s.so.1",
    "libm.so.6", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libz.so.1",
])


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def needed_by(path):
    """Names of the shared libraries that a program or library asks for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", path))


def path_of(library):
    """Where the compiler finds a shared library."""
    path = os.path.realpath(
        output_of("gcc", "-print-file-name=" + library).strip())
    if not os.path.isabs(path) or not os.path.exists(path):
        raise SystemExit("the compiler finds no " + library)
    return path


def bundled_libraries(program, but=()):
    """{name: path} of what the program needs and Debian may lack; libraries
    whose names begin with one of `but` come from elsewhere."""
    found, left = {}, needed_by(program)
    while left:
        name = left.pop()
        if (name not in OF_DEBIAN and name not in found and
                not name.startswith(tuple(but))):
            found[name] = path_of(name)
            left += needed_by(found[name])
    return found


def newest_symbol_version(path, family):
    """The newest version of `family` ("GLIBC", "GLIBCXX") that a file wants of
    the system, as numbers; () where it wants none."""
    wanted = re.findall(r"Name: %s_([0-9.]+)" % family,
                        output_of("readelf", "-V", path))
    return max((tuple(int(part) for part in version.split("."))
                for version in wanted), default=())
