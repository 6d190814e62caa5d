"""Looks up the words of a command: the labels and configurations of Bazel, the
options of scripts, and the commands, options and keys of trainer.

    trainer = Trainer("bazel-bin/tools/trainer")
    trainer.wrong_words(["train", "--resum"])    # "there is no option --resum"
    wrong_bazel(Tree("."), ["test", "//mm/..."])    # "there is no folder mm"

Each function returns what is wrong; "" if nothing is.
"""

import os
import re
import subprocess

# Text that stands for a value of the reader's own.
PLACEHOLDER = re.compile(r"\b(FILE|DIR|N|I|K|HOST|PORT|NAME|N1|N2)\b|\.\.\.|…")


class Tree:
    """The workspace, as far as commands name parts of it."""

    def __init__(self, root):
        self.root = root

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8",
                  errors="replace") as file:
            return file.read()

    def has(self, path):
        return os.path.exists(os.path.join(self.root, path))

    def texts_under(self, folder):
        """Returns the texts of a folder's files, joined."""
        texts = []
        for where, _, names in os.walk(os.path.join(self.root, folder)):
            texts += [self.read(os.path.join(where, name)) for name in names]
        return "\n".join(texts)


def wrong_label(tree, label):
    """Returns what is wrong with //folder:target or //folder/...; or ""."""
    found = re.fullmatch(r"-?//([\w/]*?)/?(\.\.\.|(?::(\w+|\.\.\.))?)", label)
    if not found:
        return "%s is no label" % label
    folder, _, target = found.groups()
    if label.endswith("..."):
        return "" if tree.has(folder) else "there is no folder %s" % folder
    target = target or folder.split("/")[-1]
    if not tree.has(folder + "/BUILD"):
        return "there is no %s/BUILD" % folder
    build = tree.read(folder + "/BUILD")
    return "" if '"%s"' % target in build else (
        "%s/BUILD has no %s" % (folder, target))


def wrong_option(option, texts):
    """Returns what is wrong with "--name=value", which must stand in the texts
    of the program that takes it; or ""."""
    name = option.split("=")[0]
    return "" if re.search(re.escape(name) + r"\b", texts) else (
        "there is no option " + name)


def wrong_bazel(tree, words):
    """Returns what is wrong with the words of `bazel ...`; or ""."""
    own = words.index("--") if "--" in words else len(words)
    labels = [word for word in words[:own] if word.startswith(("//", "-//"))]
    wrong = [wrong_label(tree, label) for label in labels]
    for word in words[:own]:
        config = re.match(r"--config=(\w+)", word)
        if config and ":%s " % config.group(1) not in tree.read(".bazelrc"):
            wrong.append(".bazelrc has no " + word)
    if own < len(words) and not any(wrong):
        folder = labels[-1][2:].split(":")[0]
        texts = tree.texts_under(folder) + tree.texts_under("tools/bench")
        wrong += [wrong_option(word, texts) for word in words[own + 1:]]
    return "; ".join(filter(None, wrong))


def wrong_script(tree, words):
    """Returns what is wrong with the words of `tools/...`; or ""."""
    script = os.path.join(tree.root, words[0])
    if not os.access(script, os.X_OK):
        return "there is no program " + words[0]
    # What runs in a place of its own, such as a bare root, comes last.
    options = [word for word in words[1:] if word.startswith("--")]
    texts = tree.read(words[0]) + tree.texts_under("tools/lib")
    return "; ".join(filter(None, [wrong_option(o, texts) for o in options]))


class Trainer:
    """The program, and what its help says."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.helps = {}
        general = self.run("help")
        names = re.findall(r"^  trainer (\w+)", general, re.MULTILINE)
        self.names = [n for n in dict.fromkeys(names) if n != "help"]
        section, keys = "", set()
        for line in self.run("train", "--help=markdown").splitlines():
            heading = re.match(r"## \[(\w+)\]$", line)
            section = heading.group(1) if heading else section
            row = re.match(r"\| `(\w+)` \|", line)
            if row:
                keys.add("%s.%s" % (section, row.group(1)))
        self.keys = keys
        self.sections = {key.split(".")[0] for key in keys}

    def run(self, *arguments):
        return subprocess.run([self.path, *arguments], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def help_of(self, name):
        if name not in self.helps:
            self.helps[name] = self.run("help", name)
        return self.helps[name]

    def wrong_words(self, words):
        """Returns what is wrong with the options of `trainer ...`; or ""."""
        if not words:
            return ""
        name = words[0]
        if name.startswith("--") or name == "help":
            unknown = [w for w in words[1:] if w.split("|")[0] not in self.names]
            return "there is no command " + unknown[0] if unknown else ""
        if name not in self.names:
            return "there is no command " + name
        own = words.index("--") if "--" in words else len(words)
        wrong = [wrong_option(word, self.help_of(name))
                 for word in words[1:own] if word.startswith("--")]
        for before, word in zip(words, words[1:own]):
            if before == "--set" and not PLACEHOLDER.search(word):
                wrong.append(self.wrong_key(word.split("=")[0]))
        # What follows is a command of trainer, unless it is another program's.
        if not any(word.startswith("--program") for word in words[1:own]):
            wrong.append(self.wrong_words(words[own + 1:]))
        return "; ".join(filter(None, wrong))

    def wrong_key(self, key):
        return "" if key in self.keys or key == "section.key" else (
            "there is no key " + key)
