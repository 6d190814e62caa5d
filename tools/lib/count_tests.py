"""Counts test cases in Bazel's event files; a helper of tools/test.

    count_tests.py EVENTS.json BAZEL_EXIT_CODE CASES     # after each run
    count_tests.py --total CASES

The first adds what ran to the file CASES, a line for each execution of a case;
the second prints how many executions there were, names the cases that failed, and
counts the distinct cases on its last line: one that fails under any configuration
has failed, one that passes under any other has passed. A case is a test case of GoogleTest, or a
whole script. A target that does not build, crashes or runs out of time counts
as one failure; the end of its log goes to stderr, with a line that names it.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree

LOG_LINES_MAX = 200
NAMED_FAILURES_MAX = 30

# Exit codes of Bazel: 0 is success, 4 is "no tests were found".
NO_FAILURE = (0, 4)


def outcome_of(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if (case.find("skipped") is not None
            or case.get("result") in ("skipped", "suppressed")
            or case.get("status") == "notrun"):
        return "skipped"
    return "passed"


def outcomes(path):
    """Returns [(case, outcome)] of one test.xml."""
    return [("%s.%s" % (case.get("classname", ""), case.get("name")),
             outcome_of(case))
            for case in xml.etree.ElementTree.parse(path).iter("testcase")]


def was_cached(result):
    return (result.get("cachedLocally", False)
            or result.get("executionInfo", {}).get("cachedRemotely", False))


def local_path(uri):
    return urllib.parse.unquote(urllib.parse.urlparse(uri).path)


def read_events(path):
    """Returns ({target: success}, {target: {run: (status, files, cached)}})."""
    built, runs = {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            identity = event["id"]
            if "targetCompleted" in identity:
                label = identity["targetCompleted"]["label"]
                if "completed" in event:
                    built[label] = event["completed"].get("success", False)
                elif event.get("aborted", {}).get("reason") != "SKIPPED":
                    built[label] = False
            elif "testResult" in identity and "testResult" in event:
                which = identity["testResult"]
                result = event["testResult"]
                files = {o["name"]: o["uri"]
                         for o in result.get("testActionOutput", [])}
                run = (which.get("run", 1), which.get("shard", 1))
                # A later attempt replaces an earlier one.
                runs.setdefault(which["label"], {})[run] = (
                    result.get("status"), files, was_cached(result))
    return built, runs


def print_log(files):
    if "test.log" in files:
        with open(local_path(files["test.log"]), encoding="utf-8",
                  errors="replace") as log:
            sys.stderr.writelines(log.readlines()[-LOG_LINES_MAX:])


def add(events, exit_code, out):
    """Writes a line to `out` for each execution of a case."""
    failed = False

    def note(target, case, outcome, cached=False):
        nonlocal failed
        failed = failed or outcome == "failed"
        out.write(json.dumps([target, case, outcome, cached]) + "\n")

    built, runs = read_events(events)
    for label, success in sorted(built.items()):
        if not success and label not in runs:
            note(label, "builds", "failed")
            print("did not build: " + label, file=sys.stderr)
    for label, results in sorted(runs.items()):
        for status, files, cached in results.values():
            cases = []
            if "test.xml" in files:
                cases = outcomes(local_path(files["test.xml"]))
            bad = any(outcome == "failed" for _, outcome in cases)
            if status != "PASSED" and not bad:
                cases.append(("ends", "failed"))
                bad = True
            for case, outcome in cases:
                note(label, case, outcome, cached)
            if bad:
                print_log(files)
                print("failed: %s (%s)" % (label, status), file=sys.stderr)
    if exit_code not in NO_FAILURE and not failed:
        note("bazel", "ends", "failed")
        print("bazel ended with code %d" % exit_code, file=sys.stderr)


def total(path):
    executions = cached = 0
    seen = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            target, case, outcome, was_there = json.loads(line)
            seen.setdefault((target, case), set()).add(outcome)
            if outcome == "passed":
                executions += 1
                cached += was_there
    failures = [case for case, all_of in seen.items() if "failed" in all_of]
    failed = len(failures)
    passed = sum("passed" in all_of and "failed" not in all_of
                 for all_of in seen.values())
    print("%d executions passed in all configurations, %d of them cached"
          % (executions, cached))
    for case in failures[:NAMED_FAILURES_MAX]:
        print("failed: %s %s" % case)
    if failed > NAMED_FAILURES_MAX:
        print("and %d more failed" % (failed - NAMED_FAILURES_MAX))
    print("%d passed, %d failed, %d skipped"
          % (passed, failed, len(seen) - passed - failed))


def main():
    if sys.argv[1] == "--total":
        total(sys.argv[2])
        return
    with open(sys.argv[3], "a", encoding="utf-8") as out:
        add(sys.argv[1], int(sys.argv[2]), out)


main()
