"""Event files such as Bazel writes them, and what tools/test makes of them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

MIXED = """<testsuites><testsuite>
<testcase name="Passes" status="run" result="completed"/>
<testcase name="Fails" status="run" result="completed"><failure/></testcase>
<testcase name="Skips" status="run" result="skipped"><skipped/></testcase>
<testcase name="Disabled" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""
SCRIPT = '<testsuites><testsuite><testcase name="x"/></testsuite></testsuites>'


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def result(self, label, status, report, run=1, log="said why\n"):
        xml = self.file("%s.%d.xml" % (label, run), report)
        text = self.file("%s.%d.log" % (label, run), log)
        return {
            "id": {"testResult": {"label": label, "run": run}},
            "testResult": {
                "status": status,
                "testActionOutput": [
                    {"name": "test.xml", "uri": "file://" + xml},
                    {"name": "test.log", "uri": "file://" + text},
                ],
            },
        }

    @staticmethod
    def built(label, **completed):
        return {"id": {"targetCompleted": {"label": label}}, **completed}

    def add(self, events, exit_code=0):
        """A run of Bazel. Returns what is said beside it."""
        lines = "".join(json.dumps(event) + "\n" for event in events)
        done = subprocess.run(
            [sys.executable, "tools/lib/count_tests.py",
             self.file("events.json", lines), str(exit_code), self.cases()],
            check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def total(self):
        """Returns (the line of executions, those of failures, the last)."""
        done = subprocess.run(
            [sys.executable, "tools/lib/count_tests.py", "--total",
             self.cases()],
            check=True, capture_output=True, text=True)
        return tuple(done.stdout.splitlines())

    def cases(self):
        path = os.path.join(self.folder.name, "cases")
        open(path, "a", encoding="utf-8").close()
        return path

    def count(self, events, exit_code=0):
        """Returns (the last line, what is said beside it)."""
        said = self.add(events, exit_code)
        return self.total()[-1], said

    def test_cases_of_a_program(self):
        counts, said = self.count([self.result("t", "FAILED", MIXED)], 3)
        self.assertEqual(counts, "1 passed, 1 failed, 2 skipped")
        self.assertEqual(self.total()[1:-1], ("failed: t .Fails",))
        self.assertEqual(said, "said why\nfailed: t (FAILED)\n")

    def test_a_case_counts_once_and_its_executions_all(self):
        runs = [self.result("t", "PASSED", SCRIPT, run=r) for r in (1, 2)]
        runs[1]["testResult"]["cachedLocally"] = True
        self.assertEqual(self.add(runs), "")
        self.assertEqual(self.add([self.result("t", "PASSED", SCRIPT)]), "")
        self.assertEqual(
            self.total(),
            ("3 executions passed in all configurations, 1 of them cached",
             "1 passed, 0 failed, 0 skipped"))

    def test_a_case_fails_that_fails_under_one_configuration(self):
        self.add([self.result("t", "PASSED", SCRIPT)])
        fails = SCRIPT.replace("/></", "><failure/></testcase></")
        self.add([self.result("t", "FAILED", fails)], 3)
        self.assertEqual(self.total()[-1], "0 passed, 1 failed, 0 skipped")

    def test_a_case_that_another_shard_runs_is_not_skipped(self):
        self.add([self.result("t", "PASSED", SCRIPT),
                  self.result("t", "PASSED",
                              SCRIPT.replace('"x"', '"x" status="notrun"'),
                              run=2)])
        self.assertEqual(self.total()[-1], "1 passed, 0 failed, 0 skipped")

    def test_a_later_attempt_replaces_an_earlier_one(self):
        events = [self.result("t", "FAILED", MIXED),
                  self.result("t", "PASSED", SCRIPT)]
        self.assertEqual(self.count(events),
                         ("1 passed, 0 failed, 0 skipped", ""))

    def test_a_long_list_of_failures_is_cut(self):
        self.add([self.built("t%02d" % i, completed={}) for i in range(32)], 1)
        total = self.total()
        self.assertEqual(total[1], "failed: t00 builds")
        self.assertEqual(total[30:], ("failed: t29 builds", "and 2 more failed",
                                      "0 passed, 32 failed, 0 skipped"))

    def test_a_timeout_without_a_failed_case_is_a_failure(self):
        counts, _ = self.count([self.result("t", "TIMEOUT", SCRIPT)], 3)
        self.assertEqual(counts, "1 passed, 1 failed, 0 skipped")

    def test_a_target_that_does_not_build_is_a_failure(self):
        events = [self.built("a", completed={"success": True}),
                  self.built("b", completed={}),
                  self.built("c", aborted={"reason": "ANALYSIS_FAILURE"}),
                  self.built("d", aborted={"reason": "SKIPPED"})]
        counts, said = self.count(events, 1)
        self.assertEqual(counts, "0 passed, 2 failed, 0 skipped")
        self.assertEqual(said, "did not build: b\ndid not build: c\n")

    def test_an_error_without_an_event_is_a_failure(self):
        self.assertEqual(self.count([], 4),
                         ("0 passed, 0 failed, 0 skipped", ""))
        self.assertEqual(self.count([], 1),
                         ("0 passed, 1 failed, 0 skipped",
                          "bazel ended with code 1\n"))


if __name__ == "__main__":
    unittest.main()
