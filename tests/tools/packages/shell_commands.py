"""The programs that a shell script starts, found without running it.

    script = Script("set -e; find . -exec strip {} + | env LC_ALL=C sort")
    script.commands     # {"set": 1, "find": 1, "strip": 1, "env": 1, "sort": 1}
    script.functions    # names of the functions that it defines
    script.wrappers     # those of them that run their arguments: f() { "$@"; }

`commands` has the line on which each name is first in the place of a command:
programs, builtins and functions alike. A command in a variable has no name here.
What a known wrapper starts (`env`, `timeout 5`, `find -exec`, `bash -c '...'`)
counts as well. This reads the shell that is written in this tree, not all of it.
"""

import re

# Programs and builtins that run the command behind them.
WRAPPERS = frozenset([
    "!", "builtin", "command", "env", "exec", "ionice", "nice", "nohup",
    "setpriv", "setsid", "stdbuf", "sudo", "taskset", "time", "timeout", "type",
    "unshare", "which", "xargs",
])
_SHELLS = frozenset(["bash", "sh"])
_OPENING_KEYWORDS = frozenset(["if", "then", "elif", "else", "while", "until",
                               "do", "{", "!", "time"])
_CLOSING_KEYWORDS = frozenset(["fi", "done", "esac", "}"])
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_NAME = re.compile(r"[A-Za-z_][\w.+-]*$|\[$")
_HOLE = "\0"  # stands in a word for what only a run can tell


class Word:
    """One word of a script, without its quotes."""

    def __init__(self, text, raw, line):
        self.text, self.raw, self.line = text, raw, line

    @property
    def is_skipped(self):
        """Whether a wrapper takes this word as an option of its own."""
        return (self.raw.startswith(("-", "{", "$")) or
                bool(_ASSIGNMENT.match(self.raw)) or
                bool(re.match(r"\d+(\.\d+)?[smhd]?$", self.text)))


class Script:

    def __init__(self, text, wrappers=(), first_line=1):
        self.commands, self.functions, self.wrappers = {}, set(), set()
        self._text, self._at, self._first_line = text, 0, first_line
        self._known_wrappers = WRAPPERS.union(wrappers)
        self._here_documents = []
        self._bodies = []  # functions around the present place; None: a group
        self._parse_commands(until="")

    # Characters.

    def _peek(self, prefix):
        return self._text.startswith(prefix, self._at)

    @property
    def _has_more(self):
        return self._at < len(self._text)

    @property
    def _line(self):
        return self._first_line + self._text.count("\n", 0, self._at)

    def _skip_blanks(self):
        match = re.compile(r"(?:[ \t]|\\\n)*").match(self._text, self._at)
        self._at = match.end()

    def _skip_past(self, end):
        found = self._text.find(end, self._at)
        self._at = len(self._text) if found < 0 else found + len(end)

    # Commands.

    def _parse_commands(self, until):
        """Reads commands up to `until`: ")", "esac" (or ";;" before it) or "",
        the end of the script."""
        words, function = [], None
        while self._has_more:
            self._skip_blanks()
            if self._peek("#"):
                self._at = (self._text + "\n").find("\n", self._at)
            elif self._peek("\n"):
                words = self._end_command(words)
                self._at += 1
                self._skip_here_documents()
            elif self._peek(";;"):
                self._end_command(words)
                if until == "esac":
                    return
                self._at += 2
            elif self._peek("&>"):
                self._skip_redirection()
            elif self._has_more and self._text[self._at] in ";&|":
                words = self._end_command(words)
                self._at += 1
            elif self._peek(")"):
                self._end_command(words)
                if until == ")":
                    self._at += 1
                    return
                self._at += 1
            elif self._peek("(") and len(words) == 1:
                function = words.pop().text  # name()
                self.functions.add(function)
                self._skip_past(")")
            elif self._peek("(("):
                self._skip_arithmetic()
            elif self._peek("("):
                self._at += 1
                self._bodies.append(function)
                self._parse_commands(until=")")
                self._bodies.pop()
                function = None
            elif re.compile(r"\d*[<>](?!\()").match(self._text, self._at):
                self._skip_redirection()
            elif self._has_more:
                before = self._at
                word = self._read_word()
                if words or not self._is_structure(word, function):
                    if words or not _ASSIGNMENT.match(word.raw):
                        words.append(word)
                elif word.raw == "{":
                    function = None
                elif word.raw == "esac" and until == "esac":
                    self._at = before
                    return
        self._end_command(words)

    def _is_structure(self, word, function):
        """Whether a word where a command may stand is one of the language."""
        if word.raw == "{":
            self._bodies.append(function)
        elif word.raw == "}" and self._bodies:
            self._bodies.pop()
        elif word.raw in ("for", "select"):
            self._skip_blanks()
            if self._peek("(("):
                self._skip_arithmetic()
            while self._has_more and self._text[self._at] not in ";\n":
                self._read_word()
                self._skip_blanks()
        elif word.raw == "case":
            self._parse_case()
        elif word.raw == "[[":
            self._skip_test()
        return word.raw in ("for", "select", "case", "[[",
                            *_OPENING_KEYWORDS, *_CLOSING_KEYWORDS)

    def _skip_test(self):
        while self._has_more:
            self._skip_blanks()
            if self._has_more and self._text[self._at] in "<>|&()\n":
                self._at += 1
            elif self._read_word(in_test=True).raw == "]]":
                return

    def _parse_case(self):
        self._skip_blanks()
        self._read_word()
        self._skip_past("in")
        while self._has_more:
            self._skip_space_and_comments()
            if self._peek("esac"):
                self._at += len("esac")
                return
            while self._has_more and not self._peek(")"):  # patterns
                self._skip_blanks()
                if self._text[self._at] in "(|":
                    self._at += 1
                else:
                    self._read_word()
                self._skip_blanks()
            self._at += 1
            self._parse_commands(until="esac")
            if self._peek(";;"):
                self._at += 2

    def _skip_space_and_comments(self):
        match = re.compile(r"(?:\s|\\\n|#.*)*").match(self._text, self._at)
        self._at = match.end()

    def _skip_arithmetic(self):
        depth = 0
        while self._has_more:
            char = self._text[self._at]
            if self._peek("$("):
                self._read_expansion()
                continue
            depth += (char == "(") - (char == ")")
            self._at += 1
            if depth == 0:
                return

    def _skip_redirection(self):
        match = re.compile(r"\d*(&>>?|<<<|<<-?|[<>]+[&|]?)").match(
            self._text, self._at)
        self._at = match.end()
        self._skip_blanks()
        word = self._read_word()
        if match.group(1) in ("<<", "<<-"):
            self._here_documents.append(word.text)

    def _skip_here_documents(self):
        for end in self._here_documents:
            match = re.compile(r"(?:.*\n)*?\t*%s(?=\n|\Z)" % re.escape(end)
                               ).match(self._text, self._at)
            self._at = match.end() if match else len(self._text)
        self._here_documents = []

    # Words.

    def _read_word(self, in_test=False):
        begin, line, text = self._at, self._line, []
        end_characters = " \t\n;" if in_test else " \t\n;&|<>()"
        while self._has_more:
            char = self._text[self._at]
            if char in "<>" and self._peek(char + "("):
                self._at += 2
                self._parse_commands(until=")")
                text.append(_HOLE)
            elif char == "(" and _ASSIGNMENT.fullmatch(
                    self._text[begin:self._at]):
                self._skip_array()
            elif char in end_characters:
                break
            else:
                text.append(self._read_part())
        if self._at == begin:  # a character that starts no word
            self._at += 1
        return Word("".join(text), self._text[begin:self._at], line)

    def _read_part(self):
        """Reads a quoted part, an expansion or one character of a word."""
        char = self._text[self._at]
        if char == "'":
            begin = self._at + 1
            self._at = begin
            self._skip_past("'")
            return self._text[begin:self._at - 1]
        if char == '"':
            return self._read_double_quotes()
        if char in "$`":
            return self._read_expansion()
        if char == "\\":
            self._at += 2
            return self._text[self._at - 1:self._at].replace("\n", "")
        self._at += 1
        return char

    def _read_double_quotes(self):
        text = []
        self._at += 1
        while self._has_more and not self._peek('"'):
            if self._text[self._at] in "$`":
                text.append(self._read_expansion())
            elif self._peek("\\"):
                text.append(self._text[self._at + 1:self._at + 2])
                self._at += 2
            else:
                text.append(self._text[self._at])
                self._at += 1
        self._at += 1
        return "".join(text)

    def _read_expansion(self):
        if self._peek("$(("):
            self._at += 1
            self._skip_arithmetic()
        elif self._peek("$("):
            self._at += 2
            self._parse_commands(until=")")
        elif self._peek("${"):
            self._at += 2
            while self._has_more and not self._peek("}"):
                self._read_part()
            self._at += 1
        elif self._peek("`"):
            begin, line = self._at + 1, self._line
            self._at = begin
            self._skip_past("`")
            self._add_script(self._text[begin:self._at - 1], line)
        elif self._peek("$'"):
            self._at += 1
            return self._read_part()
        else:
            match = re.compile(r"\$(\w+|[@*#?$!-])?").match(self._text, self._at)
            self._at = match.end()
        return _HOLE

    def _skip_array(self):
        self._at += 1
        while self._has_more and not self._peek(")"):
            self._skip_space_and_comments()
            if not self._peek(")"):
                self._read_word()
        self._at += 1

    # What a command is.

    def _end_command(self, words):
        """Notes the command that these words make. Returns no words."""
        if words:
            name, arguments = words[0], words[1:]
            if name.raw == '"$@"':
                self.wrappers.update(self._bodies[-1:])
                self.wrappers.discard(None)
            elif _NAME.match(name.text) or name.text.startswith("/"):
                self.commands.setdefault(name.text, name.line)
                self._end_command(self._inner_command(name.text, arguments))
        return []

    def _inner_command(self, name, arguments):
        """The words of the command that another one starts."""
        if name == "find":
            for index, word in enumerate(arguments):
                if word.text in ("-exec", "-execdir", "-ok"):
                    return arguments[index + 1:]
        if name in _SHELLS and arguments and arguments[0].raw == "-c":
            arguments = arguments[1:]
        elif name not in ("eval", "trap"):
            if name not in self._known_wrappers | self.wrappers:
                return []
            while arguments and arguments[0].is_skipped:
                arguments = arguments[1:]
            return arguments
        for word in arguments[:1]:
            self._add_script(word.text, word.line)
        return []

    def _add_script(self, text, line):
        inner = Script(text, self._known_wrappers, line)
        for name, at in inner.commands.items():
            self.commands.setdefault(name, at)
        self.functions |= inner.functions
