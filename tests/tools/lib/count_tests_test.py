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

    def count(self, events, exit_code=0):
        """Returns (what is printed as the count, what is said beside it)."""
        lines = "".join(json.dumps(event) + "\n" for event in events)
        done = subprocess.run(
            [sys.executable, "tools/lib/count_tests.py",
             self.file("events.json", lines), str(exit_code)],
            check=True, capture_output=True, text=True)
        return done.stdout.strip(), done.stderr

    def test_cases_of_a_program(self):
        counts, said = self.count([self.result("t", "FAILED", MIXED)], 3)
        self.assertEqual(counts, "1 1 2")
        self.assertEqual(said, "said why\nfailed: t (FAILED)\n")

    def test_a_script_is_one_case_in_each_run(self):
        events = [self.result("t", "PASSED", SCRIPT, run=r) for r in (1, 2)]
        self.assertEqual(self.count(events), ("2 0 0", ""))

    def test_a_later_attempt_replaces_an_earlier_one(self):
        events = [self.result("t", "FAILED", MIXED),
                  self.result("t", "PASSED", SCRIPT)]
        self.assertEqual(self.count(events), ("1 0 0", ""))

    def test_a_timeout_without_a_failed_case_is_a_failure(self):
        counts, _ = self.count([self.result("t", "TIMEOUT", SCRIPT)], 3)
        self.assertEqual(counts, "1 1 0")

    def test_a_target_that_does_not_build_is_a_failure(self):
        events = [self.built("a", completed={"success": True}),
                  self.built("b", completed={}),
                  self.built("c", aborted={"reason": "ANALYSIS_FAILURE"}),
                  self.built("d", aborted={"reason": "SKIPPED"})]
        counts, said = self.count(events, 1)
        self.assertEqual(counts, "0 2 0")
        self.assertEqual(said, "did not build: b\ndid not build: c\n")

    def test_an_error_without_an_event_is_a_failure(self):
        self.assertEqual(self.count([], 1),
                         ("0 1 0", "bazel ended with code 1\n"))
        self.assertEqual(self.count([], 4), ("0 0 0", ""))


if __name__ == "__main__":
    unittest.main()
