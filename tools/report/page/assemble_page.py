"""Assembles a page: prints page.html with its parts in it.

    assemble_page.py page.html page.css format.js ... >report.html

A line {{include NAME}} is replaced by the file of that name among the
arguments. A file that no line includes, and a line whose file is missing, are
errors.
"""

import os
import re
import sys

INCLUDE = re.compile(r"^\{\{include (\S+)\}\}$", re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    parts = {os.path.basename(path): read(path) for path in sys.argv[2:]}
    page = read(sys.argv[1])
    wanted = INCLUDE.findall(page)
    if sorted(wanted) != sorted(parts):
        raise SystemExit("the page includes %s, and there are %s"
                         % (sorted(wanted), sorted(parts)))
    page = INCLUDE.sub(lambda match: parts[match.group(1)].rstrip("\n"), page)
    sys.stdout.buffer.write(page.encode("utf-8"))


main()
