"""A small tree with errors that say too little: the rule of messages.py must find
each of them, and no other, and must hold the numbers of its exceptions."""

import unittest

import check_style
from check_style_test import CLEAN, in_a_tree


class MessagesTest(unittest.TestCase):

    def expect(self, files, *report):
        """The report on the clean tree with files changed or added."""
        self.assertEqual(in_a_tree({**CLEAN, **files}, check_style.check),
                         list(report))

    def test_where_and_what_to_do(self):
        def tree(call):
            return {"data/README.md": "", "data/a.cc": "f() {\n  %s;\n}\n" % call,
                    "data/BUILD": 'cc_library(srcs = ["a.cc"])\n'}

        def finding(text, missing):
            return ('data/a.cc:2: the error "%s" %s; give both, "<where>: <what>; '
                    '<do>"' % (text, missing))
        no_where = "names no file, key or sample"
        no_advice = "does not say what to do"
        for good in ('DataLossError(StrCat(name, ": cut; remove it"))',
                     'ErrorAt(loaded, {"a.b"}, "a.b must be at least 0")',
                     'base::FieldError<&A::b>(StrCat(F<&A::b>(), "; use ", (1)))',
                     'NotFoundError(path + "); or check // \\"the\\" path")',
                     'ErrorAt(loaded, {}, "a.b takes two; give both")',
                     'NotFoundError("no folder; write --dir=certs")',
                     'NotFoundError(StrCat("RANK_OF is gone; ", advice))',
                     'NotFoundError(StrCat(v, ": no number, such as ", example))',
                     'NotFoundError(StrCat(name, ": give f32, bf16, or both"))',
                     'ErrorAt(l, {"a.b"}, StrCat("line ", n, s.status().message()))',
                     'NotFoundError(StrCat("O.ranks is at least 1, not ", n))',
                     'NotFoundError(StrCat(n, " parts where it has ", m))',
                     'NotFoundError(StrCat(n, " is too long; the limit is ", m))',
                     'NotFoundError("Step() came twice; call ZeroGrad()")',
                     'NotFoundError("a DataLoader has ended; make another")',
                     'UnavailableError("no file /proc/self/maps; mount it")',
                     'NotFoundError(Text(code))', 'UnknownError("a")'):
            self.expect(tree(good))
        for code in "Unavailable", "DeadlineExceeded", "ResourceExhausted":
            self.expect(tree(code + 'Error(StrCat(peer, " is late"))'),
                        finding("{} is late", no_advice))
        self.expect(tree('NotFoundError("gone; look elsewhere")'),
                    finding("gone; look elsewhere",
                            no_where + " and " + no_advice))
        self.expect(tree('NotFoundError("gone; check the path")'),
                    finding("gone; check the path", no_where))
        bad = tree('ErrorAt(\n loaded, {}, StrCat(n, " of ",  // all 3\n m))')
        self.expect(bad, finding("{} of {}", no_advice))
        self.expect(tree('DataLossError(StrCat(s.message(), " of ", n))'),
                    finding("{} of {}", no_advice))

    def test_functions_that_add_a_place(self):
        """The texts that they get are read, unless they add an advice."""
        def tree(adds, kind="Status", ends="return "):
            return {"data/README.md": "", "data/BUILD": '"a.cc"', "data/a.cc": (
                '%s Bad(int at, string_view what) {\n'
                '  %sDataLossError(StrCat(at, ": "%s));\n}\n'
                'f() {\n  Bad(1, "gone; restore it");\n  Bad(1, "gone");\n}\n'
                % (kind, ends, adds))}
        self.expect(tree(', what, "; restore it"'))
        found = ('data/a.cc:6: the error "{} gone" does not say what to do; give '
                 'both, "<where>: <what>; <do>"')
        self.expect(tree(', what'), found)
        self.expect(tree(', what', "[[noreturn]] void", "throw "), found)

    def test_exceptions_are_counted(self):
        listed = "tests/style/message_exceptions.txt"

        def tree(lines):
            return {"data/README.md": "", "data/BUILD": '"a.cc"',
                    "tests/README.md": "", "tests/style/README.md": "",
                    "data/a.cc": 'UnknownError("a");\nDataLossError("b");\n'
                                 'DataLossError("c");\n', listed: lines}
        found = ('data/a.cc:%d: the error "%s" names no file, key or sample and does '
                 'not say what to do; give both, "<where>: <what>; <do>"')
        self.expect(tree("# path number\n\ndata/a.cc 2 why\n"))
        self.expect(tree("data/a.cc 1 why\n"), found % (2, "b"), found % (3, "c"))
        self.expect(tree("data/a.cc 3 why\n"), listed + ":1: data/a.cc breaks the "
                    "rule 2 times now; lower its number")
        self.expect({**tree("data/a.cc 1 why\n"), "data/a.cc": ""},
                    listed + ":1: data/a.cc breaks the rule 0 times now; delete the "
                    "line")
        self.expect(tree("data/a.cc 2 why\nnn/no.cc 1 why\n"),
                    listed + ":2: no file nn/no.cc has the rule; delete the line")


if __name__ == "__main__":
    unittest.main()
