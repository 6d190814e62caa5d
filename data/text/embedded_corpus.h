// A text that is part of the program: sources of Troupe, some 700 KB of C++.
//
//   const absl::string_view corpus = EmbeddedCorpus();
//   TROUPE_ASSIGN_OR_RETURN(TokenizerPtr chars, MakeCharTokenizer(corpus));
//
// These are the headers and sources of base/, data/ and parts of nn/ in the
// order of their paths, as they were when the program was built. The text is
// ASCII, and below 1 MiB (embed_text.py rejects more).

#ifndef DATA_TEXT_EMBEDDED_CORPUS_H_
#define DATA_TEXT_EMBEDDED_CORPUS_H_

#include "absl/strings/string_view.h"

namespace troupe::data {

absl::string_view EmbeddedCorpus();

}  // namespace troupe::data

#endif  // DATA_TEXT_EMBEDDED_CORPUS_H_
