"""Errors say what is wrong, where, and what to do: a rule of check_style.py.

    for path, line, sentence in messages(tree): ...

    messages.py FILE...        # prints the findings of these files

Reads the calls in FOLDERS that make an absl::Status with a text, and of each text
the literals; a value between them is written {}. A text must name the file, key,
rank or argument: by a value, or by an option, key, variable, function, field or type
that is written out. And it must help on. Either it has an advice: a clause behind a
semicolon or a colon that begins with a verb of ADVICE ("; convert or remove it"), the
word "must", or a value at its end that the text calls an advice ("; {}") or an
example (", such as {}"). Or it says what is expected beside what there is: "at least
1, not {}", "{} parts where the plan has {}", "; the limit is {}". A machine cannot
tell whether that helps; a reviewer must.

Texts without a word of their own were made elsewhere, and are checked there. So are
those that end in the message of another status, to which they add a place, or in the
parameter `what` or `why` of a function, whose calls are read instead.

message_exceptions.txt has the files with errors that break the rule, and their exact
number, which may only fall: those of broken protocols between processes, about which
a user can do nothing, and others that nobody has improved yet.
"""

import re
import sys

import by_hand

FOLDERS = ("actors/", "base/", "comm/", "data/", "nn/", "pipeline/", "tools/", "troupe/")
EXCEPTIONS = "tests/style/message_exceptions.txt"

ADVICE = """add allow ask assign begin build call change check choose close compare
connect convert copy correct count create cut declare decode define delete detach
download end export extract fetch fill finish fix format free get give go install join
keep leave let list load lower make mount move name number open pad pass pick pop put
raise read receive reduce register remove rename repeat replace restart restore resume
retry return run save see send set shift shorten shuffle split start stash stop take
train try turn unpack unset update upgrade use wait widen write""".split()

CALL = (
    r"\b(?:(?:InvalidArgument|DataLoss|NotFound|FailedPrecondition|OutOfRange"
    r"|ResourceExhausted|Unimplemented|AlreadyExists|PermissionDenied"
    r"|Unavailable|DeadlineExceeded)Error"
    r"|ErrorAt|FieldError\s*<[\w:&,\s.]*>|PlanError%s)\s*\(")
# Functions whose parameter `what` or `why` ends the text of an error.
WRAPPER = re.compile(r"\b(?:Status|void) (\w+)\([^();{}]*\b(?:what|why)\)"
                     r"|\bauto (\w+) =\s*\[[^]]*\]\([^();{}]*\b(?:what|why)\)")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CHARACTER = re.compile(r"'(?:[^'\\\n]|\\.)+'")
ADVISES = re.compile(r"[;,:] (?:or |then |first )*(?:%s)\b|\bmust\b"
                     r"|; \{\}$|, such as \{\}$" % "|".join(ADVICE))
# What there is beside what is expected.
COMPARES = re.compile(r", (?:not|got) \{\}|, but .* (?:has|are) \{\}|; there are |started:? \{\}.*started:? \{\}|did you mean \[?\{\}|\{\}.* where .*\{\}"
                      r"|; (?:it has|the nearest (?:is|are)|the limit is) ?\{\}")
# A value; or the name of an option, a key, a variable, a function, a field, a type,
# a file.
NAMES = re.compile(r"\{\}|--[a-z]|\b\w+\.[a-z_]+\b|\b[A-Z]+_[A-Z_]+\b"
                   r"|\w\(\)|\w::\w|\b[A-Z][a-z]+[A-Z]\w+| /\w+/\w+")
WRAPS = re.compile(r"(?:\bmessage\(\)|\bwhat|\bwhy)[\s)]*$")


def _without_comments(text):
    """Returns the text with comments blanked, so that offsets stay."""
    def blank(found):
        whole = found.group(0)
        return whole if whole[0] in "\"'" else " " * len(whole)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*', blank,
                  text)


def _arguments(text, begin):
    """Returns the text from `begin` to the bracket that closes there."""
    depth, at = 1, begin
    while at < len(text):
        literal = STRING.match(text, at) or CHARACTER.match(text, at)
        if literal:
            at = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin:at]
        at += 1
    return text[begin:]


def _message(arguments):
    """Returns the literals of a call, with {} for each value between them."""
    message, at = "", 0

    def value(code):
        code = re.sub(r"\b(?:absl::)?(?:StrCat|StatusCode|string_view)\b", "", code)
        return "{}" if re.search(r"\w", code) else " " if "," in code else ""
    for literal in STRING.finditer(arguments):
        message += value(arguments[at:literal.start()]) + literal.group(1)
        at = literal.end()
    if not re.search(r"\w", message.replace("{}", "")) or WRAPS.search(arguments):
        return ""
    return re.sub(" +", " ", message + value(arguments[at:]))


def _wrappers(text):
    """Returns the functions that make an error of a text that ends in `what` or `why`."""
    names = set()
    for function in WRAPPER.finditer(text):
        end = text.find("}", function.end())
        for call in re.finditer(CALL % "", text[function.end():end]):
            arguments = _arguments(text, function.end() + call.end())
            if WRAPS.search(arguments):
                names.add(function.group(1) or function.group(2))
    return names


def texts(lines):
    """Yields (line number, text) of each error that these lines make."""
    text = _without_comments("\n".join(lines))
    wrappers = _wrappers(text)
    for call in re.finditer(CALL % "".join("|" + name for name in wrappers), text):
        message = _message(_arguments(text, call.end()))
        if message:
            if call.group(0).rstrip(" (") in wrappers:
                message = re.sub(r"^(?:\{\})?", "{} ", message)  # the place
            yield text.count("\n", 0, call.start()) + 1, message


def _missing(message):
    missing = []
    if not NAMES.search(message):
        missing.append("names no file, key or sample")
    if not ADVISES.search(message) and not COMPARES.search(message):
        missing.append("does not say what to do")
    return " and ".join(missing)


def findings(file):
    """Yields (line number, sentence) of one file."""
    for number, message in texts(file.lines):
        missing = _missing(message)
        if missing:
            yield number, 'the error "%s" %s; give both, "<where>: <what>; <do>"' % (
                message, missing)


def read_exceptions(tree):
    """Returns {path: (line of the list, number of findings)}."""
    exceptions = {}
    for file in tree.files:
        if file.path != EXCEPTIONS:
            continue
        for number, line in enumerate(file.lines, start=1):
            if line.strip() and not line.startswith("#"):
                path, count = line.split()[:2]
                exceptions[path] = (number, int(count))
    return exceptions


def messages(tree):
    """Yields (path, line number, sentence) of the files below FOLDERS."""
    exceptions = read_exceptions(tree)
    for file in tree.files:
        if not file.path.startswith(FOLDERS) or not file.path.endswith((".h", ".cc")):
            continue
        line, allowed = exceptions.pop(file.path, (0, 0))
        found = list(findings(file))
        if len(found) > allowed:
            for number, sentence in found:
                yield file.path, number, sentence
        elif len(found) < allowed:
            yield EXCEPTIONS, line, "%s breaks the rule %d times now; %s" % (
                file.path, len(found),
                "lower its number" if found else "delete the line")
    for path, (line, _) in exceptions.items():
        yield EXCEPTIONS, line, "no file %s has the rule; delete the line" % path


if __name__ == "__main__":
    sys.exit(by_hand.main(findings, sys.argv[1:]))
