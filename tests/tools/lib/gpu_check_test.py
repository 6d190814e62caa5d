"""gpu_check on folders of made-up programs: no GPU, one, pieces that fail, hang
and leave no room for others; and what it reads from the real ones."""

import importlib.machinery
import importlib.util
import io
import json
import math
import os
import re
import sys
import tempfile
import time
import unittest
from contextlib import redirect_stderr, redirect_stdout

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join("tools", "lib"))

# pylint: disable=wrong-import-position
from gpu_check import benchmarks, bundle, trainings, unit_tests
from gpu_check.session import FAILED, OK, SKIPPED, Piece, Result, Session


def load_program():
    loader = importlib.machinery.SourceFileLoader(
        "gpu_check_program", os.path.join("tools", "gpu_check"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


PROGRAM = load_program()

# What a trainer says; its weights are those of its settings.
TRAINER = r'''#!/usr/bin/env python3
import json, os, struct, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("trainer 0.1.0"); sys.exit(0)
if words == ["doctor"]:
    print("a finding"); sys.exit(1)
settings = dict(w.split("=", 1) for w in words if "=" in w)
if "--print-config" in words:
    print("[train]\ncuda_graphs = \"auto\""); sys.exit(0)
ranks = int(settings.get("mesh.dp", settings.get("mesh.tp", 1)))
if ranks == %(failing_ranks)d:
    print("trainer: rank 3 fell over", file=sys.stderr); sys.exit(1)
folder = settings.get("checkpoint.dir")
if folder:
    os.makedirs(folder + "/step-00000060")
    value = 0.5 + %(ranks_error)g * (ranks - 1)
    header = json.dumps({"w": {"dtype": "F32", "shape": [1],
                               "data_offsets": [0, 4]}}).encode()
    with open(folder + "/step-00000060/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header +
                   struct.pack("<f", value))
gpu = settings["train.device"].startswith("cuda")
print("test accuracy: %%.2f%%%% (loss 0.1)" %% (%(gpu_percent)g if gpu else 97.5))
'''

KERNELS = r'''#!/usr/bin/env python3
import sys
if "--gpus" in sys.argv:
    print(%(gpus)r)
else:
    for peer, ratio in (("library", 0.5), ("library", 2.0), ("torch", 1.5)):
        print('{"bench":"gpu_kernels","case":"c f32 / %%s","ours":1.0,'
              '"peer":1.0,"ratio":%%g}' %% (peer, ratio))
'''

GTEST = r'''#!/usr/bin/env python3
import json, sys
path = [w for w in sys.argv if w.startswith("--gtest_output=json:")]
cases = %(cases)s
if path:
    with open(path[0].split(":", 1)[1], "w") as out:
        json.dump({"testsuites": [{"testsuite": cases}]}, out)
print("the output of the test\nops_test.cc:9: Skipped\nno GPU\n")
sys.exit(%(code)d)
'''

PASSED = {"classname": "Ops", "name": "Add", "result": "COMPLETED"}
NO_GPU = {"classname": "Ops", "name": "Mul", "result": "SKIPPED"}
BROKEN = {"classname": "Ops", "name": "Sub", "result": "COMPLETED",
          "failures": [{"failure": "3 is not 4"}]}

ONE_GPU = "1 devices\ncuda:0, NVIDIA H200, 139.8 GiB\ndriver 13.0"


class Folder:
    """A bundle of made-up programs."""

    def __init__(self, gpus="0 devices: no driver\nversions", tests=None,
                 failing_ranks=0, ranks_error=0.0, gpu_percent=97.0):
        self._temporary = tempfile.TemporaryDirectory()
        self.path = self._temporary.name
        # A toolkit is not looked for: arguments are the program.
        self.write("with_cuda", '#!/bin/bash\n[[ $1 == --where ]] && '
                                '{ echo libcudnn.so.9: here; exit; }\n'
                                '[[ $1 == --unpack ]] && exit\n'
                                'exec "$@"\n')
        self.write("peer_python", "#!/bin/bash\nexit 1\n")
        self.write("VERSION", "0.1.0\n")
        self.write("bin/trainer", TRAINER % {
            "failing_ranks": failing_ranks, "ranks_error": ranks_error,
            "gpu_percent": gpu_percent})
        self.write("bin/gpu_kernels", KERNELS % {"gpus": gpus})
        self.write("bin/gpu_step", KERNELS % {"gpus": gpus})
        for name, (cases, code) in (tests or {}).items():
            self.write("tests/" + name,
                       GTEST % {"cases": repr(cases), "code": code})

    def write(self, name, text):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def check(self, *arguments):
        """(exit code, what is printed, the JSON) of gpu_check."""
        out = os.path.join(self.path, "out.json")
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = PROGRAM.main(["--bundle=" + self.path, "--json=" + out] +
                                list(arguments))
        with open(out, encoding="utf-8") as text:
            return code, printed.getvalue(), json.load(text)

    def bundle(self):
        return bundle.Bundle(self.path)


def states(report, group):
    return {piece["name"]: piece["result"] for piece in report["pieces"]
            if piece["group"] == group}


class WholeCheck(unittest.TestCase):

    def test_without_a_gpu_all_starts_and_is_skipped(self):
        folder = Folder(tests={"ops_gpu_test": ([NO_GPU], 0)})
        code, printed, report = folder.check()
        self.assertEqual(code, 0)
        self.assertIn("0 devices: no driver", printed)
        self.assertEqual(set(states(report, "starts").values()), {OK})
        self.assertEqual(states(report, "tests"), {"ops_gpu_test": SKIPPED})
        self.assertIn("1 skipped: no GPU", printed)
        for group in ("trainings", "sanitizers", "benchmarks"):
            self.assertEqual(states(report, group), {"all": SKIPPED})
        self.assertRegex(printed, r"4 ok, 0 failed, 4 skipped")
        self.assertEqual(report["facts"]["gpus"], [])

    def test_with_a_gpu_every_group_runs(self):
        folder = Folder(ONE_GPU, {"ops_gpu_test": ([PASSED, NO_GPU], 0)})
        code, printed, report = folder.check()
        self.assertEqual(code, 0, printed)
        self.assertIn("NVIDIA H200", printed)
        self.assertEqual(states(report, "tests"), {"ops_gpu_test": OK})
        trained = states(report, "trainings")
        self.assertEqual(set(trained.values()), {OK}, trained)
        self.assertEqual(sorted(trained), [
            "1 rank on one GPU", "2 pieces on one GPU", "2 ranks on one GPU",
            "2 stages on one GPU", "4 ranks again on one GPU",
            "4 ranks on one GPU", "graphs", "lenet digits", "mlp digits"])
        # No PyTorch: the benchmarks run alone.
        self.assertEqual(states(report, "benchmarks"),
                         {"steps": OK, "kernels": OK})
        kernels = [p for p in report["pieces"] if p["name"] == "kernels"][0]
        self.assertEqual(len(kernels["rows"]), 3)
        self.assertEqual(kernels["says"],
                         "3 rows; / library 1.00x, / torch 1.50x")

    def test_sanitizers_run_programs_and_their_findings_fail(self):
        folder = Folder(ONE_GPU, {"probes_gpu_test": ([PASSED], 0)})
        for findings in (0, 9):
            folder.write("sanitizer", "#!/bin/bash\n"
                         "echo \"$@\" >>$(dirname $0)/calls.txt\n"
                         "echo ========= ERROR SUMMARY: %d errors\n"
                         "exit %d\n" % (findings, findings))
            made = folder.bundle()
            results = {piece.name: piece.work(piece.limit_s)
                       for piece in unit_tests.sanitizer_pieces(
                           made, os.path.join(folder.path, "sanitizer"))}
            self.assertEqual(sorted(results), [
                "initcheck trainer", "memcheck probes_gpu_test",
                "memcheck trainer", "racecheck probes_gpu_test"])
            for result in results.values():
                self.assertEqual(result.state, FAILED if findings else OK)
                self.assertEqual(result.words,
                                 "ERROR SUMMARY: %d errors" % findings)
        with open(os.path.join(folder.path, "calls.txt"),
                  encoding="utf-8") as calls:
            first = calls.readline()
        self.assertRegex(first, r"^--tool memcheck --error-exitcode 9 .*"
                                r"tests/probes_gpu_test")

    def test_a_piece_that_fails_stops_nothing_and_is_named_last(self):
        folder = Folder(ONE_GPU, {"a_gpu_test": ([PASSED, BROKEN], 1),
                                  "b_gpu_test": ([PASSED], 0)},
                        failing_ranks=4)
        code, printed, report = folder.check()
        self.assertEqual(code, 1)
        self.assertEqual(states(report, "tests"),
                         {"a_gpu_test": FAILED, "b_gpu_test": OK})
        self.assertIn("FAILED: a_gpu_test: 1 of 2 failed: Ops.Sub", printed)
        self.assertIn("rank 3 fell over", printed)
        self.assertEqual(states(report, "trainings")["2 ranks on one GPU"], OK)
        self.assertEqual(states(report, "benchmarks")["kernels"], OK)
        failed = [p for p in report["pieces"] if p["name"] == "a_gpu_test"][0]
        self.assertIn("the output of the test", failed["output"])

    def test_ranks_that_differ_and_a_gpu_that_learns_less_fail(self):
        code, _, report = Folder(ONE_GPU, ranks_error=1e-3).check(
            "--only=trainings")
        self.assertEqual(code, 1)
        trained = states(report, "trainings")
        self.assertEqual(trained["2 ranks on one GPU"], FAILED)
        self.assertEqual(trained["2 pieces on one GPU"], FAILED)
        self.assertEqual(trained["4 ranks again on one GPU"], OK)
        code, _, report = Folder(ONE_GPU, gpu_percent=90).check(
            "--only=trainings")
        self.assertEqual(code, 1)
        self.assertEqual(states(report, "trainings")["lenet digits"], FAILED)

    def test_what_does_not_fit_the_budget_is_skipped(self):
        folder = Folder(ONE_GPU, {"a_gpu_test": ([PASSED], 0)})
        code, _, report = folder.check("--budget_s=70")
        self.assertEqual(code, 0)
        # Limits up to a minute fit, longer ones do not.
        self.assertEqual(states(report, "tests"), {"a_gpu_test": SKIPPED})
        self.assertEqual(states(report, "trainings")["lenet digits"], OK)
        self.assertEqual(states(report, "benchmarks"),
                         {"steps": SKIPPED, "kernels": SKIPPED})

    def test_arguments_and_folders_that_are_none_are_refused(self):
        for arguments in (["--only=tests,games"], ["--bundle=/"]):
            said = io.StringIO()
            with self.assertRaises(SystemExit) as ended, \
                    redirect_stderr(said):
                PROGRAM.main(["--bundle=" + Folder().path] + arguments)
            self.assertEqual(ended.exception.code, 2)
            self.assertRegex(said.getvalue(), "there is no group games|"
                                              "not what tools/gpu_bundle makes")


class Parts(unittest.TestCase):

    def test_a_program_that_hangs_is_killed_with_its_children(self):
        begin = time.monotonic()
        outcome = bundle.run(["bash", "-c", "echo so far; cat /dev/zero | "
                                            "cat >/dev/null"], limit_s=0.5)
        self.assertTrue(outcome.timed_out)
        self.assertEqual(outcome.out, "so far\n")
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(bundle.complaint(outcome, 0.5), "not done in 0 s")

    def test_a_program_that_does_not_start_is_an_outcome(self):
        outcome = bundle.run(["/nonexistent/program"], limit_s=1)
        self.assertEqual(outcome.code, 127)
        self.assertIn("/nonexistent/program", bundle.complaint(outcome))

    def test_what_a_piece_raises_fails_that_piece_alone(self):
        told = []
        session = Session(100, tell=told.append)
        session.run(Piece("a", "g", 1, lambda limit_s: 1 / 0))
        session.run(Piece("b", "g", 1, lambda limit_s: Result(OK, "well")))
        self.assertEqual([r.state for r in told], [FAILED, OK])
        self.assertIn("ZeroDivisionError", told[0].words)

    def test_no_piece_begins_that_may_outlast_the_budget(self):
        now = [0.0]
        session = Session(100, clock=lambda: now[0])

        def work(limit_s):
            now[0] += limit_s
            return Result(OK, "")
        got = [session.run(Piece("p", "g", limit, work)).state
               for limit in (60, 50, 40, 1)]
        self.assertEqual(got, [OK, SKIPPED, OK, SKIPPED])
        self.assertEqual(now[0], 100)

    def test_a_test_without_json_or_by_a_signal_failed(self):
        ended = bundle.Outcome(0, "", "", False)
        self.assertEqual(unit_tests.judge(ended, None, 9).state, FAILED)
        crashed = bundle.Outcome(-11, "", "", False)
        report = {"testsuites": [{"testsuite": [PASSED]}]}
        self.assertEqual(unit_tests.judge(crashed, report, 9).words,
                         "signal 11: nothing")
        self.assertEqual(unit_tests.judge(ended, report, 9).state, OK)
        self.assertEqual(unit_tests.judge(ended, {}, 9).state, SKIPPED)
        code = bundle.Outcome(1, "", "leaks", False)
        self.assertEqual(unit_tests.judge(code, report, 9).state, FAILED)

    def test_shards_of_a_test_are_one_result(self):
        ok = Result(OK, "2 passed", passed=2, failed=0, skipped=1)
        empty = Result(SKIPPED, "it has no case here", passed=0)
        bad = Result(FAILED, "1 of 3 failed: A.B", output="why", passed=2,
                     failed=1, skipped=0)
        both = unit_tests.merged([ok, ok, empty])
        self.assertEqual((both.state, both.words),
                         (OK, "4 passed, 2 skipped, in 3 shards"))
        self.assertEqual(unit_tests.merged([empty, empty]).state, SKIPPED)
        failed = unit_tests.merged([ok, bad])
        self.assertEqual((failed.state, failed.words, failed.details["output"]),
                         (FAILED, "1 of 2 shards failed; one: 1 of 3 failed: "
                          "A.B", "why"))
        self.assertIs(unit_tests.merged([bad]), bad)

    def test_accuracy_is_the_last_line_of_it(self):
        self.assertEqual(trainings.accuracy_of(
            "after step 9: test loss 1, accuracy 3.00%\n"
            "test accuracy after step 60: 98.25% (loss 0.1)\n"), 98.25)
        with self.assertRaises(trainings.Failure):
            trainings.accuracy_of("done")

    def test_differences_of_weights(self):
        self.assertEqual(trainings.difference({"w": [1.0]}, {"w": [1.0]}), 0)
        self.assertEqual(trainings.difference({"w": [1.0, 2.0]},
                                              {"w": [1.5, 2.0]}), 0.5)
        for other in ({"v": [1.0]}, {"w": [1.0, 2.0]}, {"w": [math.nan]}):
            self.assertEqual(trainings.difference({"w": [1.0]}, other),
                             math.inf)

    def test_rows_among_other_lines(self):
        rows = benchmarks.rows_of(
            'warning\n{"case":"a / torch eager","ours":1,"ratio":4}\n'
            '{"case":"b / torch eager","ours":1,"ratio":null}\n[1]\n{"x":1}\n')
        self.assertEqual(len(rows), 2)
        self.assertEqual(benchmarks.says(rows), "2 rows; / torch eager 4.00x")
        self.assertEqual(benchmarks.says([]), "0 rows")


class RealTrainer(unittest.TestCase):
    """What is read from the trainer is what it writes."""

    def test_accuracy_and_weights(self):
        folder = Folder()
        os.remove(os.path.join(folder.path, "bin/trainer"))
        os.symlink(os.path.abspath("tools/trainer"),
                   os.path.join(folder.path, "bin/trainer"))
        made = folder.bundle()
        settings = ["model.kind=linear", "data.kind=glyphs",
                    "data.train_count=256", "data.test_count=64",
                    "train.steps=4", "train.device=cpu:0"]
        text = trainings.train(made, settings, 60, "one")
        self.assertLessEqual(trainings.accuracy_of(text), 100)
        trainings.train(made, settings + ["mesh.dp=2"], 60, "two")
        one, two = (trainings.weights(made, name) for name in ("one", "two"))
        self.assertLess(trainings.difference(one, two),
                        trainings.RANKS_DIFFERENCE_MAX)
        self.assertTrue(re.fullmatch(r"\w+\.cuda_graphs",
                                     trainings.graphs_key(made) or
                                     "none.cuda_graphs"))
        with self.assertRaisesRegex(trainings.Failure, "train.no_such"):
            trainings.train(made, ["train.no_such=1"], 60)


if __name__ == "__main__":
    unittest.main()
