"""Compiles the headers of a library alone, and compares what they include with what
the library declares (headers.bzl).

    headers_alone.py DECLARED OWN... --check HEADER... -- COMPILER FLAG...

DECLARED lists the headers that the compiler may read. OWN are the library's, of
which HEADER... are compiled. The environment has DONE, the file to be written, and
TARGET.

One compile checks several headers. If c.h includes b.h, and b.h includes a.h, then
"a.h, b.h, c.h" compiles each as it would alone: before its own text stands nothing
but what it includes itself. Such a row is a chain, and the headers of a library
become as few chains as possible.
"""

import os
import re
import subprocess
import sys

_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|endif|include)\b")
_INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def included_by(text):
    """Returns what a header includes, whatever macros are defined."""
    found, depth = [], 0
    for line in text.splitlines():
        match = _DIRECTIVE.match(line)
        if not match:
            continue
        word = match.group(1)
        if word == "include":
            # One #ifndef is the include guard.
            name = _INCLUDE.match(line)
            if name and depth <= 1:
                found.append(name.group(1))
        else:
            depth += -1 if word == "endif" else 1
    return found


def closure(direct):
    """Returns {header: all that it includes, by way of others too}."""
    reached = {}

    def visit(header):
        if header not in reached:
            reached[header] = set()
            found = set()
            for other in direct[header]:
                found |= {other} | visit(other)
            reached[header] = found
        return reached[header]

    for header in direct:
        visit(header)
    return reached


def chains(headers, reached):
    """Returns the fewest lists in which each header includes the one before it.

    Each header but the last of a list has one that follows it: a list less for each
    pair, so this is a largest matching of headers with their followers.
    """
    before = {}  # header: the one before it
    after = {}

    def match(header, tried):
        for other in sorted(reached[header] & set(headers)):
            if other not in tried:
                tried.add(other)
                if other not in after or match(after[other], tried):
                    after[other] = header
                    before[header] = other
                    return True
        return False

    for header in headers:
        match(header, set())
    rows = []
    for last in headers:
        if last not in after:
            row = [last]
            while row[0] in before:
                row.insert(0, before[row[0]])
            rows.append(row)
    return rows


def read_files(dependencies):
    """Returns the files that a compiler's list names, but those of the toolchain,
    which have absolute paths."""
    words = dependencies.replace("\\\n", " ").split()
    return [word for word in words if word[0] != "/" and word[-1] != ":"]


def check(row, command, declared):
    """Compiles a chain, and returns whether it is as it should be."""
    done, target = os.environ["DONE"], os.environ["TARGET"]
    includes = [word for header in row for word in ("-include", header)]
    # An empty file that includes the headers: as the main file, a header would be
    # treated specially. -w: warnings are the ordinary build's business.
    if subprocess.run(command + ["-w", "-fsyntax-only", *includes, "-MMD", "-MF",
                                 done, "-x", "c++", "/dev/null"]).returncode:
        print("%s: alone, without what its sources include before it, one of %s "
              "does not compile; add what it lacks to the header that the error "
              "names" % (target, " ".join(row)), file=sys.stderr)
        return False
    with open(done, encoding="utf-8") as file:
        undeclared = sorted(set(read_files(file.read())) - declared)
    if undeclared:
        print("%s: %s includes what the deps do not declare: %s" %
              (target, " or ".join(row), " ".join(undeclared)), file=sys.stderr)
    return not undeclared


def main(arguments):
    begin = arguments.index("--")
    files, command = arguments[:begin], arguments[begin + 1:]
    declared_list, *files = files
    begin = files.index("--check")
    own, headers = files[:begin], files[begin + 1:]
    must_fail = "MUST_FAIL" in os.environ
    if must_fail:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    with open(declared_list, encoding="utf-8") as file:
        declared = set(file.read().splitlines()) | set(own)

    direct = {}
    for path in own:
        with open(path, encoding="utf-8") as file:
            direct[path] = [name for name in included_by(file.read()) if name in own]
    good = [check(row, command, declared)
            for row in chains(headers, closure(direct))]
    with open(os.environ["DONE"], "w", encoding="utf-8"):
        pass
    if must_fail and any(good):
        print("%s: a header compiles alone, but is tagged not_self_contained" %
              os.environ["TARGET"])
    if must_fail:
        return any(good)
    return not all(good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
