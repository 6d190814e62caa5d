"""Writes a C++ source that holds the concatenation of text files.

    embed_text.py FILE... >embedded_corpus.cc
    embed_text.py --header=tools/a.h --function=troupe::tools::Page FILE... >a.cc

The files are taken in the order of their paths, whatever the order of the
arguments, each with its path on a comment line before it. The result defines
troupe::data::EmbeddedCorpus(); or the function that is named, which the header
declares, and then files come without their paths, in the order of the
arguments.
"""

import argparse
import sys

BYTES_MAX = 1 << 20
CHUNK = 100

HEAD = """\
#include "@HEADER@"

namespace @NAMESPACE@ {
namespace {

constexpr char kText[] =
"""

TAIL = """;

}  // namespace

absl::string_view @FUNCTION@() {
  return absl::string_view(kText, sizeof(kText) - 1);
}

}  // namespace @NAMESPACE@
"""


def escaped(data):
    out = []
    for byte in data:
        char = chr(byte)
        if char in "\\\"?" or not 32 <= byte < 127:
            out.append("\\%03o" % byte)
        else:
            out.append(char)
    return "".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--header", default="data/text/embedded_corpus.h")
    parser.add_argument("--function")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    is_corpus = options.function is None
    text = bytearray()
    for path in sorted(options.files) if is_corpus else options.files:
        if is_corpus:
            text += b"// %s\n" % path.encode()
        with open(path, "rb") as source:
            text += source.read()
    if len(text) > BYTES_MAX:
        raise SystemExit("the text has %d bytes, at most %d are embedded"
                         % (len(text), BYTES_MAX))
    function = options.function or "troupe::data::EmbeddedCorpus"
    namespace, _, name = function.rpartition("::")
    lines = ['    "%s"\n' % escaped(text[at:at + CHUNK])
             for at in range(0, len(text), CHUNK)]

    def filled(template):
        return (template.replace("@HEADER@", options.header)
                .replace("@NAMESPACE@", namespace)
                .replace("@FUNCTION@", name))

    sys.stdout.write(filled(HEAD) + "".join(lines).rstrip("\n") + filled(TAIL))


main()
