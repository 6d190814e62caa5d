"""Comments that begin as a fragment: a rule of check_style.py.

    for line, sentence in fragments(file): ...

    comments.py FILE...        # prints the findings of these files

A comment is a sentence whose subject is the thing below it: "Number of threads
that fill parameters", not "That fill parameters". A block of comment lines, a
paragraph of one, or a comment behind code must not begin with a relative clause
or with a preposition that a verb elsewhere would need. Words such as In or With
may begin a full sentence ("In production, this is null"): they pass if the first
sentence has a comma or a colon. A key before a colon ("By bucket: its memory") is
no sentence: By passes only if a comma stands before the colon.
"""

import re
import sys

import by_hand

NEVER = {"of", "that", "whose", "who", "whom", "whoever", "what", "told", "those",
         "behind", "but", "which", "nobody", "somebody"}
WITH_COMMA = {"as", "from", "in", "with", "where"}  # or with a colon
WITH_COMMA_BEFORE_COLON = {"by"}

# A literal first, so that // in one is no comment.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//(.*)')


def _comment(line):
    """Returns (column, whether code stands before it, its text), or None."""
    for found in _COMMENT.finditer(line):
        if found.group(1) is not None:
            column = found.start(1) - 2
            return column, bool(line[:column].strip()), found.group(1)
    return None


def _paragraphs(lines):
    """Yields (line number, text) of each paragraph of comments that is prose.

    Lines indented by three after // are code or a table, but for those that go on
    with a comment behind code, in the same column.
    """
    number, text, column = 0, "", 0
    for at, line in enumerate(list(lines) + [""], 1):
        found = _comment(line)
        new = text and (found is None or found[1] or found[0] != column or
                        not found[2].strip() or found[2].startswith("   "))
        if new:
            yield number, text
            text = ""
        if found and found[2].strip() and (
                found[1] or text or not found[2].startswith("   ")):
            number = number if text else at
            column, text = found[0], text + " " + found[2].strip()


def fragments(file):
    if not file.path.endswith((".h", ".cc", ".cu", ".cuh")):
        return
    for number, text in _paragraphs(file.lines):
        found = re.match(r"\s*([A-Za-z]+)\b", text)
        word = found.group(1).lower() if found else ""
        sentence = re.split(r"[.;] ", text, maxsplit=1)[0]
        if word in NEVER or (
                word in WITH_COMMA and not re.search(r"[,:]", sentence)) or (
                word in WITH_COMMA_BEFORE_COLON and
                "," not in sentence.split(":")[0]):
            yield number, (
                'a comment begins with "%s"; begin with its subject, or with a '
                "verb (Returns, Waits, ...)" % found.group(1))


if __name__ == "__main__":
    sys.exit(by_hand.main(fragments, sys.argv[1:]))
