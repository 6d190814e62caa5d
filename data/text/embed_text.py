"""Writes a C++ source that holds the concatenation of text files.

    embed_text.py FILE... >embedded_corpus.cc

The files are taken in the order of their paths, whatever the order of the
arguments, each with its path on a comment line before it. The result defines
troupe::data::EmbeddedCorpus().
"""

import sys

BYTES_MAX = 1 << 20
CHUNK = 100

HEAD = """\
#include "data/text/embedded_corpus.h"

namespace troupe::data {
namespace {

constexpr char kCorpus[] =
"""

TAIL = """;

}  // namespace

absl::string_view EmbeddedCorpus() {
  return absl::string_view(kCorpus, sizeof(kCorpus) - 1);
}

}  // namespace troupe::data
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
    corpus = bytearray()
    for path in sorted(sys.argv[1:]):
        corpus += b"// %s\n" % path.encode()
        with open(path, "rb") as source:
            corpus += source.read()
    if len(corpus) > BYTES_MAX:
        raise SystemExit("the corpus has %d bytes, at most %d are embedded"
                         % (len(corpus), BYTES_MAX))
    lines = ['    "%s"\n' % escaped(corpus[at:at + CHUNK])
             for at in range(0, len(corpus), CHUNK)]
    sys.stdout.write(HEAD + "".join(lines).rstrip("\n") + TAIL)


main()
