// Recognises common formats of files by their first bytes, so that a reader of
// another format can name what it was given, and say what to do.
//
//   TROUPE_RETURN_IF_ERROR(
//       RefuseForeignFormat(head, "train.bin", "not a file of tokens"));
//   // train.bin: an array of NumPy (.npy), not a file of tokens; write its
//   // numbers alone (array.tofile(path)), or read it with your own program
//
// It knows the pointers that git-lfs leaves in place of large files, archives,
// tables, arrays, checkpoints, pictures and pages of the web. It never says
// that a file is of a format, only that it begins as such files do: call it
// before reading a format without a magic number of its own, or after a magic
// number was not found.

#ifndef BASE_FOREIGN_FORMAT_H_
#define BASE_FOREIGN_FORMAT_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe::base {

// Number of first bytes of a file that are enough to recognise all formats.
inline constexpr std::size_t kFormatHeadBytes = 512;

// Selects formats for which a reader of weights has advice of its own.
enum class Contents { kOther, kNumPy, kPickle, kSafetensors, kWeights };

struct ForeignFormat {
  absl::string_view name;    // "a gzip file"
  absl::string_view advice;  // "unpack it"
  Contents contents = Contents::kOther;
  bool is_text = false;  // whether it is text that may be read as such
};

// Returns the format of a file that begins with `head`; nullopt: not known.
std::optional<ForeignFormat> RecogniseFormat(absl::string_view head);

// Returns ok if RecogniseFormat() knows no format; otherwise
//   kInvalidArgument: "<path>: <name>, <instead_of>; <advice>".
absl::Status RefuseForeignFormat(absl::string_view head, absl::string_view path,
                                 absl::string_view instead_of);

}  // namespace troupe::base

#endif  // BASE_FOREIGN_FORMAT_H_
