// Reads and writes of files in one call (file_system.h).

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/files/file_system.h"

namespace troupe::base {
namespace {

// `Contents` is a container of bytes.
template <typename Contents>
absl::StatusOr<Contents> ReadAll(FileSystem& files, const std::string& path,
                                 std::int64_t bytes_max) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.Open(path));
  if (file->size() > bytes_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot read ", path, ": it has ", file->size(), " bytes, at most ",
        bytes_max, " are expected; check the path"));
  }
  Contents contents(static_cast<std::size_t>(file->size()), 0);
  TROUPE_RETURN_IF_ERROR(
      file->ReadAt(0, absl::MakeSpan(reinterpret_cast<char*>(contents.data()),
                                     contents.size())));
  return contents;
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(FileSystem& files,
                                          const std::string& path,
                                          std::int64_t bytes_max) {
  return ReadAll<std::string>(files, path, bytes_max);
}

absl::StatusOr<std::vector<std::uint8_t>> ReadBytes(FileSystem& files,
                                                    const std::string& path,
                                                    std::int64_t bytes_max) {
  return ReadAll<std::vector<std::uint8_t>>(files, path, bytes_max);
}

absl::Status WriteWholeFile(FileSystem& files, const std::string& path,
                            absl::string_view contents) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.Create(path));
  TROUPE_RETURN_IF_ERROR(file->Append(contents));
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

std::string JoinPath(absl::string_view folder, absl::string_view name) {
  const bool needs_slash = !folder.empty() && folder.back() != '/';
  return absl::StrCat(folder, needs_slash ? "/" : "", name);
}

}  // namespace troupe::base
