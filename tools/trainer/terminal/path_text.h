// Checks a path that a user wrote, in an option or in a configuration.
//
//   WrongPath("runs/mnist");       // ""
//   WrongPath("~/runs/mnist");     // "must have the home folder written ..."
//
// A pure function; it does not look at the disk.

#ifndef TOOLS_TRAINER_TERMINAL_PATH_TEXT_H_
#define TOOLS_TRAINER_TERMINAL_PATH_TEXT_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace troupe::tools {

// Returns what the path must be, in words that begin with "must"; empty if
// nothing is wrong. A path may not begin with "~", which only a shell replaces
// by the home folder, and only at the beginning of a word, nor have a NUL, at
// which the system would cut it.
inline std::string WrongPath(absl::string_view path) {
  if (absl::StrContains(path, '\0')) return "must be a path without a NUL";
  if (!absl::StartsWith(path, "~")) return "";
  return "must have the home folder written out ($HOME on a command line), "
         "since only a shell reads \"~\"; a name that begins so is \"./~\"";
}

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_PATH_TEXT_H_
