"""Finds the shared libraries that a program needs, and those to package.

    libraries = bundled_libraries(program)       # {name: path}
    names = needed_by(program)                   # its direct dependencies
    name = soname_of("/usr/lib/x86_64-linux-gnu/libz.so")     # "libz.so.1"
    version = newest_symbol_version(program, "GLIBC")    # (2, 34)

binutils reads the programs, and the compiler finds the libraries.
"""

import os
import re
import subprocess

# Shared libraries that every Debian 12 has (`debootstrap --variant=minbase`),
# as far as a program here needs them.
OF_DEBIAN = frozenset([
    "ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libgcc_s.so.1",
    "liblzma.so.5", "libm.so.6", "libpthread.so.0", "librt.so.1",
    "libstdc++.so.6", "libz.so.1", "libzstd.so.1",
])


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def needed_by(path):
    """Returns the names of the direct dependencies of a program or library."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", path))


def soname_of(path):
    """Returns the name by which programs need a shared library."""
    return re.findall(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "-d", path))[0]


def path_of(library):
    """Returns the path at which the compiler finds a shared library."""
    path = os.path.realpath(
        output_of("gcc", "-print-file-name=" + library).strip())
    if not os.path.isabs(path) or not os.path.exists(path):
        raise SystemExit("the compiler finds no " + library)
    return path


def bundled_libraries(program, but=()):
    """Returns {name: path} of the libraries that the program needs and Debian
    may lack, without those whose names begin with one of `but`."""
    found, left = {}, needed_by(program)
    while left:
        name = left.pop()
        if (name not in OF_DEBIAN and name not in found and
                not name.startswith(tuple(but))):
            found[name] = path_of(name)
            left += needed_by(found[name])
    return found


def newest_symbol_version(path, family):
    """Returns the newest version of `family` ("GLIBC", "GLIBCXX") that a file
    needs of the system, as numbers; () if it needs none."""
    wanted = re.findall(r"Name: %s_([0-9.]+)" % family,
                        output_of("readelf", "-V", path))
    return max((tuple(int(part) for part in version.split("."))
                for version in wanted), default=())
