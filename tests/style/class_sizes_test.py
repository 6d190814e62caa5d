"""Small classes in the forms that C++ has: cpp_classes.py must count the members of
each, and class_sizes.py the lines, and it must hold the numbers of its exceptions."""

import unittest

import check_style
import class_sizes
import cpp_classes
from check_style_test import CLEAN, CLEAN_HEADER, OWN, in_a_tree


def members(text):
    """{class: number of its members} of a file with this text."""
    source = cpp_classes.Source("nn/a.h", text.splitlines())
    return {kind.name: kind.members for kind in source.classes}


class CountTest(unittest.TestCase):

    def expect(self, body, number):
        """A class with this body has `number` members, whatever comes next."""
        for text in ("class A {%s};", "class A {%s\n  int last;\n};\nint b = 1;"):
            text = text % ("\n" + body + "\n")
            self.assertEqual(members(text).get("A"), number + ("last" in text), text)

    def test_members(self):
        for body, number in (
                ("", 0), ("int a;", 1), ("int a, *b, c[2];", 3),
                ("const std::map<int, std::pair<int, int>> a;", 1),
                ("int a = 1, b{2}, c = F(1, 2);", 3),
                ("std::vector<int> a = {1, 2}, b{3, 4};", 2),
                ("std::map<A, B> a = std::map<A, B>{}; bool b = 1 < 2, c = 2 > 1;", 3),
                ("unsigned int a : 3, b : 4;", 2), ("unsigned int : 4;", 0),
                ("mutable std::atomic<int> a{0};", 1),
                ("std::array<int, (1 > 2)> a;", 1), ("int a[kB * (2 + 3)] = {};", 1),
                ("alignas(64) char a[4];", 1), ("[[maybe_unused]] int a;", 1),
                ("decltype(F()) a;", 1), ("typename T::B a; ::B c;", 2),
                ("struct B* a; enum C c; const struct n::B& d;", 3),
                ("public:\n int a;\n private: int b;\n protected:", 2)):
            self.expect(body, number)

    def test_annotations(self):
        self.expect("absl::Mutex mutex_;\n"
                    "int a ABSL_GUARDED_BY(mutex_) = 0;\n"
                    "std::deque<int> b ABSL_GUARDED_BY(mutex_){1};\n"
                    "int* c ABSL_PT_GUARDED_BY(mutex_);", 4)
        self.expect("void F() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);\n"
                    "void G() ABSL_LOCKS_EXCLUDED(a, b) { int c; }", 0)
        # A constructor in capitals is none.
        self.assertEqual(members("class IDX_3 { IDX_3(int x); IDX_3() {} int a; };"),
                         {"IDX_3": 1})

    def test_functions(self):
        for body in ("A();", "explicit A(int a) : a_(a), b_{1, 2}, C<int>{3} {}",
                     "A() = default; A(const A&) = delete;", "~A();",
                     "virtual void F(int a, int b) const = 0;",
                     "int F() const { int a; int b; return a; }",
                     "auto F(int a = G(1, 2)) -> std::map<int, int> {}",
                     "bool operator<(const A& a) const; bool operator,(A a);",
                     "int operator()(int a) { return a; } operator bool() const;",
                     "void* operator new[](std::size_t);",
                     "template <typename T, int n = 3> T F(T a, T b) { return a; }",
                     "int& F() & noexcept(true) { return *this; };",
                     "std::function<void(int)> F() override final;",
                     "A(A&& a) noexcept : a_(std::move(a)) { if (a) { b(); } }"):
            self.expect(body, 0)

    def test_pointers_to_functions(self):
        self.expect("std::function<void(int, int)> a;\n"
                    "std::function<void()> b = [x = 1, y] { int c; };\n"
                    "void (*c)(int, int) = nullptr;\n"
                    "int (A::*d)(int) const;\n"
                    "int (&e)[3];\n"
                    "float (*f[3])(float);\n"
                    "std::unique_ptr<char, void (*)(char*)> g{nullptr, nullptr};", 7)

    def test_other_declarations(self):
        for body in ("using B = int; using n::C;", "typedef int B;",
                     "friend class B; friend int F(int a) { return a; }",
                     "static int a; static constexpr int b = 1, c = 2;",
                     "inline static std::vector<int> a = {1, 2};",
                     "static_assert(sizeof(int) == 4, \"a; b\");",
                     "class B; struct C; enum class D : int; union E;",
                     "enum { kA, kB = 2 }; enum class C : char { kC };",
                     "template <int n> static constexpr int k = n;",
                     "MACRO(a, b); MACRO_TOO(c);"):
            self.expect(body, 0)

    def test_text_that_is_no_code(self):
        self.expect("// int a; {\n/* int b; } */ int c;\n"
                    "std::string d = \"; int e; {\", f = R\"x(\"; int g; })x\";\n"
                    "char h = ';', i = '\\'', j = '{'; int k = 1'000;\n"
                    "#define L int m; {\n#if X  // int n; /* {\nint o;\n#endif\n"
                    "#define P \\\n  int q;", 8)

    def test_types_inside(self):
        self.assertEqual(
            members("namespace n { namespace { class A final : public B<int> {\n"
                    "  struct C { int a, b, c; };\n"
                    "  enum D { kD } d;\n  struct E { int a; } e, f;\n"
                    "  union { int g; struct { int h, i; }; };\n"
                    "  struct { int j, k; } l;\n  template <class T> struct M {\n"
                    "    int a, b;\n  };\n  class N;\n"
                    "  void F() { struct O { int p; }; }\n"
                    "};\nclass A::N { int q; int r; };\n}}"),
            {"n::(nn/a.h)::A": 7, "n::(nn/a.h)::A::C": 3, "n::(nn/a.h)::A::E": 1,
             "n::(nn/a.h)::A::M": 2, "n::(nn/a.h)::A::O": 1, "n::(nn/a.h)::A::N": 2})

    def test_heads(self):
        for head in ("class A", "struct A final : B, private n::C<D<int>>",
                     "class ABSL_LOCKABLE A", "class [[nodiscard]] A",
                     "struct alignas(64) A", "class ABSL_LOCKED(a) A : public B",
                     "template <> struct A<int, 3>", "union A"):
            found = members(head + " { int a, b; };\nint c;")
            self.assertEqual(list(found.values()), [2], head)
        for other in ("struct A a{1, 2};", "enum class A { kA, kB };", "class A;",
                      "template <class A> int F() { int a; }",
                      "struct A F(struct A* a) { int b; int c; }",
                      "friend struct A;", "using A = struct B;"):
            self.assertEqual(members(other), {}, other)


class ClassSizesTest(unittest.TestCase):

    listed = class_sizes.EXCEPTIONS
    too_many = ("nn/add.h:8: A has 16 data members, at most 15; give what belongs "
                "together a class of its own")

    def header(self, count):
        return CLEAN_HEADER.replace(
            "int Add", "namespace n {\nclass A {\n  class B { void F(); };\n"
            "  int %s;\n};\n}  // namespace n\nint Add" % ", ".join("a%d" % i for i in range(count)))

    def expect(self, files, *report):
        """The report on the clean tree with files changed or added."""
        self.assertEqual(in_a_tree({**CLEAN, "tests/README.md": "",
                                    "tests/style/README.md": "", **files},
                                   check_style.check), list(report))

    def test_members(self):
        self.expect({"nn/add.h": self.header(15)})
        self.expect({"nn/add.h": self.header(16)}, self.too_many.replace(":8:", ":9:"))

    def test_exceptions_are_counted(self):
        def tree(count, line):
            return {"nn/add.h": self.header(count), self.listed: line}
        self.expect(tree(16, "# path class what number\n\nnn/add.h A members 16 why\n"))
        self.expect(tree(17, "nn/add.h A members 16 why\n"),
                    "nn/add.h:9: A has 17 data members, at most 16; give what belongs "
                    "together a class of its own")
        self.expect(tree(16, "nn/add.h A members 17 why\n"),
                    self.listed + ":1: A has 16 members now; lower its number")
        self.expect(tree(15, "nn/add.h A members 16 why\n"),
                    self.listed + ":1: A of nn/add.h keeps the limit of members; "
                    "delete the line")
        # An exception is that of one class, in one file, of one measure.
        self.expect(tree(16, "nn/add.h B members 16 why\n"),
                    self.too_many.replace(":8:", ":9:"),
                    self.listed + ":1: B of nn/add.h keeps the limit of members; "
                    "delete the line")

    def lines_of(self, *bodies):
        """Lines of the class n::A, whose functions stand in files of these texts."""
        files = {**CLEAN, "nn/add.h": self.header(1)}
        for number, body in enumerate(bodies):
            files["nn/add%d.cc" % number] = body

        def sizes(root):
            sources = [cpp_classes.Source(file.path, file.lines)
                       for file in check_style.Tree(root).files
                       if file.path.endswith(class_sizes.CPP)]
            return {kind.name: lines for kind, lines in class_sizes.sizes(sources)}
        return in_a_tree(files, sizes)["n::A"]

    def test_lines(self):
        rest = "\n" * 50
        head = OWN + "namespace n {\n"
        self.assertEqual(self.lines_of(), 4)
        # The whole file, of which they are a third.
        self.assertEqual(self.lines_of(head + "std::map<int, B> A::F(int a)\n    const {\n"
                                       "  G();\n}\n}\n"), 4 + 7)
        self.assertEqual(self.lines_of(head + "A::A(int a)\n  : a0(a), a1{2} {\n}\n}\n",
                                       "int n::A::F() {}\n"), 4 + 6 + 1)
        # Their lines alone.
        for definition, number in (
                ("A::A()\n  : a0(1), a1{2} {\n  struct C { int d; };\n}\n", 4),
                ("A::~A() = default;\n", 1), ("int A::F() { return B::G(); }", 1),
                ("A& A::operator=(const A& a)\n{}\n", 2),
                ("bool A::operator()(int a)\n{}\n", 2),
                ("namespace {\nint G();\n}\nvoid A::F()\n{ G(); }\nint H() {}", 2),
                ("template <class T>\nvoid A::F(T t) {}", 2)):
            self.assertEqual(self.lines_of(head + definition + rest + "}\n"), 4 + number)
        # Other classes, calls, values.
        for other in ("void B::F() {}", "void A::B::F() {}", "int a = A::F(1);",
                      "int F(int b = A::G(2));", "void F() { A::G(3); }",
                      "namespace m { class A { void F(); };\nvoid A::F() {}\n}"):
            self.assertEqual(self.lines_of(head + other + "\n}\n"), 4, other)

    def test_too_many_lines(self):
        def tree(count):
            return {"nn/add.h": self.header(1),
                    "nn/add.cc": OWN + "void n::A::F() {" + "\n" * count + "}\n"}
        self.expect(tree(444))
        self.expect(tree(445), "nn/add.h:9: A has 451 lines in its sources, at most 450; "
                    "give what belongs together a class of its own")
        self.expect({**tree(445), self.listed: "nn/add.h A lines 451 why\n"})


if __name__ == "__main__":
    unittest.main()
