"""Extracts the usage examples in comments of headers, and the ```cpp blocks of
pages, into compilable sources.

    usage.py source --folder=NAME [--words=WORDS.h] FILE... [--folder=NAME ...]
                                                     prints one source
    usage.py program PAGE.md                         prints its whole program
    usage.py missing ROOT LIST.txt... [HEADER...]    names forgotten files

FILE is a header, or a page (.md). A source holds several folders, each with words
of its own. Each LIST.txt names files whose usage is compiled. HEADER... are headers
under ROOT whose usage need not be; FOLDER/ stands for all headers of a folder.

In the comment at the top of a header, and in one over a class, lines indented
by three columns are code, and lines indented by five or more are a picture, a
table or a list. A block of code ends at the next line of text. Each block
becomes the body of a function; the classes and functions that it defines are
put before it. All of this is in a namespace of its own within that of the
header,

    troupe::nn::usage::tape_h       for nn/autograd/tape.h

in which WORDS.h declares the names that a block leaves undeclared. Names for
all headers of the folder are in troupe::nn::usage. A page's blocks are in

    troupe::usage::using_md         for docs/using.md

Two folders of a source may have headers of one name in one namespace, so each has
a `usage` of its own there: the compiler sees

    troupe::nn::usage_nn_autograd::tape_h
"""

import os
import re
import sys

# Pages whose C++ is compiled: these, and those of docs/.
PAGES = ("README.md",)

# Folders whose headers no user includes.
PRIVATE = ("tests/",)

CLASS = re.compile(r"(template <[^;{]*>\s)?(class|struct)\b")

# Result type of every block: constructible from any returned value.
PREAMBLE = """\
namespace {
struct UsageResult {
  UsageResult() = default;
  template <typename T>
  UsageResult(T&&) {}
};
}  // namespace
"""


class Block:
    """Lines of code, and the number of the first one in its header."""

    def __init__(self, number, lines):
        self.number = number
        self.lines = lines


class Folder:
    """Files whose usage has the same words: headers or pages, {path: lines}, and
    the path and lines of the words, if there are any."""

    def __init__(self, name, files, words=None, words_lines=()):
        self.usage = "usage_" + name
        self.files = files
        self.words = words
        self.words_lines = words_lines


def comments_of(lines):
    """Yields (number of the first line, lines) of comments that show usage."""
    begin = None
    for index, line in enumerate(lines + [""]):
        if line.startswith("//"):
            begin = index if begin is None else begin
            continue
        if begin is not None and (begin == 0 or CLASS.match(
                "\n".join(lines[index:index + 3]))):
            yield begin + 1, lines[begin:index]
        begin = None


def runs_of(first, comment):
    """Yields (number, lines) of each indented run, empty lines included."""
    run, number = [], None
    for offset, line in enumerate(comment + ["// end"]):
        if re.match(r"//   ", line):
            number = first + offset if number is None else number
            run.append(line[2:])
        elif line == "//" and run:
            run.append("")
        else:
            while run and not run[-1]:
                run.pop()
            if run:
                yield number, run
            run, number = [], None


def is_page(path):
    return path.endswith(".md")


def blocks_of_page(lines):
    """Returns the ```cpp blocks of a page."""
    blocks = []
    inside = False
    for number, line in enumerate(lines, start=1):
        if line.startswith("```"):
            inside = line == "```cpp"
            if inside:
                blocks.append(Block(number + 1, []))
        elif inside:
            blocks[-1].lines.append(line)
    return blocks


def blocks_of(path, lines):
    """Returns the blocks of code of a header or a page."""
    if is_page(path):
        return blocks_of_page(lines)
    return [
        Block(number, [line[3:] for line in run])
        for first, comment in comments_of(lines)
        for number, run in runs_of(first, comment)
        if re.match(r"   \S", run[0])
    ]


def begins_definition(line):
    """Returns whether the definition of a class or function begins here."""
    if re.match(r"(class|struct|template|enum)\b", line):
        return True
    # Matches type, name and parameters, but no call, control flow or lambda.
    return bool(
        re.match(r"(?!else|return)[\w:<>,&* ]+ [&*]*[\w:]+\([^\[;]*\)"
                 r"( const)?( override)? \{$", line))


def split(block):
    """Returns (definitions, statements), each a list of (number, line)."""
    definitions, statements = [], []
    in_definition = False
    for number, line in enumerate(block.lines, start=block.number):
        directive = line.startswith("#")
        # Parameters may take two lines.
        after = block.lines[number - block.number + 1:][:line.endswith(",")]
        head = " ".join([line] + [more.strip() for more in after])
        in_definition = in_definition or begins_definition(head)
        where = definitions if in_definition or directive else statements
        where.append((number, line))
        if re.match(r"\}|.*;( *//.*)?$", line) and not line.startswith(" "):
            in_definition = False
    return definitions, statements


def numbered(lines, path):
    """Returns the lines, with #line directives that name the header."""
    text, last = [], None
    for number, line in lines:
        if last is None or number != last + 1:
            text.append('#line %d "%s"' % (number, path))
        text.append(line)
        last = number
    return text


def namespace_of(lines):
    """Returns the first troupe namespace that a header opens."""
    for line in lines:
        found = re.match(r"namespace (troupe[\w:]*) \{", line)
        if found:
            return found.group(1)
    return "troupe"


def includes_itself(block, path):
    return '#include "%s"' % path in block.lines


def is_include(line):
    return line.startswith("#include ")


def has_main(block):
    return any(line.startswith("int main(") for line in block.lines)


def usage_of(path, lines, usage):
    """Returns the source of one file's blocks, without includes; `usage`: the
    namespace that stands for `usage`."""
    name = os.path.basename(path).replace(".", "_")
    namespace = "troupe" if is_page(path) else namespace_of(lines)
    text = []
    for block in blocks_of(path, lines):
        definitions, statements = split(block)
        if includes_itself(block, path):
            text += numbered(definitions, path)
            continue
        if is_page(path):
            definitions = [d for d in definitions if not is_include(d[1])]
        # A page may have several programs.
        program = "::program%d" % block.number if has_main(block) else ""
        text.append("namespace %s::%s::%s%s {" % (namespace, usage, name, program))
        text += numbered(definitions, path)
        # ASSERT_EQ() returns nothing.
        asserts = any("ASSERT_" in line for _, line in statements)
        # The compiler drops an inline function that nobody calls, once it has
        # checked it.
        text.append("inline %s Line%d() {" % (
            "void" if asserts else "UsageResult", block.number))
        text += numbered(statements, path)
        text += ["return;" if asserts else "return {};", "}", "}"]
    return text


def program_of(lines, number=1):
    """Returns a page's block that has its first, or `number`-th, main()."""
    programs = [block for block in blocks_of_page(lines)
                if has_main(block)]
    if len(programs) < number:
        raise ValueError("the page has %d blocks with a main()" % len(programs))
    return "\n".join(programs[number - 1].lines) + "\n"


def includes_of(folder):
    """Yields the includes of a folder's files, then those of its words."""
    for path, lines in folder.files.items():
        blocks = blocks_of(path, lines)
        if is_page(path):
            yield from (line for b in blocks for line in b.lines if is_include(line))
        elif not any(includes_itself(b, path) for b in blocks):
            yield '#include "%s"' % path
    for line in folder.words_lines:
        # Includes further down may depend on a condition.
        if line.startswith(("namespace ", "#ifdef ", "#if ")):
            return
        if is_include(line):
            yield line


def words_of(folder):
    """Returns the lines that include a folder's words. Whatever they include is
    included before, so only their own namespaces get the other name."""
    if not folder.words:
        return []
    return ["#define usage " + folder.usage,
            '#include "%s"' % folder.words,
            "#undef usage"]


def source_of(folders):
    """Returns the source for the files of these folders."""
    text = list(dict.fromkeys(
        line for folder in folders for line in includes_of(folder)))
    text.append(PREAMBLE)
    for folder in folders:
        text += words_of(folder)
        for path, lines in folder.files.items():
            text += usage_of(path, lines, folder.usage)
    return "\n".join(text) + "\n"


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def headers_under(root):
    """Yields the paths of a workspace's headers that show usage; leaves out
    other workspaces inside it."""
    for folder, folders, names in os.walk(root):
        if folder != root and "WORKSPACE" in names:
            folders.clear()
            continue
        folders[:] = [
            f for f in folders
            if not f.startswith((".", "bazel-"))
            and not os.path.islink(os.path.join(folder, f))
        ]
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if path.endswith(".h") and not path.startswith(PRIVATE):
                if blocks_of(path, read_lines(os.path.join(root, path))):
                    yield path


def pages_under(root):
    """Yields the paths of the pages that show C++."""
    folder = os.path.join(root, "docs")
    docs = os.listdir(folder) if os.path.isdir(folder) else []
    for path in [*PAGES, *("docs/" + name for name in sorted(docs))]:
        full = os.path.join(root, path)
        if is_page(path) and os.path.exists(full) and blocks_of_page(
                read_lines(full)):
            yield path


def missing(root, compiled, excused=()):
    """Returns a message for each header whose usage is not compiled."""
    shown = set(headers_under(root)) | set(pages_under(root))
    folders = tuple(e for e in excused if e.endswith("/"))
    excused_here = {path for path in shown if path.startswith(folders)}
    report = [
        "%s: its usage is not compiled; %s" % (
            path, "//:pages lacks it" if is_page(path) else
            "no target of tests/usage/BUILD depends on its library")
        for path in sorted(
            shown - set(compiled) - set(excused) - excused_here)
    ]
    report += [
        "%s: named in tests/usage/BUILD, but shows no usage; delete the line"
        % path for path in excused if path not in shown | set(folders)
    ]
    return report


def folders_of(arguments):
    """Reads the folders that the arguments of `source` name."""
    folders = []
    for argument in arguments:
        option, _, value = argument.partition("=")
        if option == "--folder":
            folders.append(Folder(value, {}))
        elif option == "--words":
            folders[-1].words = value
            folders[-1].words_lines = read_lines(value)
        else:
            folders[-1].files[argument] = read_lines(argument)
    return folders


def main(arguments):
    command, *rest = arguments
    if command == "source":
        sys.stdout.write(source_of(folders_of(rest)))
        return 0
    if command == "program":
        sys.stdout.write(program_of(read_lines(rest[0]), int(rest[1])))
        return 0
    root, *paths = rest
    compiled = [header for path in paths if path.endswith(".txt")
                for header in read_lines(path)]
    report = missing(root, compiled,
                     [path for path in paths if not path.endswith(".txt")])
    for line in report:
        print(line)
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
