#include "data/text/file_pool.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

class PooledFile : public base::ReadableFile {
 public:
  PooledFile(std::shared_ptr<FilePool> pool, std::string path,
             std::int64_t size)
      : pool_(std::move(pool)), path_(std::move(path)), size_(size) {}

  std::int64_t size() const override { return size_; }

  absl::Status ReadAt(std::int64_t offset,
                      absl::Span<char> into) const override {
    TROUPE_ASSIGN_OR_RETURN(const FilePool::OpenFile file, pool_->Get(path_));
    if (file->size() != size_) {
      return absl::DataLossError(
          absl::StrCat(path_, " has ", file->size(), " bytes, and had ", size_,
                       " when it was opened; leave it as it is during a run"));
    }
    return file->ReadAt(offset, into);
  }

 private:
  const std::shared_ptr<FilePool> pool_;
  const std::string path_;
  const std::int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<base::ReadableFile>> FilePool::Open(
    std::shared_ptr<FilePool> pool, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const OpenFile file, pool->Get(path));
  return std::make_unique<PooledFile>(std::move(pool), path, file->size());
}

absl::StatusOr<FilePool::OpenFile> FilePool::Get(const std::string& path) {
  const absl::MutexLock lock(&mutex_);
  if (const auto found = by_path_.find(path); found != by_path_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().file;
  }
  if (entries_.size() >= open_max_) CloseOldest();
  TROUPE_ASSIGN_OR_RETURN(OpenFile file, OpenOne(path));
  entries_.push_front({path, std::move(file)});
  by_path_[path] = entries_.begin();
  return entries_.front().file;
}

absl::StatusOr<FilePool::OpenFile> FilePool::OpenOne(const std::string& path) {
  while (true) {
    absl::StatusOr<std::unique_ptr<base::ReadableFile>> file =
        files_->Open(path);
    if (file.ok()) return OpenFile(*std::move(file));
    // kResourceExhausted: the process or the system has too many open files.
    if (entries_.empty() ||
        file.status().code() != absl::StatusCode::kResourceExhausted) {
      return file.status();
    }
    CloseOldest();
  }
}

void FilePool::CloseOldest() {
  by_path_.erase(entries_.back().path);
  entries_.pop_back();
}

}  // namespace troupe::data
