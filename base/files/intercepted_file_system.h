// A file system that calls a hook before each operation on another one: tests
// and simulations use it to count, wait, or fail.
//
//   class Counting : public base::InterceptedFileSystem {
//    public:
//     using InterceptedFileSystem::InterceptedFileSystem;
//     absl::Status BeforeChange(const char*, const std::string&) override {
//       ++changes;
//       return absl::OkStatus();
//     }
//     int changes = 0;
//   };
//   PosixFileSystem disk;
//   Counting files(disk);
//
// If a hook returns an error, the operation returns it instead of running; an
// Append or WriteAt first writes the first half, as on a full disk.
//
// Threads: the same as for the other file system, if the hooks permit it.

#ifndef BASE_FILES_INTERCEPTED_FILE_SYSTEM_H_
#define BASE_FILES_INTERCEPTED_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "base/files/file_system.h"

namespace troupe::base {

class InterceptedFileSystem : public FileSystem {
 public:
  // `inner` outlives it. `syncs`: whether Sync and SyncFolder, after their
  // hook, reach the disk.
  explicit InterceptedFileSystem(FileSystem& inner, bool syncs = true)
      : inner_(inner), syncs_(syncs) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenToAppend(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<SharedFile>> OpenToShare(
      const std::string& path, std::int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      const std::string& path) override;
  absl::StatusOr<std::string> ReadToEnd(const std::string& path,
                                        std::int64_t bytes_max) override;
  absl::Status CreateFolder(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override;
  bool Exists(const std::string& path) override { return inner_.Exists(path); }
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Exchange(const std::string& a, const std::string& b) override;
  absl::Status MakeLink(const std::string& target,
                        const std::string& path) override;
  absl::StatusOr<std::string> ReadLink(const std::string& path) override;
  absl::Status RemoveAll(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      const std::string& path, absl::string_view holder) override;

 protected:
  // Hook before Create, OpenToShare, Append, WriteAt, Sync, Close,
  // CreateFolder, SyncFolder, Rename, Exchange, MakeLink, RemoveAll and Lock;
  // `verb` as in "cannot <verb> <path>".
  virtual absl::Status BeforeChange(const char* verb,
                                    const std::string& path) = 0;
  // Hook before Open, ReadAt, ReadToEnd, List and ReadLink.
  virtual absl::Status BeforeRead(const std::string& /*path*/) {
    return absl::OkStatus();
  }

 private:
  class Written;
  class Shared;
  class Read;

  FileSystem& inner_;
  const bool syncs_;
};

}  // namespace troupe::base

#endif  // BASE_FILES_INTERCEPTED_FILE_SYSTEM_H_
