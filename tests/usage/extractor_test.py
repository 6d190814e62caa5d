"""Tests usage.py on small headers with planted mistakes: a compiler must report
each of them in the extracted source, and nothing for correct headers."""

import os
import subprocess
import tempfile
import unittest

import usage

HEADER = """\
// Adds numbers.
//
%s
//
// Threads: any number.

#ifndef NN_ADD_H_
#define NN_ADD_H_

namespace troupe::nn {

//   kInvalidArgument: none of this is code.
int Add(int a, int b);

%s
class Adder {
 public:
  virtual ~Adder() = default;
  virtual int Add(int a, int b) = 0;
};

}  // namespace troupe::nn

#endif  // NN_ADD_H_
"""
WORDS = """\
namespace troupe::nn::usage::add_h {
extern const int apples;
}
"""


def header(top="int three = Add(1, 2);", over_class=""):
    """Returns a header with these lines of code in its comments."""
    def code(text):
        return "\n".join(("//   " + line).rstrip() for line in text.split("\n"))
    return HEADER % (code(top), "// Adds.\n//\n" + code(over_class))


class ExtractorTest(unittest.TestCase):

    def errors(self, text):
        """Returns the compiler's messages about the usage in nn/add.h."""
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "nn"))
            for path, content in (("nn/add.h", text), ("words.h", WORDS)):
                with open(os.path.join(root, path), "w") as file:
                    file.write(content)
            source = usage.source_of([usage.Folder(
                "nn", {"nn/add.h": text.splitlines()}, "words.h",
                WORDS.splitlines())])
            with open(os.path.join(root, "usage.cc"), "w") as file:
                file.write(source)
            return subprocess.run(
                ["g++", "-std=c++17", "-c", "-w", "-I.", "usage.cc"],
                cwd=root, stderr=subprocess.PIPE, text=True).stderr

    def test_what_is_right_compiles(self):
        for top in (
            "int three = Add(1, 2);",
            "int sum = Add(apples, 2);          // a word of the reader's",
            "if (Add(1, 2) != 3) return 3;\nreturn \"three\";",
            "int a = 1;\n\nint b = Add(a, 2);",
            "class Sum : public Adder {\n"
            " public:\n"
            "  int Add(int a, int b) override { return a + b; }\n"
            "  template <typename T> T Twice(T a) { return a + a; }\n"
            "};\n"
            "Sum sum;\n"
            "sum.Add(1, 2);",
            "int Twice(int a, int b) {\n"
            "  return Add(a, b) + Add(a, b);\n"
            "}\n"
            "Twice(1, 2);",
            "auto add = [](int a) {\n"
            "  return Add(a, 1);\n"
            "};\n"
            "add(1);",
        ):
            self.assertEqual(self.errors(header(top)), "", top)

    def test_what_is_wrong_does_not(self):
        for top in (
            "int three = Ad(1, 2);",                  # no such function
            "int three = Add(1);",                    # an argument is missing
            "int sum = Add(pears, 2);",               # not declared
            "int three = Add(1, 2)",                  # half a statement
            "int three = Add(1,\n2);  // one and\ntwo",    # wrapped
            "... add numbers ...",                    # prose
            "int a = ...;",
            "class Sum : public Adder {};\nSum sum;",    # abstract
            "template <typename T> int Size(T a) { return a.size(); }\n"
            "Size(1);",                               # no such member
        ):
            self.assertIn("nn/add.h:3:", self.errors(header(top))
                          .replace("nn/add.h:4:", "nn/add.h:3:")
                          .replace("nn/add.h:5:", "nn/add.h:3:"), top)

    def test_comments_over_classes_are_read(self):
        self.assertEqual(self.errors(header(over_class="Add(1, 2);")), "")
        self.assertIn("nn/add.h:17:",
                      self.errors(header(over_class="Ad(1, 2);")))

    def test_a_picture_is_no_code(self):
        picture = "  F0 B0 F1 B1\n  ^  a forward"
        self.assertEqual(
            usage.blocks_of("add.h", header(picture).splitlines()), [])
        self.assertEqual(self.errors(header(picture)), "")

    def test_text_between_ends_a_block(self):
        text = header("int a = 1;").replace(
            "// Threads: any number.", "// And:\n//\n//   int a = 2;")
        blocks = usage.blocks_of("add.h", text.splitlines())
        self.assertEqual([(b.number, b.lines) for b in blocks],
                         [(3, ["int a = 1;"]), (7, ["int a = 2;"])])
        self.assertEqual(self.errors(text), "")

    def test_a_header_may_be_included_by_its_usage(self):
        text = header('#define NAME Sum\n#include "nn/add.h"')
        source = usage.source_of(
            [usage.Folder("nn", {"nn/add.h": text.splitlines()})])
        self.assertEqual(source.count('#include "nn/add.h"'), 1)
        self.assertEqual(self.errors(text), "")


# Words of two folders that have a header of the same name in one namespace, and
# declare one name with two types.
FOLDER_WORDS = """\
#ifndef %(guard)s
#define %(guard)s

#include "report.h"

namespace troupe::nn::usage {
extern const %(type)s apples;
namespace add_h {
extern Report report;
}
}  // namespace troupe::nn::usage

#endif  // %(guard)s
"""
# Has a member with the name of the namespace that words are in.
REPORT = """\
#pragma once
struct Report { int usage; };
"""


class FoldersTest(unittest.TestCase):
    """Two folders in one source."""

    def errors(self, in_nn, in_ops):
        """Returns the compiler's messages about nn/add.h and nn/ops/add.h, which
        show these lines."""
        ops = header(in_ops).replace("NN_ADD_H_", "NN_OPS_ADD_H_").replace(
            "int Add(int a, int b);\n\n", "double Add(double a, const char* b);\n\n"
        ).replace("class Adder", "class TextAdder").replace("~Adder", "~TextAdder")
        files = {
            "nn/add.h": header(in_nn),
            "nn/ops/add.h": ops,
            "words/nn.h": FOLDER_WORDS % {"guard": "NN", "type": "int"},
            "words/nn_ops.h": FOLDER_WORDS % {"guard": "OPS",
                                              "type": "char* const"},
            "report.h": REPORT,
        }
        with tempfile.TemporaryDirectory() as root:
            for path, content in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w") as file:
                    file.write(content)
            source = subprocess.run(
                ["python3", os.path.abspath(usage.__file__), "source",
                 "--folder=nn", "--words=words/nn.h", "nn/add.h",
                 "--folder=nn_ops", "--words=words/nn_ops.h", "nn/ops/add.h"],
                cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout
            return subprocess.run(
                ["g++", "-std=c++17", "-fsyntax-only", "-w", "-I.", "-xc++", "-"],
                cwd=root, input=source, stderr=subprocess.PIPE, text=True).stderr

    def test_each_has_its_own_words(self):
        self.assertEqual(
            self.errors("int usage = report.usage;\nint sum = Add(apples, usage);",
                        "double sum = Add(report.usage, apples);"), "")

    def test_a_mistake_is_named_by_its_header(self):
        # A number in nn is a text in nn/ops, and the other way around.
        self.assertIn("nn/add.h:4:",
                      self.errors("int a = 1;\nint* b = &apples[a];", ""))
        errors = self.errors("", "int a = 1;\nint sum = apples - a;")
        self.assertIn("nn/ops/add.h:4:", errors)
        self.assertNotIn("nn/add.h:", errors)


PAGE = """\
# Adding

Text with `code`.

```cpp
%s
```

```sh
add 1 2
```
"""


class PageTest(unittest.TestCase):

    def errors(self, *codes):
        """Returns the compiler's messages about pages with these blocks."""
        source = usage.source_of([usage.Folder(
            "pages", {"docs/add%d.md" % i: (PAGE % code).splitlines()
                      for i, code in enumerate(codes)})])
        return subprocess.run(
            ["g++", "-std=c++17", "-fsyntax-only", "-w", "-xc++", "-"],
            input=source, stderr=subprocess.PIPE, text=True).stderr

    def test_what_is_right_compiles(self):
        self.assertEqual(self.errors(
            "int a = 1;\nreturn a;",
            "int Twice(int a,\n          int b) {\n  return a + b;\n}",
            "#include <vector>\n\nint main() {\n  std::vector<int> a;\n}"), "")

    def test_what_is_wrong_does_not(self):
        for code in ("int a = b;", "Twice(1, 2);", "int a = ...;",
                     "int main() {\n  std::vector<int> a;\n}"):
            self.assertIn("docs/add1.md:", self.errors("int a = 1;", code), code)

    def test_the_program_of_a_page_is_its_main(self):
        page = (PAGE % "int a = 1;") + (PAGE % "#include <x>\nint main() {\n}")
        self.assertEqual(usage.program_of(page.splitlines()),
                         "#include <x>\nint main() {\n}\n")
        two = page + PAGE % "int main() {\n}"
        self.assertEqual(usage.program_of(two.splitlines(), 2),
                         "int main() {\n}\n")
        with self.assertRaises(ValueError):
            usage.program_of((PAGE % "int a = 1;").splitlines())


class MissingTest(unittest.TestCase):

    def missing(self, compiled, excused=()):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("nn/add.h", header()),
                               ("nn/plain.h", "// Shows nothing.\n"),
                               ("tests/nn/util.h", header())):
                os.makedirs(os.path.join(root, os.path.dirname(path)),
                            exist_ok=True)
                with open(os.path.join(root, path), "w") as file:
                    file.write(text)
            return usage.missing(root, compiled, excused)

    def test_a_forgotten_header_is_named(self):
        self.assertEqual(self.missing(["nn/add.h", "nn/plain.h"]), [])
        self.assertEqual(self.missing([], ["nn/add.h"]), [])
        self.assertEqual([line.split(":")[0] for line in self.missing([])],
                         ["nn/add.h"])

    def test_a_forgotten_page_is_named(self):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "docs"))
            for path, text in (("README.md", PAGE), ("docs/add.md", PAGE),
                               ("docs/prose.md", "# Prose\n")):
                with open(os.path.join(root, path), "w") as file:
                    file.write(text)
            self.assertEqual([line.split(":")[0] for line in
                              usage.missing(root, ["README.md"])],
                             ["docs/add.md"])

    def test_the_list_of_others_only_shrinks(self):
        for listed in ("nn/plain.h", "nn/gone.h"):
            self.assertEqual(
                [line.split(":")[0]
                 for line in self.missing(["nn/add.h"], [listed])], [listed])


if __name__ == "__main__":
    unittest.main()
