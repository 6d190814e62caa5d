"""A small tree with planted violations: check_style.py must find each of them,
and must find nothing in a clean tree."""

import os
import tempfile
import unittest

import check_style
import rooms

CLEAN_HEADER = """\
// Adds numbers.
//
//   int three = Add(1, 2);

#ifndef NN_ADD_H_
#define NN_ADD_H_

int Add(int a, int b);

#endif  // NN_ADD_H_
"""

OWN = '#include "nn/add.h"\n'

CLEAN = {
    "nn/BUILD": 'cc_library(srcs = ["add.cc"], hdrs = ["add.h"])\n',
    "nn/README.md": "Numbers. See [the header](add.h).\n",
    "nn/add.h": CLEAN_HEADER,
    "nn/add.cc": OWN,
}


def merge_macro():
    """Files of a tree that has the macro of third_party/merge."""
    path = "third_party/merge/defs.bzl"
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(os.path.join(root, path), encoding="utf-8") as macro:
        return {"third_party/README.md": "", path: macro.read()}


def in_a_tree(files, act):
    """act(root) where `root` holds files, {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as out:
                out.write(text)
        return act(root)


class CheckStyleTest(unittest.TestCase):

    def expect(self, files, *report):
        """The report on the clean tree with files changed or added."""
        self.assertEqual(in_a_tree({**CLEAN, **files}, check_style.check),
                         list(report))

    def expect_in_source(self, line, finding, path="nn/add.cc"):
        """`line`, added to nn/add.cc, gives `finding` there."""
        self.expect({path: '#include "nn/add.h"\n' + line + "\n"},
                    "%s:2: %s" % (path, finding))

    def test_clean_tree(self):
        self.expect({})

    def test_links_of_a_deleted_build(self):
        def check(root):
            for name in ["bazel-bin", "bazel-out"]:
                os.symlink("deleted/outputs", os.path.join(root, name))
            return check_style.check(root)
        self.assertEqual(in_a_tree(CLEAN, check), [])

    def test_usage_lines(self):
        def header(*usage):
            return CLEAN_HEADER.replace("//   int three = Add(1, 2);",
                                        "\n".join(usage))
        # The comment went over the line's end.
        self.expect({"nn/add.h": header("//   Add(1, 2);  // (1, 2) -> (1 +",
                                        "//   2)")},
                    "nn/add.h:4: usage: nothing opens this ')'; write code "
                    "that compiles")
        self.expect({"nn/add.h": header("//   Add(1,")},
                    "nn/add.h:3: usage: this bracket is never closed; write "
                    "code that compiles")
        self.expect({"nn/add.h": header("//   Add(/*a=*/1,",
                                        "//       2);     // (")})

    def test_sleep(self):
        for call in ("this_thread::sleep_for", "absl::SleepFor", "sleep",
                     "usleep"):
            self.expect_in_source(
                "%s(x);" % call,
                "%s (sleep); wait for the event itself, with a deadline"
                % call.split(":")[-1])

    def test_random(self):
        for name in ("std::rand", "std::random_device", "std::shuffle",
                     "std::uniform_int_distribution"):
            self.expect_in_source(
                name + " x;", name + " (random); use nn/random: the same "
                "numbers on every machine")

    def test_clock(self):
        self.expect_in_source(
            "auto t = system_clock::now();",
            "system_clock::now (clock); take the clock through the constructor")

    def test_words_in_comments_and_strings_are_fine(self):
        self.expect({"nn/add.cc": OWN + '// never calls sleep_for(\n'
                                  'const char* s = "std::shuffle";\n'})

    def test_caf(self):
        self.expect_in_source(
            "#include <caf/actor.hpp>",
            "#include <caf/ (caf); actors live in actors/; use absl::Status "
            "and plain data")
        self.expect(
            {"tools/README.md": "", "tools/BUILD": '"main.cc"',
             "tools/main.cc": "#include <caf/actor.hpp>\n"},
            "tools/main.cc:1: #include <caf/ (caf); actors live in actors/; "
            "use absl::Status and plain data")
        self.expect(
            {"actors/README.md": "", "actors/BUILD": '"job.cc"',
             "actors/job.cc": "#include <caf/actor.hpp>\n"
                               "#include <caf/io/all.hpp>\n"},
            "actors/job.cc:2: caf/io/all.hpp (caf-all); include the headers "
            "that are used: this one costs 4 s")

    def test_include_guard(self):
        self.expect(
            {"nn/add.h": CLEAN_HEADER.replace("NN_ADD_H_", "ADD_H")},
            "nn/add.h:10: last line; make it '#endif  // NN_ADD_H_'",
            "nn/add.h:1: include guard; add '#define NN_ADD_H_'",
            "nn/add.h:1: include guard; add '#ifndef NN_ADD_H_'")

    def test_own_header_first(self):
        self.expect(
            {"nn/add.cc": '#include <vector>\n\n#include "nn/add.h"\n'},
            "nn/add.cc:1: own header; begin with '#include \"nn/add.h\"'")

    def test_layering(self):
        self.expect_in_source('#include "comm/group.h"',
                              "nn/ may not include comm/group.h; it may use "
                              "nn/, base/")
        self.expect(
            {"data/README.md": "", "data/BUILD": '"reader.cc"',
             "data/reader.cc": '#include "nn/tensor/tensor.h"\n'
                               '#include "nn/random/philox.h"\n'
                               '#include "nn/modules/linear.h"\n'},
            "data/reader.cc:3: data/ may not include nn/modules/linear.h; it "
            "may use data/, nn/tensor/, nn/random/, base/")

    def test_rooms(self):
        def actors(path, line):
            folder = os.path.dirname(path)
            return {"actors/README.md": "",
                    folder + "/BUILD": '"%s"' % os.path.basename(path),
                    path: line + "\n"}
        self.expect(actors("actors/spec/a.cc",
                           '#include "actors/tracing/trace.h"\n'
                           '#include "actors/spec/job_spec.h"\n'
                           '#include "actors/setup/resume.h"'),
                    "actors/spec/a.cc:3: spec of actors/ may not include "
                    "actors/setup/resume.h; it may use tracing")
        self.expect(actors("actors/caf/a.cc", '#include "actors/job.h"'),
                    "actors/caf/a.cc:1: caf of actors/ may not include "
                    "actors/job.h; it may use no other room")
        self.expect(actors("actors/a.cc", '#include "actors/sim/simulation.h"'),
                    "actors/a.cc:1: front of actors/ may not include "
                    "actors/sim/simulation.h; it may use caf, spec, setup, "
                    "protocol, supervision, cluster")
        self.expect(actors("actors/attic/a.cc", ""),
                    "actors/attic/a.cc:1: actors/attic/ is no room of rooms.py; "
                    "add it, with what it uses")

    def test_rooms_of_a_folder_further_down(self):
        cuda = "nn/kernels/cuda/"
        path = cuda + "device/no_cuda/a.cc"
        self.expect({cuda + "README.md": "",
                     cuda + "device/no_cuda/BUILD": '"a.cc"',
                     path: '#include "nn/kernels/cuda/kernel_parts/reduce.h"\n'
                           '#include "nn/kernels/cuda/libraries/conv.h"\n'},
                    path + ":2: device of nn/kernels/cuda/ may not include "
                    "nn/kernels/cuda/libraries/conv.h; it may use kernel_parts")

    def test_every_room_stands_above_those_that_use_it(self):
        for table in rooms.ROOMS.values():
            above = set()
            for room, uses in table.items():
                self.assertLessEqual(set(uses), above, room)
                above.add(room)

    def test_a_room_within_a_room(self):
        step = "actors/chunks/step/"
        self.expect({"actors/README.md": "", step + "BUILD": '"a.cc"',
                     step + "a.cc": '#include "actors/chunks/chunk.h"'},
                    step + "a.cc:1: step of actors/chunks/ may not include "
                    "actors/chunks/chunk.h; it may use no other room")

    def test_size_of_a_room(self):
        def sources(number):  # and add.h with add.cc, which the tree has
            names = ["f%d.cc" % n for n in range(number)]
            return {"nn/BUILD": " ".join('"%s"' % name for name in
                                         names + ["add.h", "add.cc"]),
                    **{"nn/" + name: "" for name in names}}
        self.expect(sources(19))
        self.expect(sources(20),
                    "nn:1: 21 pairs of header and source, at most 20; give what "
                    "belongs together a room of its own")

    def test_length(self):
        long = OWN + "int x;\n" * 459
        self.expect({"nn/add.cc": long},
                    "nn/add.cc:460: 460 lines; at most 450: split the file")
        listed = "length nn/add.cc %d the table is one thing\n"
        others = {"tests/README.md": "", "nn/add.cc": long}
        name = "tests/style/exceptions.txt"
        self.expect({**others, name: listed % 460})
        self.expect({**others, name: listed % 470},
                    name + ":1: nn/add.cc has 460 lines now; lower its number")
        self.expect({**others, name: listed % 455},
                    "nn/add.cc:460: 460 lines; at most 450: split the file")

    def test_exceptions(self):
        name = "tests/style/exceptions.txt"
        listed = "# Why.\nbanned_calls nn/add.cc it is the clock\n"
        others = {"tests/README.md": "", name: listed}
        self.expect({**others, "nn/add.cc": OWN + "system_clock::now();\n"})
        self.expect(others, name + ":2: nn/add.cc no longer breaks the rule "
                    "banned_calls; delete the line")

    def test_width(self):
        self.expect_in_source("x" * 81, "81 columns; at most 80")
        self.expect(
            {"nn/add.cc": OWN + "// https://example.org/" + "x" * 80 + "\n"})
        self.expect({"nn/add.cc": OWN + 'auto s = R"(\n%s\n)";\n' % ("x" * 100)})

    def test_header_comment(self):
        self.expect(
            {"nn/add.h": CLEAN_HEADER.split("\n\n", 1)[1]},
            "nn/add.h:1: no comment at the top; say what the header is for and "
            "show its use")

    def test_unfinished(self):
        word = "TO" + "DO"
        self.expect_in_source("// %s: more" % word,
                              word + "; do it now or open an issue")

    def test_machine_paths(self):
        path = "/ho" + "me/"
        self.expect({"nn/README.md": "Look into %sme.\n" % path},
                    "nn/README.md:1: %s is a path of one machine; use a "
                    "relative one" % path)

    def test_sleeping_script(self):
        self.expect({"tests/README.md": "", "tests/a.sh": "  sl" "eep 1\n"},
                    "tests/a.sh:1: sleep; wait for the event itself, with a "
                    "deadline")

    def test_links(self):
        self.expect({"nn/README.md": "[a](add.h#top) [b](no.md)\n"},
                    "nn/README.md:1: no such file: no.md")

    def test_readmes(self):
        self.expect({"comm/BUILD": ""},
                    "comm/README.md:1: missing; say what lives in here")

    def test_dead_files(self):
        listed = 'cc_library(hdrs = ["add.h"], srcs = %s)\n'
        self.expect({"nn/BUILD": listed % '["%s.cc" % n for n in ["add"]]',
                     "nn/sub.cc": ""})
        self.expect({"nn/BUILD": "n = 1\n" + listed %
                                 '["a" + n + ".cc" for n in ["dd"]] + ["sub.cc"]',
                     "nn/sub.cc": ""})
        self.expect({"nn/sub.cc": ""},
                    "nn/sub.cc:1: in no BUILD file; add it to one or delete it")

    def test_config_words(self):
        keys = {"tools/README.md": "Programs.\n",
                "tools/trainer/BUILD": '"config/config_keys.cc"\n',
                "tools/trainer/config/config_keys.cc": '{"mesh.pp"}, {"log.file"}\n'}
        self.expect(dict(keys, **{"nn/add.cc": OWN + 'f("mesh.ppp", a.mesh.pp());\n'}))
        self.expect(dict(keys, **{"nn/add.cc": OWN + 'f("; set mesh.pp to 1");\n'}),
                    "nn/add.cc:2: mesh.pp is the trainer's word; name the field "
                    "(base/field_error.h)")

    def test_includes(self):
        use = 'std::vector<int> v;  // std::string\nauto s = "absl::StrCat";\n'
        self.expect({"nn/add.cc": OWN + use},
                    "nn/add.cc:2: include; add #include <vector>")
        self.expect({"nn/add.cc": OWN + "#include <vector>\n" + use})
        brings = CLEAN_HEADER.replace("int Add", "#include <vector>\n\nint Add")
        self.expect({"nn/add.h": brings, "nn/add.cc": OWN + use})
        # By way of what the own header includes, and of Abseil.
        further = CLEAN_HEADER.replace("NN_ADD_H_", "NN_MORE_H_")
        self.expect({
            "nn/BUILD": CLEAN["nn/BUILD"] + '"more.h"\n',
            "nn/more.h": further.replace(
                "int Add", '#include "absl/strings/str_split.h"\n\nint Add'),
            "nn/add.h": CLEAN_HEADER.replace(
                "int Add", '#include "nn/more.h"\n\nint Add'),
            "nn/add.cc": OWN + use})

    def test_includes_of_a_header(self):
        def header(*lines):
            return {"nn/add.h": CLEAN_HEADER.replace("int Add",
                                                     "\n".join(lines) + "\n\nint Add")}
        for use, lacks in (
                ("std::size_t n;", "<cstddef>"),
                ("int m = std::max(1, 2);", "<algorithm>"),
                ("int b = std::exchange(a, 1);", "<utility>"),
                ("static_assert(!std::is_same_v<int, char>);", "<type_traits>"),
                ("std::exception_ptr e;", "<exception>"),
                ("int n ABSL_GUARDED_BY(m);", '"absl/base/thread_annotations.h"'),
                ("inline void F() { EXPECT_EQ(1, 1); }", '"gtest/gtest.h"'),
                ("pid_t child;", "<sys/types.h>")):
            self.expect(header(use),
                        "nn/add.h:8: include; add #include " + lacks)
            self.expect(header("#include " + lacks, use))
        # Of these nobody knows the header.
        self.expect(header("std::valarray<int> a;  // std::complex"),
                    "nn/add.h:8: include; add std::valarray and its header to NAMES "
                    "of tests/style/includes.py")
        # A macro's text is for those who use it, its last line too.
        self.expect(header("#define TWICE(a) \\", "  std::max(a, a); \\",
                           "  std::valarray<int>()"))

    def test_copt_patterns(self):
        option = "build --per_file_copt=%s@-O1\n"
        for meets in ("^nn/", "//nn[:/].*", "^nn/.*,-//nn:add"):
            self.expect({".bazelrc": option % meets})
        self.expect({".bazelrc": "\n" + option % "^nn/,-//nn/add"},
                    ".bazelrc:2: the pattern //nn/add meets no source; write it "
                    "for paths (^nn/ops/) or labels (//nn/ops[:/])")

    def test_copt_patterns_of_merged_sources(self):
        tree = {**merge_macro(), "nn/sub.cc": OWN}
        option = ("build:tsan --define=merge=1\n"
                  "build:tsan --per_file_copt=%s@-O1\n")
        build = ('load("//third_party/merge:defs.bzl", "cc_library")\n'
                 'cc_library(name = "all", srcs = ["add.cc", "sub.cc"],'
                 ' hdrs = ["add.h"]%s)\n')

        def files(pattern, apart="", lines=option):
            return dict(tree, **{"nn/BUILD": build % apart,
                                 ".bazelrc": lines % pattern})

        for same in ("(^|/bin/)nn/", "//nn[:/]", "^nn/,/bin/nn/.*_merged0"):
            self.expect(files(same))
        self.expect(files("^nn/add", ', apart = ["add.cc"]'))
        alone = ("nn/BUILD:2: %s is compiled with -O1, and all_merged0.cc, which "
                 "contains it, with none; write the pattern of .bazelrc as "
                 "(^|/bin/)nn/, or put the source into `apart`")
        self.expect(files("^nn/add"), alone % "add.cc")
        for default in (option, "build --define=merge=1\n" + option):
            self.expect(files("^nn/", lines=default),
                        alone % "add.cc", alone % "sub.cc")
        self.expect(files("^nn/", lines="build --define=merge=1\n"
                          + option.replace("merge=1", "merge=0")))

    def test_fragment(self):
        def finding(word):
            return ('a comment begins with "%s"; begin with its subject, or with '
                    "a verb (Returns, Waits, ...)" % word)

        for fine in ("// Number of threads that fill parameters.",
                     "// In production, this is null.",
                     "// From the newest to the oldest: steps to resume from.",
                     "// By default, a rank has one thread: its own.",
                     "//    that(is_code);",
                     'const char* kUrl = "http://of/that";',
                     "int n;  // number of threads",
                     "int n;  // number of threads\n        // that fill them"):
            self.expect({"nn/add.cc": OWN + fine + "\n"})
        for line, word in (("// That fill parameters.", "That"),
                           ("// What derives from it, updates.", "What"),
                           ("// As the caller has it.", "As"),
                           ("int n;  // of one file", "of"),
                           ("// By bucket: its memory, or null.", "By"),
                           ("int n;  // by Parameter::index", "by"),
                           ('char c = \'"\';  // of one file', "of"),
                           ("}  // whose turn it is", "whose")):
            self.expect_in_source(line, finding(word))
        # The second paragraph of a block; the comment below one behind code.
        self.expect({"nn/add.cc": OWN + "// Adds.\n//\n// Of one file.\n"},
                    "nn/add.cc:4: " + finding("Of"))
        self.expect({"nn/add.cc": OWN + "int n;  // a number\n// Of one file.\n"},
                    "nn/add.cc:3: " + finding("Of"))

    def test_build_limits(self):
        name = "tests/style/build_limits.txt"
        build = ('[cc_library(name = n, srcs = [n + ".cc", "d.cu"])'
                 ' for n in ["add", "b", "c"]]\n'
                 'cc_test(name = "t", srcs = ["t.cc"])\n'
                 'sh_test(name = "s", srcs = ["s.sh"])\n'
                 'genrule(name = "g", srcs = ["add.cc"], outs = ["h.cc"])\n'
                 'glob(["*.h"])\n')

        def tree(limits):
            return {"tests/README.md": "", "nn/BUILD": build,
                    name: "# Why.\n" + limits}

        self.expect(tree("nn 7 2\n"))
        self.expect(tree("nn 37 32\n"))
        self.expect(
            tree("nn 6 1\n"),
            *(name + ":2: nn/ has %s; put them into a source or test that is "
              "there, or raise the limit and give the reason in the change"
              % what for what in ("2 tests, at most 1",
                                  "7 sources, at most 6")))
        self.expect(
            tree("nn 38 2\n"),
            name + ":2: nn/ has 7 sources, far fewer than 38; lower the limit "
            "to the next multiple of 10")
        self.expect(tree(""), name + ":1: nn/ has 7 sources and 2 tests; add a "
                    "line for it")
        # The clean tree has nn/add.cc; nn/sub/ is a package of its own.
        self.expect(
            {**tree("nn 8 2\n"), "nn/sub/sub.cc": OWN,
             "nn/sub/BUILD": 'cc_library(srcs = glob(["*.cc"]))\n',
             "nn/BUILD": build + 'cc_library(srcs = glob(["*.cc", "sub/*"]))\n'},
            name + ":2: nn/ has 9 sources, at most 8; put them into a source or "
            "test that is there, or raise the limit and give the reason in the "
            "change")
        # Nine sources are two parts.
        build += ('load("//third_party/merge:defs.bzl", "cc_merged_test")\n'
                  'cc_merged_test(name = "m_test",'
                  ' srcs = ["m%d.cc" % i for i in range(9)])\n')
        self.expect({**tree("nn 9 3\n"), **merge_macro()})

    def test_a_glob_names_files(self):
        header = CLEAN_HEADER.replace("NN_ADD_H_", "NN_SUB_SUB_H_")
        build = CLEAN["nn/BUILD"] + 'glob(["%s"])\n'
        self.expect({"nn/sub/sub.h": header, "nn/BUILD": build % "sub/*.h"})
        self.expect({"nn/sub/sub.h": header, "nn/BUILD": build % "*.h"},
                    "nn/sub/sub.h:1: in no BUILD file; add it to one or delete "
                    "it")

    def test_folders_that_are_not_ours(self):
        for folder in ("peer", "checkpoints", "bazel-main"):
            self.expect({folder + "/lib/a.md": "[nothing](b.md)\n"})


if __name__ == "__main__":
    unittest.main()
