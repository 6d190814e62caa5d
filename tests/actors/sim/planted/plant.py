#!/usr/bin/env python3
"""Copies a source of the project, with bugs planted in it.

  plant.py actors/engine/reducer.cc FOLDER/bugs.txt < actors/engine/reducer.cc > planted.cc

Each bug of bugs.txt, in the folder of the test, is a piece of text of one source and what stands there
instead. The new text asks Planted(Bug::kName) (FOLDER/bug.h) whether the bug is
there now, so that one build holds all of them. A piece that is not in its
source exactly once is an error: then the source has changed, and the bug has to
be planted anew.
"""

import os
import sys


def read_bugs(lines):
    """Yields (source, old text, new text)."""
    source, parts, part = None, {}, None
    for line in lines + ["== end"]:
        if line.startswith("#"):
            continue
        if line.startswith("== "):
            if source is not None:
                yield source, parts["old"], parts["new"]
            source, parts, part = line[3:].strip(), {}, None
        elif line.rstrip() in ("old:", "new:"):
            part = line.rstrip()[:-1]
            parts[part] = ""
        elif part is not None:
            parts[part] += line


def main():
    source = sys.argv[1]
    text = sys.stdin.read()
    path = sys.argv[2]
    with open(path) as file:
        bugs = list(read_bugs(file.readlines()))
    for where, old, new in bugs:
        if where != source:
            continue
        old, new = old.strip("\n"), new.strip("\n")
        if text.count(old) != 1:
            sys.exit("%s: %d places read\n%s\nplant that bug anew in %s" %
                     (source, text.count(old), old, path))
        text = text.replace(old, new)
    header = os.path.dirname(path) + "/bug.h"
    sys.stdout.write('#include "%s"\n' % header + text)


if __name__ == "__main__":
    main()
