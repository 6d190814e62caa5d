// The real file system, with a plan of failures.
//
//   FaultyFileSystem files;
//   files.FailAt(7, ENOSPC);          // the 7th change fails, once
//   files.CrashAt(7);                 // it and all later ones do nothing
//   files.FailReadAt(2, EIO);         // the third read fails, once
//   ... use it ...
//   EXPECT_TRUE(files.failed());      // the plan was reached
//
// Changes are counted from 0: Create, Append, Sync, Close, CreateFolder,
// SyncFolder, Rename, Exchange, RemoveAll, Lock. A failing Append writes the
// first half, as a full disk does. Syncs are counted but do not wait for the
// disk.
// Reads are counted apart: Open, ReadAt, ReadToEnd, List.

#ifndef TESTS_BASE_FAULTY_FILE_SYSTEM_H_
#define TESTS_BASE_FAULTY_FILE_SYSTEM_H_

#include <errno.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file_system.h"

namespace troupe::base {

class FaultyFileSystem : public FileSystem {
 public:
  void FailAt(int change, int error) {
    at_ = change;
    error_ = error;
    crash_ = false;
  }
  void CrashAt(int change) {
    at_ = change;
    error_ = EIO;
    crash_ = true;
  }
  void FailReadAt(int read, int error) {
    read_at_ = read;
    read_error_ = error;
  }
  bool failed() const { return failed_; }
  // Numbers of changes and reads so far.
  int changes() const { return changes_; }
  int reads() const { return reads_; }
  // One line each: "append out/a.safetensors", for comparing whole.
  const std::vector<std::string>& log() const { return log_; }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override {
    TROUPE_RETURN_IF_ERROR(Change("create", path));
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                            real_.Create(path));
    return std::make_unique<FaultyFile>(*this, path, std::move(file));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenToAppend(
      const std::string& path) override {
    TROUPE_RETURN_IF_ERROR(Change("create", path));
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                            real_.OpenToAppend(path));
    return std::make_unique<FaultyFile>(*this, path, std::move(file));
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      const std::string& path) override {
    TROUPE_RETURN_IF_ERROR(Read(path));
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                            real_.Open(path));
    return std::make_unique<FaultyReadableFile>(*this, path, std::move(file));
  }
  absl::StatusOr<std::string> ReadToEnd(const std::string& path,
                                        std::int64_t bytes_max) override {
    TROUPE_RETURN_IF_ERROR(Read(path));
    return real_.ReadToEnd(path, bytes_max);
  }
  absl::Status CreateFolder(const std::string& path) override {
    TROUPE_RETURN_IF_ERROR(Change("create folder", path));
    return real_.CreateFolder(path);
  }
  absl::Status SyncFolder(const std::string& path) override {
    return Change("sync folder", path);
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override {
    TROUPE_RETURN_IF_ERROR(Read(path));
    return real_.List(path);
  }
  bool Exists(const std::string& path) override { return real_.Exists(path); }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    TROUPE_RETURN_IF_ERROR(Change("rename to", to));
    return real_.Rename(from, to);
  }
  absl::Status Exchange(const std::string& a, const std::string& b) override {
    TROUPE_RETURN_IF_ERROR(Change("exchange", b));
    return real_.Exchange(a, b);
  }
  absl::Status RemoveAll(const std::string& path) override {
    TROUPE_RETURN_IF_ERROR(Change("remove", path));
    return real_.RemoveAll(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      const std::string& path, absl::string_view holder) override {
    TROUPE_RETURN_IF_ERROR(Change("lock", path));
    return real_.Lock(path, holder);
  }

 private:
  class FaultyFile : public WritableFile {
   public:
    FaultyFile(FaultyFileSystem& owner, std::string path,
               std::unique_ptr<WritableFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    absl::Status Append(absl::string_view bytes) override {
      if (absl::Status s = owner_.Change("append", path_); !s.ok()) {
        file_->Append(bytes.substr(0, bytes.size() / 2)).IgnoreError();
        return s;
      }
      return file_->Append(bytes);
    }
    absl::Status Sync() override { return owner_.Change("sync", path_); }
    absl::Status Close() override {
      TROUPE_RETURN_IF_ERROR(owner_.Change("close", path_));
      return file_->Close();
    }

   private:
    FaultyFileSystem& owner_;
    const std::string path_;
    std::unique_ptr<WritableFile> file_;
  };

  class FaultyReadableFile : public ReadableFile {
   public:
    FaultyReadableFile(FaultyFileSystem& owner, std::string path,
                       std::unique_ptr<ReadableFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    std::int64_t size() const override { return file_->size(); }
    absl::Status ReadAt(std::int64_t offset,
                        absl::Span<char> into) const override {
      TROUPE_RETURN_IF_ERROR(owner_.Read(path_));
      return file_->ReadAt(offset, into);
    }

   private:
    FaultyFileSystem& owner_;
    const std::string path_;
    std::unique_ptr<ReadableFile> file_;
  };

  absl::Status Read(const std::string& path) {
    if (reads_++ != read_at_) return absl::OkStatus();
    failed_ = true;
    return FileError(read_error_, "read", path);
  }

  absl::Status Change(const char* verb, const std::string& path) {
    log_.push_back(std::string(verb) + " " + path);
    const int change = changes_++;
    if (at_ < 0 || (crash_ ? change < at_ : change != at_)) {
      return absl::OkStatus();
    }
    failed_ = true;
    return FileError(error_, verb, path);
  }

  PosixFileSystem real_;
  int at_ = -1;
  int error_ = 0;
  bool crash_ = false;
  int read_at_ = -1;
  int read_error_ = 0;
  bool failed_ = false;
  int changes_ = 0;
  std::atomic<int> reads_{0};
  std::vector<std::string> log_;
};

}  // namespace troupe::base

#endif  // TESTS_BASE_FAULTY_FILE_SYSTEM_H_
