"""Reports a check: a table for people, a JSON file for programs.

    tell = Table(print).tell          # prints a line for each result
    write_json("gpu_check.json", facts, session, version)
"""

import collections
import datetime
import json
import os

from gpu_check.session import FAILED, OK, SKIPPED

WIDTHS = (12, 38, 8, 8)
WORDS_MAX = 110


class Table:

    def __init__(self, write):
        self._write, self._group = write, None

    def heading(self):
        self._row("group", "piece", "result", "seconds", "")

    def tell(self, result):
        group = result.group if result.group != self._group else ""
        self._group = result.group
        words = " ".join(result.words.split())
        self._row(group, result.name, result.state, "%.1f" % result.seconds,
                  words[:WORDS_MAX])

    def _row(self, *cells):
        *left, last = cells
        text = "".join(cell.ljust(width) + " "
                       for cell, width in zip(left, WIDTHS))
        self._write((text + last).rstrip())


def summary(session):
    counts = collections.Counter(result.state for result in session.results)
    return "%d ok, %d failed, %d skipped in %.0f s" % (
        counts[OK], counts[FAILED], counts[SKIPPED], session.spent_s())


def write_json(path, facts, session, version):
    """Writes the file atomically: a reader never finds half of it."""
    content = {
        "version": version,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="seconds"),
        "facts": facts,
        "summary": summary(session),
        "pieces": [result.to_json() for result in session.results],
    }
    with open(path + ".tmp", "w", encoding="utf-8") as text:
        json.dump(content, text, indent=1)
        text.write("\n")
    os.replace(path + ".tmp", path)
