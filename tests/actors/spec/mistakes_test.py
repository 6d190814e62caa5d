"""Checks what g++ says about each function of mistakes.cc.

    mistakes_test.py mistakes.cc errors.txt

The comment over a function has a sentence that its error must contain, after "Says:".
"""

import re
import sys

LINES_MAX = 20

# Beginnings of lines that lead to an error: the next error has them.
LEADS = re.compile(r"^(In file included from|\s+from) |: In (instantiation of |member |lambda |function)|required from ")
PLACE = re.compile(r"mistakes\.cc:(\d+):\d+:")


def plain(text):
    """Returns the text with ASCII quotes and single spaces."""
    return " ".join(text.replace("‘", "'").replace("’", "'").split())


def functions_of(source):
    """Returns {name: (first line, last line, sentence)}."""
    functions, sentence, name, first = {}, "", None, 0
    for number, line in enumerate(source.splitlines(), start=1):
        if line.startswith("// Says: "):
            sentence = line[len("// Says: ") :]
        elif sentence and line.startswith("// "):
            sentence += " " + line[len("// ") :]
        elif sentence and name is None:
            name, first = re.search(r"void (\w+)\(", line).group(1), number
        if name and line.endswith("}") and not line.startswith(" "):
            functions[name] = (first, number, plain(sentence))
            sentence, name = "", None
    return functions


def blocks_of(errors):
    """Returns the errors, each with the lines that lead to it."""
    blocks, leading = [[]], False
    for line in errors.splitlines():
        leads = bool(LEADS.search(line))
        if leads and not leading:
            blocks.append([])
        leading = leads
        blocks[-1].append(line)
    # A note on another file has leads, too, and belongs to the error before it.
    whole = []
    for block in blocks:
        if whole and not any("error: " in line for line in block):
            whole[-1] += block
        elif block:
            whole.append(block)
    return whole


def check(source, errors):
    """Returns a list of what is wrong."""
    functions = functions_of(source)
    told = {name: [] for name in functions}
    wrong = []
    for block in blocks_of(errors):
        places = [int(line) for text in block for line in PLACE.findall(text)]
        names = {
            name
            for name, (first, last, _) in functions.items()
            if any(first <= place <= last for place in places)
        }
        if len(names) != 1:
            wrong.append("an error of " + (", ".join(sorted(names)) or "no function") + ":\n" + "\n".join(block))
        for name in names:
            told[name] += block
    for name, lines in told.items():
        if not lines:
            wrong.append(name + " compiles")
        elif functions[name][2] not in plain("\n".join(lines)):
            wrong.append("%s: the errors lack \"%s\":\n%s" % (name, functions[name][2], "\n".join(lines)))
        if len(lines) > LINES_MAX:
            wrong.append("%s has %d lines of errors, more than %d" % (name, len(lines), LINES_MAX))
    if len(functions) < 11:
        wrong.append("only %d functions were found" % len(functions))
    return wrong


def main():
    source, errors = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
    wrong = check(source, errors)
    print("\n\n".join(wrong) or "each mistake has its sentence")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
