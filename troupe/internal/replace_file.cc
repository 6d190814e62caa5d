#include "troupe/internal/replace_file.h"

#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"

namespace troupe {
namespace {

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::Status ReplaceFile(
    base::FileSystem& files, const std::string& path,
    absl::FunctionRef<absl::Status(const std::string&)> write) {
  if (path.empty() || path.back() == '/' || files.List(path).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot save to \"", path,
                     "\", which is a folder; name a file in it, such as "
                     "model.safetensors"));
  }
  const std::string temporary = absl::StrCat(path, ".saving");
  absl::StatusOr<std::unique_ptr<base::FileLock>> lock =
      files.Lock(temporary, absl::StrCat("process ", getpid()));
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(absl::StrCat(
        path, " is being saved elsewhere: ", lock.status().message(),
        "; let one rank save, or give each rank a path"));
  }
  // A file system without locks leaves it to the caller.
  if (!lock.ok() && !absl::IsUnimplemented(lock.status())) {
    return lock.status();
  }
  const bool replaces = files.Exists(path);
  absl::Status status = write(temporary);
  if (status.ok()) {
    status = replaces ? files.Exchange(temporary, path)
                      : files.Rename(temporary, path);
  }
  if (!status.ok()) {
    files.RemoveAll(temporary).IgnoreError();  // the first error is reported
    return status;
  }
  if (status = files.SyncFolder(FolderOf(path)); !status.ok()) {
    return base::WithMessage(
        status,
        absl::StrCat(path, " is saved, but a crash may still undo that: ",
                     status.message()));
  }
  return replaces ? files.RemoveAll(temporary) : absl::OkStatus();
}

}  // namespace troupe
