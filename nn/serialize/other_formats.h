// Recognises files that users take for safetensors files, by their first bytes.
//
//   OtherFormat("version https://git-lfs.github.com/spec/v1\noid sha256:...");
//   // "a pointer of git-lfs; fetch the file itself (git lfs pull)"
//
// A pure function. It is called for files that the reader has refused: a number
// of 8 bytes, with which a safetensors file begins, can look like another mark.

#ifndef NN_SERIALIZE_OTHER_FORMATS_H_
#define NN_SERIALIZE_OTHER_FORMATS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe::nn {

// Returns what the file is and what to do, in words that complete "FILE is ";
// empty if no known format begins with `head`: the file's first
// base::kFormatHeadBytes, or all of it.
std::string OtherFormat(absl::string_view head);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_OTHER_FORMATS_H_
