// Writes a file under another name and puts it in the place of `path` in one
// step, so that a crash leaves the old file or the new one, never a part.
//
//   absl::Status status = ReplaceFile(files, path, [&](const std::string& to) {
//     return base::WriteWholeFile(files, to, text);     // synced
//   });
//
// The other name is `path` + ".saving"; a file that a crash has left there is
// overwritten. After an error `path` is as before, and the other file is
// removed; if only the folder's list of names could not be synced, `path` is
// the new file, and the old one has the other name. A lock on the other file
// keeps other writers of `path` out.

#ifndef TROUPE_INTERNAL_REPLACE_FILE_H_
#define TROUPE_INTERNAL_REPLACE_FILE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/files/file_system.h"

namespace troupe {

// `write` creates the file that it gets, writes, syncs and closes it.
//   kInvalidArgument: `path` is a folder, or empty.
//   kUnavailable: another thread or process writes to `path` now.
//   other: of `write`, or of the file system.
absl::Status ReplaceFile(
    base::FileSystem& files, const std::string& path,
    absl::FunctionRef<absl::Status(const std::string&)> write);

}  // namespace troupe

#endif  // TROUPE_INTERNAL_REPLACE_FILE_H_
