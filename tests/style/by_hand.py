"""Runs a rule on single files: the command line of comments.py and messages.py.

    if __name__ == "__main__":
        sys.exit(by_hand.main(fragments, sys.argv[1:]))

Prints "path:line: sentence" for each finding; returns 1 if there is one.
"""


class _File:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().splitlines()


def main(rule, paths):
    found = False
    for path in paths:
        for number, sentence in rule(_File(path)):
            found = True
            print("%s:%d: %s" % (path, number, sentence))
    return 1 if found else 0
