// Interface to files and folders, so that a test can fill the disk at any write
// and make any read fail.
//
//   PosixFileSystem files;
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
//                           files.Create("out/a.safetensors"));
//   TROUPE_RETURN_IF_ERROR(file->Append(bytes));
//   TROUPE_RETURN_IF_ERROR(file->Sync());      // the disk holds the data
//   TROUPE_RETURN_IF_ERROR(file->Close());
//
// Every error is one line that names the operation, the path, the system's
// reason and a remedy, such as "cannot write out/a.safetensors: No space left
// on device; free space there or write to another disk".
//
// Several writers, also in different processes, fill a file of a known size
// together:
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> mine,
//                           files.OpenToShare("out/b", /*bytes=*/2000));
//   TROUPE_RETURN_IF_ERROR(mine->WriteAt(1000, bytes));
//   TROUPE_RETURN_IF_ERROR(mine->Sync());
//   TROUPE_RETURN_IF_ERROR(mine->Close());
//
// Threads: a FileSystem and a ReadableFile may be used by any number of threads
// at once, a WritableFile or a SharedFile by one at a time. Calls block.

#ifndef BASE_FILES_FILE_SYSTEM_H_
#define BASE_FILES_FILE_SYSTEM_H_

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
  // Closes the file; the last call. Without it the destructor closes the file,
  // and errors are lost.
  virtual absl::Status Close() = 0;
};

// One writer's handle of a file that several writers fill, each its own ranges.
class SharedFile {
 public:
  virtual ~SharedFile() = default;
  // Writes `bytes` from byte `offset` of the file on.
  virtual absl::Status WriteAt(std::int64_t offset,
                               absl::string_view bytes) = 0;
  // Returns when the disk holds everything that this handle has written.
  virtual absl::Status Sync() = 0;
  // Does the same as WritableFile::Close().
  virtual absl::Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::int64_t size() const = 0;
  // Reads into all of `into` from byte `offset` on; kDataLoss if the file ends
  // before.
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

  // Opens a new file, or an existing one after emptying it.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      const std::string& path) = 0;
  // Opens a new file, or an existing one at its end.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenToAppend(
      const std::string& path) = 0;
  // Opens a new file of `bytes` zeros, or the file that another writer has made
  // by the same call, with what it has written.
  virtual absl::StatusOr<std::unique_ptr<SharedFile>> OpenToShare(
      const std::string& path, std::int64_t bytes) = 0;
  // Opens a regular file for reading.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      const std::string& path) = 0;
  // Reads a file, a pipe or a terminal until its end; waits for the writer of a
  // pipe.
  //   kResourceExhausted: it has more than `bytes_max` bytes.
  virtual absl::StatusOr<std::string> ReadToEnd(const std::string& path,
                                                std::int64_t bytes_max) = 0;

  // Makes the folder and its parents; ok if it exists already.
  virtual absl::Status CreateFolder(const std::string& path) = 0;
  // Returns when the disk holds the folder's list of names.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // Returns the names in a folder, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;

  // Renames the file or folder `from` to `to`, which must not exist.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // Exchanges the names of two files or folders, in one step if the disk's file
  // system supports that.
  virtual absl::Status Exchange(const std::string& a, const std::string& b) = 0;
  // Removes a file, a link, or a folder with everything in it.
  virtual absl::Status RemoveAll(const std::string& path) = 0;

  // Locks the file `path` without waiting; creates it if it does not exist, and
  // leaves it there. `holder` is one line that identifies this process in the
  // error that others get: "process 4711 on node3".
  //   kUnavailable: it is locked, by this process or another; names the holder.
  //   kUnimplemented: the disk's file system has no locks.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      const std::string& path, absl::string_view holder) = 0;

  // Makes a symbolic link to `target` by the name `path`, which must not exist.
  // `target` is relative to the folder of `path`, or absolute; it may be
  // missing.
  virtual absl::Status MakeLink(const std::string& target,
                                const std::string& path) = 0;
  // Returns the target of the symbolic link `path`, as it was written.
  //   kNotFound: `path` does not exist. kInvalidArgument: it is not a link.
  virtual absl::StatusOr<std::string> ReadLink(const std::string& path) = 0;
};

// FileSystem of the operating system.
class PosixFileSystem : public FileSystem {
 public:
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

// Returns "cannot <verb> <path>: <reason>; <what to do>", with the code of
// `error`, an errno.
absl::Status FileError(int error, absl::string_view verb,
                       absl::string_view path);

// FileSystem::Exchange() for disks that cannot do it in one step. After an
// error both have their old names, or the error says where `b` is. After a
// crash either may be missing; the old `b` may be at `a` + kAsideSuffix, a name
// that later calls remove, and so does a cleanup of names that begin with `a`.
inline constexpr char kAsideSuffix[] = ".aside";
absl::Status ExchangeByRenames(FileSystem& files, const std::string& a,
                               const std::string& b);

// Makes the folder and its parents; the disk holds a new folder, with its name,
// when this returns.
absl::Status CreateFolderOnDisk(FileSystem& files, const std::string& path);

// Return the content of a file of at most `bytes_max` bytes, as text or as
// bytes.
//   kResourceExhausted: it is larger.
absl::StatusOr<std::string> ReadWholeFile(FileSystem& files,
                                          const std::string& path,
                                          std::int64_t bytes_max);
absl::StatusOr<std::vector<std::uint8_t>> ReadBytes(FileSystem& files,
                                                    const std::string& path,
                                                    std::int64_t bytes_max);
// Creates the file, appends `contents`, syncs and closes.
absl::Status WriteWholeFile(FileSystem& files, const std::string& path,
                            absl::string_view contents);

// Returns "folder/name"; `name` alone if the folder is empty.
std::string JoinPath(absl::string_view folder, absl::string_view name);

}  // namespace troupe::base

#endif  // BASE_FILES_FILE_SYSTEM_H_
