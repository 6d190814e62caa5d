#!/usr/bin/env python3
"""Copies sources of the project, with bugs planted in them.

  plant.py FOLDER/bugs.txt actors/engine/reducer.cc planted_reducer.cc ...

The arguments after the first are pairs: a source, or several in one file
(third_party/merge), and the copy to write. Each bug of bugs.txt, in the folder of the
test, is a piece of text of one source and what stands there instead. The new text
asks Planted(Bug::kName) (FOLDER/bug.h) whether the bug is there now, so that one
build holds all of them. A piece that is not in its source exactly once is an error:
then the source has changed, and the bug has to be planted anew. So is a source of
bugs.txt that is in none of the pairs.
"""

import os
import re
import sys

# What third_party/merge/defs.bzl writes before each source of a part.
BEGINNING = re.compile(r'^#line 1 "(.*)"\n', re.MULTILINE)


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


def sources_of(path):
    """Yields (name, text) of each source in a file; the text has its #line."""
    with open(path) as file:
        text = file.read()
    begins = list(BEGINNING.finditer(text))
    if not begins:
        yield path, text
    ends = [found.start() for found in begins[1:]] + [len(text)]
    for found, end in zip(begins, ends):
        yield found.group(1), text[found.start():end]


def main():
    bugs_path, pairs = sys.argv[1], sys.argv[2:]
    with open(bugs_path) as file:
        bugs = list(read_bugs(file.readlines()))
    header = os.path.dirname(bugs_path) + "/bug.h"
    left = {source for source, _, _ in bugs}
    for path, copy in zip(pairs[::2], pairs[1::2]):
        planted = '#include "%s"\n' % header
        for name, text in sources_of(path):
            left.discard(name)
            for old, new in [bug[1:] for bug in bugs if bug[0] == name]:
                old, new = old.strip("\n"), new.strip("\n")
                if text.count(old) != 1:
                    sys.exit("%s: %d places read\n%s\nplant that bug anew in %s" %
                             (name, text.count(old), old, bugs_path))
                text = text.replace(old, new)
            planted += text
        with open(copy, "w") as file:
            file.write(planted)
    if left:
        sys.exit("%s: %s: no part of `planted` in the BUILD file has it; name the "
                 "part of its library that has" % (bugs_path, ", ".join(sorted(left))))


if __name__ == "__main__":
    main()
