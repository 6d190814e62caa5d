// Files and folders behind an interface, so that a test can fill the disk at
// any write and break it at any read.
//
//   PosixFileSystem files;
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
//                           files.Create("out/a.safetensors"));
//   TROUPE_RETURN_IF_ERROR(file->Append(bytes));
//   TROUPE_RETURN_IF_ERROR(file->Sync());      // on the disk, not in a cache
//   TROUPE_RETURN_IF_ERROR(file->Close());
//
// Every error is one line that names the operation, the path, the system's
// reason and what to do, such as "cannot write out/a.safetensors: No space left
// on device; free space there or write to another disk".
//
// Threads: a FileSystem may be used from any number of threads at once, and so
// may a ReadableFile; a WritableFile from one at a time. Calls block.

#ifndef BASE_FILE_SYSTEM_H_
#define BASE_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::base {

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Returns when the disk holds everything appended so far.
  virtual absl::Status Sync() = 0;
  // The last call. Without it the destructor closes and errors are lost.
  virtual absl::Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::int64_t size() const = 0;
  // Fills `into` from byte `offset` on; kDataLoss where the file ends before.
  virtual absl::Status ReadAt(std::int64_t offset,
                              absl::Span<char> into) const = 0;
};

// A lock that this process holds until the object is destroyed. The system
// frees it when the process ends, however that happens: none is ever stale.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A new file, or an emptied old one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      const std::string& path) = 0;
  // A new file, or the end of an old one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenToAppend(
      const std::string& path) = 0;
  // A regular file for reading.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      const std::string& path) = 0;
  // What a file, a pipe or a terminal gives until its end; waits for whoever
  // writes to a pipe.
  //   kResourceExhausted: it is more than `bytes_max` bytes.
  virtual absl::StatusOr<std::string> ReadToEnd(const std::string& path,
                                                std::int64_t bytes_max) = 0;

  // Makes the folder and those above it; ok where it is there already.
  virtual absl::Status CreateFolder(const std::string& path) = 0;
  // Returns when the disk holds the folder's list of names.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // The names in a folder, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;

  // Gives the file or folder `from` the name `to`, which nothing has.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // Two files or folders change names, in one step where the disk's file
  // system can do it.
  virtual absl::Status Exchange(const std::string& a, const std::string& b) = 0;
  // Removes a file, a link, or a folder with everything in it.
  virtual absl::Status RemoveAll(const std::string& path) = 0;

  // Locks the file `path` without waiting; makes it where it is not there, and
  // leaves it there. `holder` says in one line who this is, for the message
  // that others get: "process 4711 on node3".
  //   kUnavailable: it is locked, by this process or another; says by whom.
  //   kUnimplemented: the disk's file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      const std::string& path, absl::string_view holder) = 0;

  // Makes a symbolic link to `target` by the name `path`, which nothing has.
  // `target` is relative to the folder of `path`, or absolute; it may be
  // missing.
  virtual absl::Status MakeLink(const std::string& target,
                                const std::string& path) = 0;
  // What the symbolic link `path` points to, as it was written.
  //   kNotFound: there is nothing. kInvalidArgument: it is no link.
  virtual absl::StatusOr<std::string> ReadLink(const std::string& path) = 0;
};

// The real one.
class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenToAppend(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      const std::string& path) override;
  absl::StatusOr<std::string> ReadToEnd(const std::string& path,
                                        std::int64_t bytes_max) override;
  absl::Status CreateFolder(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override;
  bool Exists(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Exchange(const std::string& a, const std::string& b) override;
  absl::Status MakeLink(const std::string& target,
                        const std::string& path) override;
  absl::StatusOr<std::string> ReadLink(const std::string& path) override;
  absl::Status RemoveAll(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      const std::string& path, absl::string_view holder) override;
};

// "cannot <verb> <path>: <reason>; <what to do>", with the code of `error`, an
// errno.
absl::Status FileError(int error, absl::string_view verb,
                       absl::string_view path);

// FileSystem::Exchange() for disks that cannot do it in one step. After an
// error both have their old names, or the error says where `b` is. After a
// crash either may be missing; what was `b` may lie in `a` + kAsideSuffix, a
// name that later calls, and whoever cleans up what begins with `a`, remove.
inline constexpr char kAsideSuffix[] = ".aside";
absl::Status ExchangeByRenames(FileSystem& files, const std::string& a,
                               const std::string& b);

// Makes the folder and those above it; one that is new is on the disk, with its
// name, when this returns.
absl::Status CreateFolderOnDisk(FileSystem& files, const std::string& path);

// A whole file of at most `bytes_max` bytes, as text or as bytes.
//   kResourceExhausted: it is larger.
absl::StatusOr<std::string> ReadWholeFile(FileSystem& files,
                                          const std::string& path,
                                          std::int64_t bytes_max);
absl::StatusOr<std::vector<std::uint8_t>> ReadBytes(FileSystem& files,
                                                    const std::string& path,
                                                    std::int64_t bytes_max);
// Creates, appends, syncs and closes.
absl::Status WriteWholeFile(FileSystem& files, const std::string& path,
                            absl::string_view contents);

// "folder/name"; `name` alone where the folder is empty.
std::string JoinPath(absl::string_view folder, absl::string_view name);

}  // namespace troupe::base

#endif  // BASE_FILE_SYSTEM_H_
