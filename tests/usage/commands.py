"""Runs the commands that README.md, docs/ and the help of trainer show.

    commands.py ROOT TRAINER EXCEPTIONS.txt

Commands are the lines of ```sh blocks, lines of other blocks that begin with
"$ ", and the indented lines below "For example:" and the like in a help text.
Those of a page run in one scratch folder, in their order, and must end with 0:

- `trainer ...` runs as written, except that runs are shortened (shortened()).
  The nodes of `trainer launch --nnodes=N` run at the same time, all on this host;
  `trainer doctor --listen` runs until it listens, and gets Ctrl-C;
- of `scp` the files must be there;
- of `bazel ...` the labels, the configurations and the program's options must
  exist, of a script in tools/ the file and its options: both take minutes;
- all other programs, and what needs another host, are in EXCEPTIONS.txt, with
  the reason.

Besides, wherever `trainer ...` or `section.key` stands in a page, in backticks,
the options and keys must exist; ```toml must be a configuration, and ```python
must have the syntax of Python.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from command_files import write_files
from command_words import Trainer, Tree, wrong_bazel, wrong_script

# Seconds that a command may take.
TIMEOUT_S = 60

# Programs that begin a command in a help text.
HELP_PROGRAMS = r"(n\d\$ )?(trainer|scp|bazel|tools/\w+) "

# Commands that run before those of a page, for what its reader has already.
BEFORE = {
    "docs/checkpoints.md": [
        "trainer train --config=run.toml",
        "trainer export --checkpoint=checkpoints/run --out=resnet18.safetensors",
    ],
    **{"trainer help " + name: [
        "trainer train --config=examples/glyphs/glyphs.toml",
    ] for name in ("evaluate", "export")},
    "trainer help generate": [
        "trainer train --config=examples/char_gpt/char_gpt.toml "
        "--set data.path=input.txt --set train.global_batch_size=4",
        "trainer train --config=long.toml",
    ],
    "trainer help predict": [
        "trainer train --config=photos.toml --set data.val_fraction=0.5 "
        "--set train.steps=4",
    ],
}


class Command:
    """A command, and where it is written."""

    def __init__(self, page, number, text):
        self.page = page
        self.number = number
        self.text = text

    def at(self, what):
        return "%s:%d: %s: %s" % (self.page, self.number, self.text, what)


def fenced(lines):
    """Yields (number of the first line, language, lines) of fenced blocks."""
    block = None
    for number, line in enumerate(lines, start=1):
        fence = re.match(r" *```(\w*)$", line)
        if fence and block is None:
            block = (number + 1, fence.group(1), [])
        elif fence:
            yield block
            block = None
        elif block is not None:
            block[2].append(line)


def joined(number, lines):
    """Yields (number, text) of commands: lines that end in \\ continue, what
    follows "  #" is a comment."""
    text = ""
    for offset, line in enumerate(lines):
        first = number + offset if not text else first
        line = re.sub(r"(^|\s+)#( .*)?$", "", line).strip()
        text = (text + " " + line).strip()
        if text.endswith("\\"):
            text = text[:-1].strip()
        elif text:
            yield first, text
            text = ""


def commands_of_page(page, lines):
    for number, language, block in fenced(lines):
        if language == "sh":
            shown = block
        elif language == "":
            # A prompt, and the lines that continue it.
            shown, goes_on = [], False
            for line in block:
                prompt = line.strip().startswith("$ ")
                shown.append(line.strip()[2 if prompt else 0:]
                             if prompt or goes_on else "")
                goes_on = (prompt or goes_on) and line.endswith("\\")
        else:
            continue
        for first, text in joined(number, shown):
            yield Command(page, first, text)


def commands_of_help(page, lines):
    example, shown = False, []
    for line, after in zip(lines, lines[1:] + [""]):
        if line and not line.startswith(" "):
            example = line.endswith(":") and not after
        shows = example and re.match(r"  +" + HELP_PROGRAMS, line)
        goes_on = bool(shown and shown[-1].endswith("\\"))
        shown.append(line if shows or goes_on else "")
    for first, text in joined(1, shown):
        yield Command(page, first, text)


def normal(text):
    return " ".join(text.split())


def read_exceptions(path):
    """Returns (limit, {(page, command): reason})."""
    limit, exceptions = None, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("limit "):
                limit = int(line.split()[1])
                continue
            page, command, reason = [each.strip() for each in line.split(" | ")]
            exceptions[page, normal(command)] = reason
    return limit, exceptions


# What a run of each command ends with, so that it takes a second.
SHORT = {
    "train": ["--set", "train.steps=4", "--set", "train.eval_every=0"],
    "profile": ["--seconds=0.2", "--set", "train.global_batch_size=2"],
    "generate": ["--tokens=4"],
}


def shortened(words):
    """Returns the words of `trainer ...` for a run of a second."""
    if not words:
        return words
    if "--" in words:
        own = words.index("--")
        return words[:own + 1] + shortened(words[own + 1:])
    if words[0] not in SHORT or "--help" in " ".join(words):
        return words
    kept = []
    for word in words:
        if re.match(r"train\.(steps|epochs)=", word):
            kept.pop()  # its --set
        else:
            kept.append(word)
    return kept + SHORT[words[0]]


def make_scratch(tree, trainer, folder):
    """Fills the folder in which commands run: the examples, and `trainer`, both
    on the PATH and where Bazel leaves it."""
    programs = os.path.join(folder, "bazel-bin", "tools")
    os.makedirs(programs)
    wrapper = os.path.join(programs, "trainer")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec %s %s short %s \"$@\"\n" % (
            sys.executable, shlex.quote(os.path.abspath(__file__)),
            shlex.quote(trainer.path)))
    os.chmod(wrapper, 0o755)
    os.symlink(os.path.join(tree.root, "examples"),
               os.path.join(folder, "examples"))
    # The program of one's own that trainer launch starts.
    os.symlink(os.path.abspath("examples/any_launcher/any_launcher"),
               os.path.join(folder, "mine"))
    write_files(folder)
    environment = dict(os.environ, HOME=folder, XDG_CACHE_HOME=folder)
    environment["PATH"] = programs + ":" + environment["PATH"]
    return environment


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def on_this_host(text):
    """Returns the commands by which the nodes of a job start, one for each node,
    with this host in place of theirs."""
    nodes = int(re.search(r"--nnodes=(\d+)", text).group(1))
    text = re.sub(r"--master=\S+", "--master=localhost:%d" % free_port(), text)
    text = text.replace("--config=FILE", "--config=run.toml")
    return [re.sub(r"--node-rank=\d+", "--node-rank=%d" % node, text)
            for node in range(nodes)]


class Checker:
    """Checks pages; the commands of one page share a folder."""

    def __init__(self, tree, trainer, exceptions):
        self.tree = tree
        self.trainer = trainer
        self.exceptions = exceptions
        self.used = set()
        self.report = []
        self.folder = None
        self.environment = None

    def begin(self, page):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.environment = make_scratch(self.tree, self.trainer, self.folder)
        for text in BEFORE.get(page, []):
            self.run(Command(page, 0, text))

    def check(self, command):
        text = re.sub(r"^n\d\$ |\$\([^)]*\)", "", command.text)
        words = shlex.split(text, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words.pop(0)  # a variable for this command
        program = words[0] if words else "nothing"
        built = re.fullmatch(r"bazel-bin/([\w/]+)/(\w+)", program)
        key = (command.page, normal(command.text))
        wrong, runs, excused = "", False, key in self.exceptions
        if program == "bazel":
            wrong = wrong_bazel(self.tree, words[1:])
        elif re.fullmatch(r"tools/[a-z_/]+", program):
            wrong = wrong_script(self.tree, words)
        elif re.fullmatch(r"(bazel-bin/tools/)?trainer", program):
            wrong, runs = self.trainer.wrong_words(words[1:]), True
        elif built:
            label = "//%s:%s" % built.groups()
            wrong = wrong_bazel(self.tree, ["run", label, "--", *words[1:]])
        elif program == "export":
            runs = True
        elif program == "scp":
            wrong = self.wrong_copy(words)
        elif not excused:
            wrong = "%s is not run here: an exception must say why" % program
        if excused:
            self.used.add(key)
        if wrong:
            self.report.append(command.at(wrong))
        elif runs and not excused:
            self.run(command)

    def wrong_copy(self, words):
        """Returns what is wrong with `scp OPTIONS FILE... HOST:PATH`."""
        files = [word for word in words[1:-1] if not word.startswith("-")]
        missing = [name for name in files
                   if not os.path.exists(os.path.join(self.folder, name))]
        return "there is no %s" % missing[0] if missing else ""

    def node(self):
        """Returns the folder of a host that has its certificates in certs/."""
        folder = os.path.join(self.folder, "host")
        if not os.path.exists(folder):
            os.mkdir(folder)
            self.run(Command("the certificates of a host", 0,
                             "trainer certs --dir=host/all --hosts=n1,n2"))
            shutil.copytree(os.path.join(folder, "all", "n1"),
                            os.path.join(folder, "certs"))
            shutil.copy(os.path.join(self.folder, "run.toml"), folder)
        return folder

    def start(self, text, folder):
        return subprocess.Popen(
            ["timeout", "--foreground", "-k", "5", str(TIMEOUT_S), "bash", "-c",
             text], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
            start_new_session=True)

    def run(self, command):
        text = re.sub(r"^n\d\$ ", "", command.text)
        ends_with = 0
        if "--nnodes=" in text:
            started = [self.start(node, self.node()) for node in on_this_host(text)]
        elif "doctor --listen" in text:
            started = [self.start("exec %s --port=%d" % (text, free_port()),
                                  self.node())]
            if started[0].stdout.readline().startswith("listening"):
                ends_with = -signal.SIGINT
                os.killpg(started[0].pid, signal.SIGINT)
        else:
            started = [self.start(text, self.folder)]
        for each in started:
            output, _ = each.communicate()
            if each.returncode != ends_with:
                last = output.strip().split("\n")[-1]
                self.report.append(command.at(
                    "ends with %d: %s" % (each.returncode, last)))

    def check_words_in_text(self, page, lines):
        """Checks what a page names in backticks, outside of blocks."""
        inside = False
        for number, line in enumerate(lines, start=1):
            inside ^= line.lstrip().startswith("```")
            for code in re.findall(r"`([^`]+)`", "" if inside else line):
                self.check_code(Command(page, number, code))

    def check_code(self, command):
        key = re.match(r"([a-z]+)\.([a-z_0-9]+)( = |=|$)", command.text)
        wrong = ""
        if key and key.group(1) in self.trainer.sections:
            name = "%s.%s" % key.group(1, 2)
            if key.group(2) not in FILE_ENDINGS:
                wrong = self.trainer.wrong_key(name)
        elif command.text.startswith("trainer "):
            words = command.text.replace("'", "").replace('"', "").split()[1:]
            wrong = self.trainer.wrong_words(words)
        if wrong:
            self.report.append(command.at(wrong))

    def check_blocks(self, page, lines):
        """Checks configurations and the syntax of Python."""
        for number, language, block in fenced(lines):
            text = "\n".join(block) + "\n"
            if language == "toml":
                path = os.path.join(self.folder, "block.toml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                self.run(Command(page, number, "trainer train --print-config "
                                 "--config=block.toml"))
            elif language == "python":
                try:
                    compile(text, page, "exec")
                except SyntaxError as error:
                    self.report.append("%s:%d: %s" % (
                        page, number + (error.lineno or 1) - 1, error.msg))


# "model.safetensors" is a file, not a key.
FILE_ENDINGS = ("bin", "safetensors", "h", "cc", "md", "json", "toml", "pt", "jsonl")


def pages_of(tree):
    names = ["README.md"] + sorted(
        "docs/" + name for name in os.listdir(os.path.join(tree.root, "docs"))
        if name.endswith(".md"))
    return {name: tree.read(name).splitlines() for name in names}


def helps_of(trainer):
    helps = {"trainer help": trainer.run("help")}
    for name in trainer.names:
        helps["trainer help " + name] = trainer.help_of(name)
    return {page: text.splitlines() for page, text in helps.items()}


def check_all(tree, trainer, pages, helps, limit, exceptions):
    """Returns a message for each statement that is wrong."""
    checker = Checker(tree, trainer, exceptions)
    for page, lines in pages.items():
        checker.begin(page)
        checker.check_words_in_text(page, lines)
        checker.check_blocks(page, lines)
        for command in commands_of_page(page, lines):
            checker.check(command)
    for page, lines in helps.items():
        checker.begin(page)
        for command in commands_of_help(page, lines):
            checker.check(command)
    report = checker.report
    report += ["exception %s | %s: no such command is there any more; delete the "
               "line" % key for key in exceptions if key not in checker.used]
    if len(exceptions) != limit:
        report.append("the limit on exceptions is %s, and there are %d: lower it, "
                      "or make the new command run" % (limit, len(exceptions)))
    return report


def main(arguments):
    if arguments[0] == "short":
        os.execv(arguments[1], [arguments[1], *shortened(arguments[2:])])
    root, program, path = arguments
    tree, trainer = Tree(root), Trainer(program)
    limit, exceptions = read_exceptions(path)
    report = check_all(tree, trainer, pages_of(tree), helps_of(trainer), limit,
                       exceptions)
    for line in report:
        print(line)
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
