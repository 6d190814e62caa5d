"""Chains of headers: which there are, and that a compile of one finds what each of its
headers lacks, as a compile of that header alone does."""

import os
import subprocess
import tempfile
import unittest

import headers_alone


def guarded(name, text):
    return "#ifndef %s\n#define %s\n%s\n#endif\n" % (name, name, text)


class ChainsTest(unittest.TestCase):

    def chains(self, direct, headers=None):
        return sorted(headers_alone.chains(
            headers or sorted(direct), headers_alone.closure(direct)))

    def test_each_header_includes_the_one_before_it(self):
        self.assertEqual(self.chains({"a": [], "b": []}), [["a"], ["b"]])
        self.assertEqual(self.chains({"c": ["b"], "b": ["a"], "a": []}),
                         [["a", "b", "c"]])
        # By way of a header that is not compiled here.
        self.assertEqual(self.chains({"c": ["b"], "b": ["a"], "a": []}, ["a", "c"]),
                         [["a", "c"]])

    def test_chains_are_few(self):
        # Whoever gives "a" to "c" first has three chains.
        self.assertEqual(self.chains({"a": [], "b": [], "c": ["a", "b"], "d": ["a"]}),
                         [["a", "d"], ["b", "c"]])

    def test_what_a_macro_decides_is_no_include(self):
        text = guarded("A_H_", '#include "b.h"\n#include <c.h>\n#if X\n'
                       '#include "d.h"\n#endif\n  #  include "e.h"  // Why.')
        self.assertEqual(headers_alone.included_by(text), ["b.h", "e.h"])


class CompileTest(unittest.TestCase):

    def check(self, files, declared, own=("a.h", "b.h"), **env):
        """Returns (whether they pass, number of compiles, what was said)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            with open(os.path.join(folder, "declared"), "w") as file:
                file.write("".join(name + "\n" for name in declared))
            # Counts, and compiles.
            script = os.path.join(folder, "compiler")
            with open(script, "w") as file:
                file.write('#!/bin/bash\necho >>compiles\nexec g++ -iquote. "$@"\n')
            os.chmod(script, 0o755)
            done = subprocess.run(
                ["python3", headers_alone.__file__, "declared", *own, "--check",
                 *own, "--", "./compiler"],
                cwd=folder, stderr=subprocess.PIPE, text=True,
                env=dict(os.environ, DONE="done", TARGET="//nn:add", **env))
            with open(os.path.join(folder, "compiles")) as file:
                return done.returncode == 0, len(file.readlines()), done.stderr

    FILES = {"a.h": guarded("A_H_", "struct A {};"),
             "b.h": guarded("B_H_", '#include "a.h"\nstruct B { A a; };'),
             "c.h": guarded("C_H_", "struct C {};")}

    def test_a_chain_is_one_compile(self):
        self.assertEqual(self.check(self.FILES, []), (True, 1, ""))

    def test_the_first_and_the_last_of_a_chain_may_lack_something(self):
        for name, text in (("a.h", "struct A { C c; };"),
                           ("b.h", '#include "a.h"\nstruct B { A a; C c; };')):
            files = dict(self.FILES, **{name: guarded(name[0], text)})
            passes, _, said = self.check(files, ["c.h"])
            self.assertFalse(passes)
            self.assertIn("%s:" % name, said)
            self.assertIn("//nn:add: alone", said)

    def test_headers_that_do_not_include_each_other_hide_nothing(self):
        files = dict(self.FILES, **{"b.h": guarded("B_H_", "struct B { A a; };")})
        passes, compiles, said = self.check(files, [])
        self.assertEqual((passes, compiles), (False, 2))
        self.assertIn("b.h:", said)

    def test_what_is_not_declared_is_named(self):
        files = dict(self.FILES, **{
            "b.h": guarded("B_H_", '#include "a.h"\n#include "c.h"\nC c;')})
        self.assertTrue(self.check(files, ["c.h"])[0])
        passes, _, said = self.check(files, [])
        self.assertFalse(passes)
        self.assertIn("a.h or b.h includes what the deps do not declare: c.h", said)

    def test_what_must_fail_fails(self):
        alone = guarded("B_H_", "struct B { A a; };")
        for header, fails in ((alone, False), (self.FILES["b.h"], True)):
            files = dict(self.FILES, **{"b.h": header})
            self.assertEqual(
                self.check(files, ["a.h"], own=("b.h",), MUST_FAIL="1")[0], not fails)


if __name__ == "__main__":
    unittest.main()
