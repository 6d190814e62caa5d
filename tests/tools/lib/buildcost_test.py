"""A small profile such as Bazel writes it, and what tools/buildcost makes of it."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join("tools", "lib", "build_cost"))

# pylint: disable=wrong-import-position
import actions
import cost
import table

SECOND = 1_000_000


def event(category, name, start, seconds, thread=1, **more):
    return {"cat": category, "name": name, "ph": "X", "tid": thread,
            "ts": int(start * SECOND), "dur": int(seconds * SECOND), **more}


def action(title, start, seconds, target="", thread=1):
    return event("action processing", title, start, seconds, thread,
                 args={"target": target})


# Two threads. The second compile waits one second for a core, the third comes
# from a cache.
EVENTS = [
    event("build phase marker", "Launch Blaze", -2, 2),
    {"cat": "build phase marker", "name": "Build artifacts", "ph": "i",
     "ts": SECOND, "tid": 1},
    {"name": "thread_name", "ph": "M", "tid": 1, "args": {"name": "main"}},
    action("Compiling comm/tcp/send.cc", 1, 2, "//comm/tcp:send"),
    action("Compiling comm/group.cc", 1, 4, "//comm:group", thread=2),
    event("action resource lock", "Compiling comm/group.cc", 1.5, 1, thread=2),
    action("Compiling usage/made.cc [for tool]", 5, 0.5, "//comm:usage"),
    event("remote output download", "made.o", 5.25, 0.125),
    action("Compiling external/debian/x.cc", 6, 0.5, "@debian//:x"),
    action("Precompiling third_party/pch/std.h", 7, 3, "//third_party/pch:std"),
    action("Linking comm/libgroup.a", 10, 0.25, "//comm:group"),
    action("Linking tests/comm/a_test", 11, 0.5, "//tests/comm:a_test"),
    action("Testing //tests/comm:a_test (shard 1 of 2)", 12, 1),
    action("Testing //tests/comm:a_test (shard 2 of 2)", 12, 2, thread=2),
    action("BazelWorkspaceStatusAction stable-status.txt", 14, 1),
    # Of no action: its thread has none at that time.
    event("action resource lock", "late", 20, 1),
]

TABLE = """\
bazel test //..., 2 cores
wall time 23.0 s, of which 3.0 s before the first action
CPU time 7.5 s of processes that Bazel started, 2.5 s of Bazel itself

actions              number  seconds
compiles                  4      6.0
precompiled headers       1      3.0
archives                  1      0.2
links                     1      0.5
tests                     2      3.0
others                    1      1.0
all actions              10     13.8

folder             compiles  seconds
comm                      2      5.2
  comm itself             1      3.2
  comm/tcp                1      2.0
tests                     0      3.5
  tests/comm              0      3.5
third_party               0      3.0
  third_party/pch         0      3.0
(no folder)               0      1.0
(external)                1      0.5
(generated)               1      0.5

slowest sources       seconds
comm/group.cc             3.0
comm/tcp/send.cc          2.0
external/debian/x.cc      0.5
usage/made.cc             0.5

slowest tests        seconds
//tests/comm:a_test      3.0

"""


class BuildCostTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for source in ("comm/tcp/send.cc", "comm/group.cc"):
            self.file(source, b"")

    def file(self, name, content):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(content)
        return path

    def profile(self, events, name="profile.json"):
        content = json.dumps({"otherData": {}, "traceEvents": events}).encode()
        return self.file(name, gzip.compress(content) if name.endswith("gz")
                         else content)

    def read(self, events):
        return actions.read_profile(self.profile(events), self.folder.name)

    def cost(self, events, cpu=None):
        return cost.cost_of(self.read(events), "test //...", 2, cpu)

    @staticmethod
    def script(*arguments):
        return subprocess.run(["tools/buildcost", *arguments], check=False,
                              capture_output=True, text=True)

    def test_titles(self):
        for title, kind, name in (
                ("Compiling a/b.cc", actions.COMPILES, "a/b.cc"),
                ("Compiling a/b.h and 3 more alone", actions.COMPILES, "a/b.h"),
                ("Compiling a/b.cc [for host]", actions.COMPILES, "a/b.cc"),
                ("Compiling a/b.h alone", actions.COMPILES, "a/b.h"),
                ("Linking a/libb.a", actions.ARCHIVES, "a/libb.a"),
                ("Linking a/libb.so", actions.LINKS, "a/libb.so"),
                ("Testing //a:b (run 2 of 3)", actions.TESTS, "//a:b"),
                ("Writing file a/b", actions.OTHERS, "Writing file a/b")):
            self.assertEqual(actions.kind_and_name(title), (kind, name))

    def test_folders_without_labels(self):
        for kind, name, folder in (
                (actions.LINKS, "tools/trainer", "tools"),
                (actions.ARCHIVES, "a/b/c/libd.a", "a/b"),
                (actions.ARCHIVES, "external/x/liby.a", actions.EXTERNAL),
                (actions.TESTS, "//a/b:c", "a/b"),
                (actions.TESTS, "//:c", actions.NO_FOLDER),
                (actions.OTHERS, "Writing file a/b", actions.NO_FOLDER)):
            self.assertEqual(
                actions.folder_of(kind, name, "", self.folder.name), folder)

    def test_waits_and_caches(self):
        found = {a.name: a for a in self.read(EVENTS).actions}
        self.assertEqual(found["comm/group.cc"].seconds, 3)
        self.assertEqual(found["comm/tcp/send.cc"].seconds, 2)
        self.assertEqual([a.name for a in found.values() if a.from_cache],
                         ["usage/made.cc"])

    def test_cost_is_plain_data(self):
        made = self.cost(EVENTS)
        self.assertEqual(made, json.loads(json.dumps(made)))
        self.assertEqual(made["kinds"]["compiles"],
                         {"number": 4, "seconds": 6.0})
        self.assertEqual(made["folders"]["comm"],
                         {"compiles": 1, "seconds": 3.25})
        self.assertEqual(made["tests"], {"//tests/comm:a_test": 3.0})
        self.assertEqual((made["total_seconds"], made["from_cache"]), (13.75, 1))

    def test_table(self):
        cpu = {"bazel": 2.5, "processes": 7.5}
        text = table.table(self.cost(EVENTS, cpu))
        self.maxDiff = None
        self.assertEqual(
            text, TABLE + table.NOTE
            + "\nA cache answered 1 of these actions: they were not run.")

    def test_ten_are_the_slowest(self):
        compiles = [action("Compiling a/%02d.cc" % i, i, i / 100)
                    for i in range(1, 20)]
        text = table.table(self.cost(compiles))
        self.assertIn("a/10.cc", text)
        self.assertNotIn("a/09.cc", text)

    def test_two_columns(self):
        before = self.cost(EVENTS)
        after = self.cost([action("Compiling comm/group.cc", 1, 1)])
        text = table.table(after, before).splitlines()
        self.assertIn("compiles                         4    1             6.0"
                      "  1.0", text)
        self.assertIn("comm/group.cc               3.0  1.0", text)
        # Folders of the earlier run alone come last.
        self.assertEqual(text[text.index("") + 1], "now: bazel test //..., 2 cores")
        self.assertTrue(any(line.startswith("(generated) ") and
                            line.rstrip().endswith("0.5    -")
                            for line in text))

    def test_nothing_to_do(self):
        text = table.table(self.cost([]))
        self.assertIn("all actions       0      0.0", text)
        self.assertIn("wall time 0.0 s\n", text)

    def test_a_slim_profile_says_so(self):
        text = table.table(self.cost([event("", "merged 12 events", 0, 1)]))
        self.assertIn("The profile is slim: it has merged 12 short", text)

    def test_cpu_time_of_the_server(self):
        ticks = os.sysconf("SC_CLK_TCK")
        stat = "7 (a ) b) S " + "0 " * 10 + "%d %d %d %d 20 0\n" % (
            3 * ticks, ticks, 5 * ticks, 2 * ticks)
        self.assertEqual(cost.read_cpu(self.file("stat", stat.encode())),
                         {"bazel": 4.0, "processes": 7.0})

    def test_script_reads_a_profile(self):
        plain = self.script("--profile=" + self.profile(EVENTS), "--json")
        self.assertEqual(plain.stderr, "")
        self.assertEqual(json.loads(plain.stdout)["kinds"]["links"]["number"], 1)
        before = os.path.join(self.folder.name, "before.json")
        packed = "--profile=" + self.profile(EVENTS, "profile.gz")
        done = self.script(packed, "--json=" + before)
        self.assertTrue(done.stdout.startswith("a profile\nwall time 23.0 s"))
        done = self.script(packed, "--before=" + before)
        self.assertTrue(done.stdout.startswith("before: a profile\n"))

    def test_script_says_what_is_wrong(self):
        broken = self.file("broken.json", b'{"traceEvents": [')
        cut = self.file("cut.gz", gzip.compress(b"{}" * 100)[:20])
        profile = self.profile(EVENTS)
        for arguments, words in (
                (["--profile=" + broken],
                 broken + " is not a whole JSON profile of Bazel"),
                (["--profile=" + cut], cut + " is not a whole"),
                (["--profile=" + self.folder.name + "/no"], "No such file"),
                (["--profile=" + profile, "--before=" + profile],
                 profile + " is not what tools/buildcost --json writes"),
                (["--profile=" + profile, "//base/..."], "builds nothing"),
                (["--profile"], "--profile needs a file: --profile=FILE"),
                (["base"], "base is neither an option nor a target")):
            done = self.script(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
            self.assertTrue(done.stderr.startswith("buildcost: "))

    def test_help(self):
        done = self.script("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--test", "--profile=FILE", "--before=FILE", "--json"):
            self.assertIn("\n  " + option, done.stdout)


if __name__ == "__main__":
    unittest.main()
