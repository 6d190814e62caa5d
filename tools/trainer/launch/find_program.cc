#include "tools/trainer/launch/find_program.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"

namespace troupe::tools {
namespace {

bool IsExecutable(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// Returns why a file cannot be executed, and what to do.
absl::Status Refused(const std::string& name) {
  const std::string option = absl::StrCat("--program=", name);
  struct stat status;
  if (stat(name.c_str(), &status) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", std::generic_category().message(errno),
                     "; write the path of a program"));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is no file; write the path of a program"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      option, " is not executable; allow it by \"chmod +x ", name,
      "\", or start its interpreter: --program=python3 -- ", name));
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& search_path) {
  if (name.find('/') != std::string::npos) {
    if (IsExecutable(name)) return name;
    return Refused(name);
  }
  for (absl::string_view folder : absl::StrSplit(search_path, ':')) {
    const std::string path =
        base::JoinPath(folder.empty() ? "." : std::string(folder), name);
    if (IsExecutable(path)) return path;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--program=", name, " is in no folder of PATH; write --program=./", name,
      " for a program of this folder"));
}

}  // namespace troupe::tools
