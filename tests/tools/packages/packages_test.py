"""The tree needs no Debian package that no list brings; and the pieces of that
check, on small inputs with a planted gap.

    packages_test.py ROOT
"""

import os
import sys
import tempfile
import unittest

import compiled_needs
import debian
import tree_needs
from check_packages import MAY_BE_ABSENT, OTHER_LISTS, PACKAGES, SANITIZERS
from check_packages import Checker, Tree
from shell_commands import Script

ROOT = ""  # of the tree, from the command line
CLANG_HEADERS = "libomp-14-dev"  # has omp.h

STATUS = """\
app	installed	no	optional	dpkg	libone (>= 2), editor | pen, mail-agent	
base	installed	yes	optional			
dpkg	installed	no	required		base	
editor	not-installed	no	optional			
extra	installed	no	optional		libone, pen | pencil	mail-agent (= 1)
libone	installed	no	optional		libtwo:any	
libtwo	installed	no	optional			
pencil	installed	no	optional			
postman	installed	no	optional			mail-agent
pen	installed	no	optional			
"""


class ClosureTest(unittest.TestCase):

    def setUp(self):
        self.packages = debian.Debian(STATUS)

    def test_of_nothing_is_what_every_debian_has(self):
        self.assertEqual(self.packages.closure([]), {"base", "dpkg"})

    def test_follows_dependencies_alternatives_and_provided_names(self):
        self.assertEqual(
            self.packages.closure(["app", "postman", "unheard-of"]),
            {"app", "base", "dpkg", "libone", "libtwo", "postman", "pen"})

    def test_takes_the_first_alternative_unless_another_is_brought_anyway(self):
        self.assertIn("pen", self.packages.closure(["extra"]))
        self.assertNotIn("pen", self.packages.closure(["extra", "pencil"]))

    def test_owners(self):
        owners = debian.owners(["/bin/bash", "/usr/bin/bash", "/usr/bin/[",
                                "/nobody/has/this"])
        self.assertEqual(owners, {
            "/bin/bash": {"bash"}, "/usr/bin/bash": {"bash"},
            "/usr/bin/[": {"coreutils"}, "/nobody/has/this": set()})


class ScriptTest(unittest.TestCase):

    def commands(self, text, wrappers=()):
        return " ".join(sorted(Script(text, wrappers).commands))

    def test_simple_commands(self):
        for text, commands in {
                "a b; c & d && e || f | g\nh": "a c d e f g h",
                "# x\na # y\n": "a",
                "A=1 B=$(b) a": "a b",
                "a >b 2>&1 <c &>d; 2>x e": "a e",
                "a 'b; c' \"d; $(e f)\" `g`": "a e g",
                "a ${b:-$(c)} $((d + $(e)))": "a c e",
                "a=(b $(c)\n  d) e": "c e",
                "a \\\n  b": "a",
                "\"$a\" b; $c d": "",
                "a < <(b c) > >(d)": "a b d",
                "/sbin/a; ./b; c/d": "/sbin/a",
        }.items():
            with self.subTest(text):
                self.assertEqual(self.commands(text), commands)

    def test_the_language(self):
        for text, commands in {
                "if a; then b; elif ! c; then d; else e; fi": "a b c d e",
                "while a; do b; done <c | d": "a b d",
                "[[ $a =~ b$ ]]; c \"d$\"; e": "c e",
                "for x in a $(b); do c; done": "b c",
                "for ((i = 0; i < 9; ++i)); do a; done": "a",
                "case $(a) in\n  b | c) d ;;\n  (e) f; g\nesac; h": "a d f g h",
                "[[ a == b || $(c) =~ ^(d|e)$ ]] && f": "c f",
                "((a > b)) || c": "c",
                "(a; b)\n{ c; }": "a b c",
                "a <<X; b\nc\nX\nd": "a b d",
                "a <<'X' <<-Y\nb\nX\nc\n\tY\nd": "a d",
                "a <<<b; c": "a c",
        }.items():
            with self.subTest(text):
                self.assertEqual(self.commands(text), commands)

    def test_functions_and_what_runs_its_arguments(self):
        script = Script("""
f() {
  local x
  "$@" >log || g
}
h() ( i )
f a b
""")
        self.assertEqual(script.functions, {"f", "h"})
        self.assertEqual(script.wrappers, {"f"})
        self.assertEqual(set(script.commands), {"local", "g", "i", "f", "a"})
        self.assertEqual(script.commands["a"], 7)
        self.assertEqual(self.commands("f a b", wrappers=["f"]), "a f")

    def test_wrappers(self):
        for text, commands in {
                "env -i A=b timeout 5s a b": "a env timeout",
                "unshare --mount $user a": "a unshare",
                "timeout 5 \"$a\" b": "timeout",
                "exec {x}<y; command -v a": "a command exec",
                "find . -name x -exec a {} +": "a find",
                "x | xargs -0 a": "a x xargs",
                "bash -c 'a; b' c; trap 'd' EXIT": "a b bash d trap",
        }.items():
            with self.subTest(text):
                self.assertEqual(self.commands(text), commands)


class TreeTestCase(unittest.TestCase):

    def tree(self, **files):
        """The files of a tree; a_sh="..." is the file a.sh."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        paths = [name.replace("_", ".") for name in files]
        for path, text in zip(paths, files.values()):
            with open(os.path.join(folder.name, path), "w",
                      encoding="utf-8") as out:
                out.write(text)
        return tree_needs.read_tree(folder.name, paths)

    def needs(self, kind, **files):
        return sorted("%s %s" % (need.where, need.name)
                      for need in tree_needs.read_needs(self.tree(**files))
                      if need.kind == kind)


class NeedsTest(TreeTestCase):

    def test_scripts(self):
        self.assertEqual(
            self.needs("program", a_sh="echo x\nf() { sed; }\n",
                       b_sh="f\ngrep y\n"), ["a.sh:2 sed", "b.sh:2 grep"])

    def test_python(self):
        text = """\
import os.path, json
from subprocess import run
run(["mount", "-t"], check=True)
shutil.which("gdb")
run(["a b", "c"])
"""
        self.assertEqual(self.needs("program", a_py=text),
                         ["a.py:3 mount", "a.py:4 gdb"])
        self.assertEqual(self.needs("module", a_py=text, b_sh="python3 -m pip"),
                         ["a.py:1 json", "a.py:1 os.path", "a.py:2 subprocess",
                          "b.sh:1 pip"])

    def test_build_files(self):
        self.assertEqual(self.needs("program", a_bzl="""
script = '"$@" && touch "$DONE"'
run(command = script)
genrule(cmd = "sed s/x/$$(cat $(location y))/ <$< | " +
              "sort >%s" % out)
"""), ["a.bzl:2 touch", "a.bzl:4 cat", "a.bzl:4 sed", "a.bzl:4 sort"])

    def test_cpp(self):
        start = 'popen("timeout 9 tool x", "r"); Run({"ip", "-4"});'
        self.assertEqual(self.needs("program", a_cc=start, b_cc='F("ip");'),
                         ["a.cc:1 ip", "a.cc:1 timeout", "a.cc:1 tool"])
        self.assertEqual(
            self.needs("program", a_cc=start, b_cc='#include "a.h"\nF("tc");'),
            ["a.cc:1 ip", "a.cc:1 timeout", "a.cc:1 tool", "b.cc:2 tc"])

    def test_paths(self):
        self.assertEqual(self.needs(
            "path", a_sh="#!/bin/bash\n[[ -e /usr/share/dict ]]\n",
            b_cc='Open("/etc/hosts");'),
            ["a.sh:1 /bin/bash", "a.sh:2 /usr/share/dict", "b.cc:1 /etc/hosts"])


class CompiledNeedsTest(TreeTestCase):

    def test_includes(self):
        files = self.tree(a_h='#include <zlib.h>\n#include "absl/x.h"\n',
                          b_cc='#include "base/y.h"\n#include "own.h"\n'
                               '#include <cuda_runtime.h>\n',
                          c_cu="#include <z.h>\n")
        self.assertEqual(compiled_needs.system_includes(files, {"base"}),
                         {"zlib.h": "a.h:1", "absl/x.h": "a.h:2"})

    def test_libraries(self):
        files = self.tree(a_bzl='linkopts = [\n "-lz",\n "-l:libx.a", "-lz"]')
        self.assertEqual(compiled_needs.linked_libraries(files),
                         {"-lz": "a.bzl:2", "-l:libx.a": "a.bzl:3"})

    def test_configurations(self):
        self.assertEqual(compiled_needs.linked_by_configurations("""
build:one --copt=-O1 --linkopt=-fsanitize=address
build:two --repo_env=CC=clang
build:two --linkopt=-fsanitize=address,undefined --linkopt=-lx
test:two --linkopt=-ly
"""), {"g++": [["-fsanitize=address"]],
       "clang++": [["-fsanitize=address,undefined", "-lx"]]})

    def test_gxx(self):
        compiler = compiled_needs.Compiler("g++")
        missing, read = compiler.headers(["stdio.h", "no/such.h"])
        self.assertEqual(missing, ["no/such.h"])
        self.assertIn("/usr/include/stdio.h", read)
        missing, found = compiler.libraries(["-lm", "-lnosuch"])
        self.assertEqual(missing, ["-lnosuch"])
        self.assertIn("libm.so", [os.path.basename(path) for path in found])


class WholeTreeTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.packages = debian.Debian(debian.run_dpkg_query())
        cls.tree = Tree(ROOT)

    def checker(self, without=None):
        """A checker of the real tree with a copy of the lists that lacks a
        package."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in (PACKAGES, *OTHER_LISTS):
            packages = debian.read_list(os.path.join(ROOT, "tools/lib", name))
            with open(os.path.join(folder.name, name), "w",
                      encoding="utf-8") as out:
                out.writelines(package + "\n" for package in packages
                               if package != without)
        return Checker(self.tree, folder.name, self.packages)

    def test_needs_no_package_that_no_list_brings(self):
        checker = self.checker()
        findings = checker.check()
        for note in checker.notes:
            print("note: " + note)
        self.assertEqual(findings, [])

    def test_finds_a_header_that_no_list_brings(self):
        checker = self.checker(without=CLANG_HEADERS)
        checker.check_clang()
        if checker.notes:
            self.skipTest(checker.notes[0])
        if not self.packages.is_installed(CLANG_HEADERS):
            self.skipTest("%s is not installed" % CLANG_HEADERS)
        finding, = checker.findings
        self.assertRegex(
            finding, r"^nn/kernels/cpu/onednn\.cc:\d+: clang\+\+ reads .*/omp\.h, "
            "of %s, which no list brings; add %s to tools/lib/%s$" % (
                CLANG_HEADERS, CLANG_HEADERS, SANITIZERS))

    def test_finds_a_library_that_no_list_brings(self):
        checker = self.checker(without="libspng-dev")
        checker.check_gxx()
        self.assertIn("libspng-dev, which no list brings",
                      "\n".join(checker.findings))

    def test_finds_a_program_that_no_list_brings(self):
        checker = self.checker(without="iproute2")
        checker.check_runs()
        self.assertIn("of iproute2, which no list brings",
                      "\n".join(checker.findings))

    # A reader that lost its way in a script would miss what stands behind.
    def test_every_function_of_every_script_was_seen(self):
        for file, script in tree_needs.shell_scripts(self.tree.files):
            for line in file.text.splitlines():
                name, called, _ = line.partition("() {")
                if called and name.isidentifier():
                    self.assertIn(name, script.functions, file.path)

    def test_reasons_of_what_may_be_absent_are_sentences(self):
        for name, reason in MAY_BE_ABSENT.items():
            self.assertGreater(len(reason.split()), 3, name)


if __name__ == "__main__":
    ROOT = sys.argv.pop(1)
    unittest.main()
