"""Tests commands.py on small pages with planted mistakes, in a small workspace
with a program that has two commands."""

import os
import tempfile
import unittest

import commands

TRAINER = """\
#!/bin/bash
case "$*" in
  help) echo "  trainer train [options]  trains"
        echo "  trainer report DIR  shows"
        echo "  trainer certs  makes"
        echo "  trainer launch  starts"
        echo "  trainer doctor  looks"
        echo "  trainer help  this text" ;;
  "train --help=markdown") echo "## [model]"; echo '| `kind` | "mlp" |'
                           echo "## [train]"; echo '| `steps` | integer |' ;;
  "help train") echo "  --config=FILE --set section.key=value --resume" ;;
  "help report") echo "  --output=FILE" ;;
  "help launch") echo "  --nnodes=N --node-rank=I --master=HOST:PORT --certs=DIR" ;;
  "help doctor") echo "  --listen --certs=DIR" ;;
  certs*) mkdir -p host/all/n1 ;;
  launch*--certs=mine*) exit 5 ;;
  launch*)  # two nodes at the same time: one waits for the other's line
    mkfifo met 2>/dev/null
    case "$*" in
      *--node-rank=0*--master=localhost:*) read -r line <met ;;
      *) echo here >met ;;
    esac ;;
  doctor*--certs=certs*) echo listening
                         exec python3 -c 'import signal; signal.pause()' ;;
  doctor*) echo no such folder; exit 1 ;;
  report*) test -e run ;;
  *--set\\ model.kind=bad*) echo "no such kind" >&2; exit 2 ;;
  *) touch run ;;
esac
"""
FILES = {
    ".bazelrc": "build:asan --copt=-fsanitize=address\n",
    "docs/page.md": "",
    "README.md": "",
    "nn/BUILD": 'cc_test(\n    name = "nn_test",\n)\n',
    "tools/BUILD": 'cc_binary(\n    name = "bench",\n)\n',
    "tools/bench/BUILD": 'cc_binary(\n    name = "bench",\n)\n',
    "tools/bench/bench.cc": "// --rounds=N\n",
    "tools/lib/x.sh": "",
    "tools/pack": '#!/bin/bash\ncase "$1" in --fast) ;; esac\n',
    "examples/a.toml": "",
    "trainer": TRAINER,
}

RIGHT = """\
```sh
trainer train --config=examples/a.toml \\
    --set train.steps=100      # trains
trainer report run
bazel-bin/tools/trainer train --resume
export A=1
bazel test //nn/... --test_filter='A*'   # all
bazel build --config=asan //nn:nn_test
bazel run //tools/bench -- --rounds=3
tools/pack --fast
```

```
$ trainer report run
what it says
```

See `train.steps`, `train.bin`, `trainer report --output=FILE`.

```toml
[train]
```

```python
load("//x", "y")
```
"""
HELP = """\
trainer train [options]

Options:
  --resume  trainer launch, torchrun

For example:

  trainer train --config=examples/a.toml %s
"""


class CommandsTest(unittest.TestCase):

    def report(self, page=RIGHT, help_text=HELP % "", limit=0, exceptions=()):
        """Returns what is wrong with a page and a help text."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in FILES.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            for program in ("trainer", "tools/pack"):
                os.chmod(os.path.join(root, program), 0o755)
            trainer = commands.Trainer(os.path.join(root, "trainer"))
            os.environ["TEST_TMPDIR"] = root
            return commands.check_all(
                commands.Tree(root), trainer, {"docs/page.md": page.splitlines()},
                {"trainer help train": help_text.splitlines()}, limit,
                dict(exceptions))

    def test_what_is_right_passes(self):
        self.assertEqual(self.report(), [])

    def test_each_wrong_command_is_found(self):
        for command, what in (
            ("trainer tarin", "no command tarin"),
            ("trainer train --confg=a.toml", "no option --confg"),
            ("trainer train --set train.step=1", "no key train.step"),
            ("trainer train --set model.kind=bad", "ends with 2: no such kind"),
            ("trainer report other", "ends with 1"),
            ("bazel test //mm/...", "no folder mm"),
            ("bazel test //nn:other_test", "no other_test"),
            ("bazel build --config=asna //nn/...", ".bazelrc has no"),
            ("bazel run //tools/bench -- --round=3", "no option --round"),
            ("tools/pakc", "no program tools/pakc"),
            ("tools/pack --fats", "no option --fats"),
            ("rm -rf /tmp/nothing", "rm is not run here"),
            ("scp -pr certs/n1 n1:certs", "there is no certs/n1"),
            ("trainer doctor --listen --certs=mine", "ends with 1"),
        ):
            # Alone, so that no command before it helps.
            page = "Text.\n\n```sh\n%s\n```\n" % command
            report = self.report(page)
            self.assertEqual(len(report), 1, (command, report))
            self.assertIn(what, report[0])
            self.assertTrue(report[0].startswith("docs/page.md:4: " + command))
            self.assertIn(what, self.report("```\n$ %s\n```\n" % command)[0])

    def test_help_texts_are_read(self):
        report = self.report(help_text=HELP % "--set train.step=1")
        self.assertEqual(len(report), 1, report)
        self.assertTrue(report[0].startswith("trainer help train:8: "))

    def test_words_in_the_text_are_looked_up(self):
        for text, what in (("`train.step`", "no key train.step"),
                           ("`train.step = 3`", "no key train.step"),
                           ("`trainer train --resum`", "no option --resum"),
                           ("`trainer tarin`", "no command tarin")):
            report = self.report("Set %s.\n" % text)
            self.assertEqual(len(report), 1, (text, report))
            self.assertIn(what, report[0])

    def test_blocks_of_other_languages_are_read(self):
        self.assertEqual(len(self.report("```python\na = = 1\n```\n")), 1)

    def test_an_exception_is_excused_and_must_be_used(self):
        page = "```sh\nssh  n1   # goes there\n```\n"
        excused = {("docs/page.md", "ssh n1"): "needs a host"}
        self.assertEqual(len(self.report(page)), 1)
        self.assertEqual(self.report(page, limit=1, exceptions=excused), [])
        self.assertEqual(len(self.report(limit=1, exceptions=excused)), 1)
        # The list may not grow beyond its limit, nor the limit stay above it.
        for limit in (0, 2):
            self.assertEqual(
                len(self.report(page, limit=limit, exceptions=excused)), 1)

    def test_hosts_are_this_one(self):
        launch = ("n1$ trainer launch --nnodes=2 --node-rank=0 --master=n1:29400 "
                  "--certs=%s -- train --config=FILE\n")
        page = "```sh\ntrainer doctor --listen --certs=certs\n%sscp -pr run.toml " \
            "n1:\n```\n"
        self.assertEqual(self.report(page % (launch % "certs")), [])
        report = self.report(page % (launch % "mine"))
        self.assertEqual(len(report), 2, report)  # one for each node
        self.assertIn("ends with 5", report[0])

    def test_what_is_wrong_is_not_excused(self):
        page = "```sh\ntrainer train --nodes=2\n```\n"
        excused = {("docs/page.md", "trainer train --nodes=2"): "two hosts"}
        self.assertEqual(len(self.report(page, limit=1, exceptions=excused)), 1)

    def test_runs_are_shortened(self):
        self.assertEqual(
            commands.shortened(["train", "--set", "train.epochs=8", "--resume"]),
            ["train", "--resume", *commands.SHORT["train"]])
        self.assertEqual(
            commands.shortened(["launch", "--", "train"]),
            ["launch", "--", "train", *commands.SHORT["train"]])
        self.assertEqual(commands.shortened(["plan"]), ["plan"])


if __name__ == "__main__":
    unittest.main()
