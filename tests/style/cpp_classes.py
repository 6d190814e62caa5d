"""The classes of a C++ file, read as tokens, without a compiler.

    source = Source("nn/add.h", lines)
    for kind in source.classes:
        print(kind.name, kind.members)  # n::A 2, of namespace n { class A { int b, c; }; }

A class's members are the data members of its own: those of its bases and of the types
inside it do not count, nor do static ones, but those of an unnamed struct or union do.

There is no preprocessor: of #if and #else both sides count, and the text of a macro
does not. A word in capitals with an underscore before a bracket is taken for an
annotation, such as ABSL_GUARDED_BY(mutex_).
"""

import bisect
import collections
import re

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
    |(?P<raw>R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)")
    |(?P<literal>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])+'|\d(?:'?[\w.])*)
    |(?P<word>\w+)
    |(?P<sign>::|->|.)""", re.S | re.M | re.X)
_KEYS = ("class", "struct", "union")
_ANNOTATION = re.compile(r"[A-Z0-9]+_[A-Z0-9_]+")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OTHER_DECLARATIONS = ("friend", "static_assert", "template", "typedef", "using")
_WHOLE_NUMBERS = ("bool", "char", "int", "long", "short", "signed", "unsigned")
# What may stand between the brackets of a template's arguments.
_ARGUMENT = re.compile(r"\w+|::|[,*&.]|''")


def tokens_of(text):
    """Returns the tokens and the line of each; literals are ''."""
    ends = [found.end() for found in re.finditer("\n", text)]
    tokens, lines = [], []
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "skip":
            tokens.append(found.group(0) if found.lastgroup in ("word", "sign")
                          else "''")
            lines.append(bisect.bisect_right(ends, found.start()) + 1)
    return tokens, lines


class Class:
    """A class: its name with its scopes, where it stands, and its members."""

    def __init__(self, name, path, first_line, last_line, members):
        self.name = name
        self.path = path
        self.first_line = first_line
        self.lines = last_line - first_line + 1
        self.members = members


class Source:
    """The classes of a file, and those whose functions it defines.

    classes   [Class]
    defines   {(scope, name): lines}, of `void A::B::F() {}` in namespace n (n, A::B)
    includes  paths
    """

    def __init__(self, path, lines):
        self.path = path
        self.length = len(lines)
        self.includes = {found.group(1) for found in
                         (re.match(r'#include "([^"]+)"', line) for line in lines)
                         if found}
        self.classes = []
        self.defines = collections.Counter()
        self._tokens, self._lines = tokens_of("\n".join(lines))
        self._ends = self._match_brackets()
        self._members = {}  # of an unnamed type, by the token of its bracket
        self._read()

    def _match_brackets(self):
        """Returns, for each opening bracket, the token behind its partner."""
        ends, opened = {}, []
        for at, token in enumerate(self._tokens):
            if token in _CLOSING:
                opened.append(at)
            elif token in _CLOSING.values():
                # A side of an #if may lack a partner.
                while opened and _CLOSING[self._tokens[opened[-1]]] != token:
                    ends[opened.pop()] = at
                if opened:
                    ends[opened.pop()] = at + 1
        for at in opened:
            ends[at] = len(self._tokens)
        return ends

    def _token(self, at):
        return self._tokens[at] if 0 <= at < len(self._tokens) else ""

    def _behind_angles(self, at):
        """Returns the token behind the brackets <> at `at`, or `at` if `<` is an
        operator there."""
        depth, here = 0, at
        while here < len(self._tokens):
            token = self._tokens[here]
            if token in _CLOSING:
                here = self._ends[here]
                continue
            if token == "<":
                depth += 1
            elif token == ">":
                depth -= 1
                if depth == 0:
                    return here + 1
            elif not _ARGUMENT.fullmatch(token) and not (
                    token == "=" and self._token(at - 1) == "template"):
                return at
            here += 1
        return at

    def _class_head(self, at):
        """Returns (name, token of the opening bracket) of the class or namespace
        that is defined at `at`, or (None, None)."""
        key = self._tokens[at]
        here, name = at + 1, ""
        while here < len(self._tokens):
            token = self._tokens[here]
            if token == "{":
                return name, here
            if token == "[" or (
                    token == "(" and _ANNOTATION.fullmatch(name)):
                here = self._ends[here]  # an attribute or an annotation
                name = name if token == "[" else ""
            elif token == "<" and name:
                behind = self._behind_angles(here)
                if behind == here:
                    return None, None
                name += "".join(self._tokens[here:behind])
                here = behind
            elif token == "::":
                name += token
                here += 1
            elif token == "final" or token == "alignas":
                here += 1
                if token == "alignas":
                    here = self._ends.get(here, here)
            elif re.match(r"[A-Za-z_]", token):
                if name and not name.endswith("::"):
                    if not _ANNOTATION.fullmatch(name):
                        return None, None  # struct A a{};
                    name = ""
                name += token
                here += 1
            elif token == ":" and key != "namespace":
                while self._token(here) not in ("{", ";", ")", ""):
                    here += 1
                return (name, here) if self._token(here) == "{" else (None, None)
            else:
                break
        return None, None

    def _read(self):
        """Walks through all scopes."""
        scopes = []  # (end, name or None of a function or a value)
        namespaces = 0  # how many of the scopes, where all are namespaces
        at, begin = 0, 0  # `begin`: of a declaration in a namespace, or None
        while at < len(self._tokens):
            token = self._tokens[at]
            if scopes and at == scopes[-1][0] - 1:
                scopes.pop()
                namespaces = min(namespaces, len(scopes))
                begin = at + 1
            elif token in _KEYS + ("namespace",) and (
                    self._token(at - 1) != "enum"):
                name, bracket = self._class_head(at)
                if bracket is not None:
                    scope = "::".join(s for _, s in scopes if s)
                    if token == "namespace":
                        name = name or "(%s)" % self.path
                        namespaces += namespaces == len(scopes)
                    else:
                        self._add(scope, name, at, bracket)
                    scopes.append((self._ends[bracket], name))
                    at = begin = bracket + 1
                    continue
            elif token == "{":
                scopes.append((self._ends[at], None))
            elif token == ";":
                begin = at + 1
            elif token in ("=", "(") and begin is not None and (
                    namespaces == len(scopes)):
                name = self._qualifier(at) if token == "(" else ""
                if name:
                    end = self._declaration("", begin, len(self._tokens))[1]
                    self.defines["::".join(n for _, n in scopes), name] += (
                        self._lines[end - 1] - self._lines[begin] + 1)
                if name or self._token(at - 1) != "operator":
                    begin = None
            at += 1

    def _qualifier(self, at):
        """Returns A::B where the token `at` opens the arguments of A::B::F()."""
        here = at - 1
        for back in range(1, 4):
            if self._token(at - back) == "operator":
                here = at - back
        here -= self._token(here - 1) == "~"
        parts = []
        while self._token(here - 1) == "::":
            here -= 2
            if self._token(here) == ">":
                depth = 0
                while here >= 0:
                    depth += {">": 1, "<": -1}.get(self._tokens[here], 0)
                    if depth == 0:
                        break
                    here -= 1
                here -= 1
            parts.insert(0, self._token(here))
        return "::".join(parts)

    def _add(self, scope, name, at, bracket):
        end = self._ends[bracket]
        members = self._count(name, bracket + 1, end - 1)
        if name:
            self.classes.append(Class(
                scope + "::" + name if scope else name, self.path, self._lines[at],
                self._lines[end - 1], members))

    def _count(self, name, at, end):
        """Returns the number of data members of the class body [at, end)."""
        count = 0
        while at < end:
            number, at = self._declaration(name, at, end)
            count += number
        return count

    def _declaration(self, class_name, at, end):
        """Returns the number of data members of the declaration at `at`, and the
        token behind it."""
        first = self._tokens[at]
        if first in ("public", "protected", "private") and (
                self._token(at + 1) == ":"):
            return 0, at + 2
        counts = first not in _OTHER_DECLARATIONS
        members, words, function = 0, 0, False
        while at < end:
            token = self._tokens[at]
            if token == ";":
                members += words > 1
                return members if counts and not function else 0, at + 1
            if token == ",":
                members += words > 1
                words = 1  # the type is that of the first
                at += 1
            elif token in _KEYS + ("enum",):
                at, inner = self._type(at)
                # A type's name, or its body, stands for a type.
                members += inner if self._token(at) == ";" else 0
                words = 1 if self._token(at) != ";" else 0
            elif token == "static":
                counts = False
                at += 1
            elif token == "operator":
                function = True
                while at < end and self._tokens[at] != "(":
                    at += 1
                if self._tokens[at:at + 2] == ["(", ")"] and (
                        self._token(at + 2) == "("):
                    at += 2
            elif token == "(":
                inside = self._tokens[at + 1:self._ends[at] - 1]
                if not function and _is_pointer(inside):
                    words += 1  # void (*call)(int)
                    at = self._ends[at]
                    at = self._ends.get(at, at)
                else:
                    function = True
                    at = self._ends[at]
            elif token == "{":
                at = self._ends[at]
                if function:
                    # A body ends a declaration, without a semicolon.
                    return 0, at + (self._token(at) == ";")
            elif token == ":" and function:
                at = self._behind_initialisers(at + 1, end)
            elif token == "=" or token == ":":
                if token == ":" and self._tokens[at - 1] in _WHOLE_NUMBERS:
                    words = 1  # bits without a name
                at = self._behind_value(at + 1, end)
            elif token == "<":
                at = max(at + 1, self._behind_angles(at))
            elif token == "[":
                at = self._ends[at]
            elif re.match(r"[A-Za-z_]", token):
                at += 1
                if self._token(at) == "(" and (
                        token in ("alignas", "decltype", "noexcept",
                                  "__attribute__")
                        or (_ANNOTATION.fullmatch(token) and token != class_name
                            and self._token(at - 2) != "::")):
                    at = self._ends[at]
                    words += token == "decltype"
                elif token not in ("const", "mutable", "volatile") and (
                        self._token(at) != "::"):
                    words += 1
            else:
                at += 1
        return members if counts and not function else 0, end

    def _type(self, at):
        """Returns the token behind a type that begins with struct or the like, and
        the number of its members if it has no name."""
        name, bracket = None, None
        if self._tokens[at] == "enum":
            here = at
            while self._token(here) not in ("{", ";", "=", ",", "(", ""):
                here += 1
            if self._token(here) == "{":
                return self._ends[here], 0
        else:
            name, bracket = self._class_head(at)
        if bracket is not None:
            end = self._ends[bracket]
            return end, 0 if name else self._count("", bracket + 1, end - 1)
        at += 1
        while re.match(r"\w|::", self._token(at)) and (
                self._token(at) == "::" or self._token(at - 1) in (
                    "::", "class", "enum", "struct", "union")):
            at += 1
        return at, 0

    def _behind_initialisers(self, at, end):
        """Returns the opening bracket of a constructor's body."""
        while at < end:
            while at < end and self._tokens[at] not in ("(", "{"):
                at = (max(at + 1, self._behind_angles(at))
                      if self._tokens[at] == "<" else at + 1)
            at = self._ends.get(at, end)
            while self._token(at) == ".":
                at += 1
            if self._token(at) != ",":
                return at
        return end

    def _behind_value(self, at, end):
        """Returns the comma or semicolon that ends a value, or its bracket {."""
        while at < end and self._tokens[at] not in (",", ";"):
            if self._tokens[at] in _CLOSING:
                at = self._ends[at]
            elif self._tokens[at] == "<":
                at = max(at + 1, self._behind_angles(at))
            else:
                at += 1
        return at


def _is_pointer(inside):
    """Whether `(inside)` declares a pointer or a reference to what follows."""
    return bool(re.match(r"(?:\w+ :: )*[*&]\s*(?:const )?\w+(?: \[ .*)?$",
                         " ".join(inside)))
