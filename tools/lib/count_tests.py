"""Counts test cases in a Bazel event file; a helper of tools/test.

    count_tests.py EVENTS.json BAZEL_EXIT_CODE

Prints "PASSED FAILED SKIPPED" on stdout and, for each target that failed, the
end of its log and a line on stderr. A case is a test case of GoogleTest, or a whole script. A target that
does not build, crashes or runs out of time counts as one failure.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree

LOG_LINES_MAX = 200

# Exit codes of Bazel: 0 is success, 4 is "no tests were found".
NO_FAILURE = (0, 4)


def count_cases(path):
    """Returns (passed, failed, skipped) of one test.xml."""
    passed = failed = skipped = 0
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif (case.find("skipped") is not None
              or case.get("result") in ("skipped", "suppressed")
              or case.get("status") == "notrun"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def local_path(uri):
    return urllib.parse.unquote(urllib.parse.urlparse(uri).path)


def read_events(path):
    """Returns ({target: success}, {target: {run: (status, its files)}})."""
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
                    result.get("status"), files)
    return built, runs


def print_log(files):
    if "test.log" in files:
        with open(local_path(files["test.log"]), encoding="utf-8",
                  errors="replace") as log:
            sys.stderr.writelines(log.readlines()[-LOG_LINES_MAX:])


def main():
    events, exit_code = sys.argv[1], int(sys.argv[2])
    built, runs = read_events(events)
    total = [0, 0, 0]
    for label, success in sorted(built.items()):
        if not success and label not in runs:
            total[1] += 1
            print("did not build: " + label, file=sys.stderr)
    for label, results in sorted(runs.items()):
        for status, files in results.values():
            counts = [0, 0, 0]
            if "test.xml" in files:
                counts = list(count_cases(local_path(files["test.xml"])))
            if status != "PASSED" and counts[1] == 0:
                counts[1] = 1
            if counts[1]:
                print_log(files)
                print("failed: %s (%s)" % (label, status), file=sys.stderr)
            total = [t + c for t, c in zip(total, counts)]
    if exit_code not in NO_FAILURE and total[1] == 0:
        total[1] = 1
        print("bazel ended with code %d" % exit_code, file=sys.stderr)
    print(*total)


main()
