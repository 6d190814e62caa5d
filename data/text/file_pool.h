// Many files to read, of which only some are open at once, so that a process
// may use more of them than it may have open (ulimit -n, often 1024).
//
//   auto pool = std::make_shared<FilePool>(disk, /*open_max=*/128);
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::ReadableFile> file,
//                           FilePool::Open(pool, "shards/000.bin"));
//   TROUPE_RETURN_IF_ERROR(file->ReadAt(0, bytes));
//
// A file that is read while it is closed is opened by its path again, in place
// of the one that was not read for the longest time; one of another size than
// before is an error. If the system refuses to open one more, others are closed
// first. A file stays open while a thread reads it.
//
// Threads: any number may read at once. Cost of a read: a lock, and of a closed
// file one open() more.

#ifndef DATA_TEXT_FILE_POOL_H_
#define DATA_TEXT_FILE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file_system.h"

namespace troupe::data {

class FilePool {
 public:
  using OpenFile = std::shared_ptr<const base::ReadableFile>;

  // `open_max` is at least 1.
  FilePool(std::shared_ptr<base::FileSystem> files, std::size_t open_max)
      : files_(std::move(files)), open_max_(open_max) {}

  // Returns a file of the pool, which lives as long as the file. Errors:
  // FileSystem::Open(). ReadAt() returns them, too.
  static absl::StatusOr<std::unique_ptr<base::ReadableFile>> Open(
      std::shared_ptr<FilePool> pool, const std::string& path);

  // Returns the open file of this path.
  absl::StatusOr<OpenFile> Get(const std::string& path);

 private:
  struct Entry {
    std::string path;
    OpenFile file;
  };

  absl::StatusOr<OpenFile> OpenOne(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<base::FileSystem> files_;
  const std::size_t open_max_;
  absl::Mutex mutex_;
  // Open files; the one that was read last comes first.
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::list<Entry>::iterator> by_path_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::data

#endif  // DATA_TEXT_FILE_POOL_H_
