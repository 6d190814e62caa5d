// The real file system with injected failures.
//
//   FaultyFileSystem files;
//   files.FailAt(7, ENOSPC);          // the 7th change fails, once
//   files.CrashAt(7);                 // the 7th and all later ones do nothing
//   files.FailReadAt(2, EIO);         // the third read fails, once
//   ... use it ...
//   EXPECT_TRUE(files.failed());      // the plan was reached
//
// Changes are counted from 0: Create, OpenToShare, Append, WriteAt, Sync,
// Close, CreateFolder, SyncFolder, Rename, Exchange, MakeLink, RemoveAll, Lock.
// A failing Append or WriteAt writes the first half, as a full disk does. Syncs
// are counted but do not wait for the disk.
// Reads are counted separately: Open, ReadAt, ReadToEnd, List, ReadLink.

#ifndef TESTS_BASE_FAULTY_FILE_SYSTEM_H_
#define TESTS_BASE_FAULTY_FILE_SYSTEM_H_

#include <errno.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/files/intercepted_file_system.h"

namespace troupe::base {

class FaultyFileSystem : public InterceptedFileSystem {
 public:
  FaultyFileSystem() : InterceptedFileSystem(real_, /*syncs=*/false) {}

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
  // One line for each change, such as "append out/a.safetensors".
  const std::vector<std::string>& log() const { return log_; }

 private:
  absl::Status BeforeRead(const std::string& path) override {
    if (reads_++ != read_at_) return absl::OkStatus();
    failed_ = true;
    return FileError(read_error_, "read", path);
  }
  absl::Status BeforeChange(const char* verb,
                            const std::string& path) override {
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
