"""Compares examples/NAME/NAME.cc with NAME.py beside it, for each NAME of the
arguments: the C++ has at most 1.2 times the lines of the Python, and its head
says how many those are. Blank lines and lines of comments are not counted, nor
are strings that are statements of Python.

    line_counts.py NAME...
"""

import ast
import re
import sys

RATIO_MAX = 1.2
STATED = re.compile(r"\b(\d+)\s+lines\b")


def cc_lines(text):
    """Returns the number of lines with code. The examples have // alone."""
    if "/*" in re.sub(r"/\*\w+=\*/", "", text):
        raise ValueError("has a comment that begins with /*")
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))


def py_lines(text):
    strings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            strings.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        1
        for number, line in lines
        if line.strip() and not line.strip().startswith("#") and number not in strings
    )


def stated(text):
    """Returns the number of Python's lines in the head of the C++, or None."""
    head = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        head.append(line[2:].strip())
    found = STATED.search(" ".join(head))
    return int(found[1]) if found else None


def problems_of(name, cc, py):
    """Yields what is wrong with an example's two texts."""
    own, other = cc_lines(cc), py_lines(py)
    if own > RATIO_MAX * other:
        yield f"{name}.cc has {own} lines, over {RATIO_MAX} x the {other} of {name}.py"
    if stated(cc) != other:
        yield f"{name}.cc says {stated(cc)} lines of {name}.py, which has {other}"


def self_test():
    assert cc_lines("// a\n\nint x;  // b\n f(/*n=*/1);\n") == 2
    assert py_lines('# a\n"""b\nc"""\nx = 1  # d\n\ny = "#"\n') == 2
    assert stated("// in Python it has 12\n// lines.\n\n// 3 lines\n") == 12
    assert not list(problems_of("fits", "// 5 lines\n" + "a\n" * 6, "x\n" * 5))
    assert len(list(problems_of("long", "// 5 lines\n" + "a\n" * 7, "x\n" * 5))) == 1
    assert len(list(problems_of("lies", "// 4 lines\na\n", "x\n" * 5))) == 1


def main(names):
    self_test()
    problems = []
    for name in names:
        path = f"examples/{name}/{name}"
        with open(path + ".cc") as cc, open(path + ".py") as py:
            problems += problems_of(name, cc.read(), py.read())
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems) or not names)


if __name__ == "__main__":
    main(sys.argv[1:])
