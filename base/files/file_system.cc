#include "base/files/file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::base {
namespace {

// A file descriptor with its path, for messages.
class OpenFile {
 public:
  OpenFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_;
  const std::string path_;
};

int OpenRetrying(const std::string& path, int flags) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

absl::Status WriteAll(const OpenFile& file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(file.fd(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "write", file.path());
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(int fd, std::string path) : file_(fd, std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    return WriteAll(file_, bytes);
  }

  absl::Status Sync() override {
    if (fsync(file_.fd()) != 0) return FileError(errno, "write", file_.path());
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (file_.Close() != 0) return FileError(errno, "write", file_.path());
    return absl::OkStatus();
  }

 private:
  OpenFile file_;
};

class PosixSharedFile : public SharedFile {
 public:
  PosixSharedFile(int fd, std::string path) : file_(fd, std::move(path)) {}

  absl::Status Resize(std::int64_t bytes) {
    int done;
    do {
      done = ftruncate(file_.fd(), bytes);
    } while (done != 0 && errno == EINTR);
    return done == 0 ? absl::OkStatus()
                     : FileError(errno, "write", file_.path());
  }

  absl::Status WriteAt(std::int64_t offset, absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = pwrite(file_.fd(), bytes.data(), bytes.size(), offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileError(errno, "write", file_.path());
      bytes.remove_prefix(static_cast<std::size_t>(n));
      offset += n;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (fsync(file_.fd()) != 0) return FileError(errno, "write", file_.path());
    return absl::OkStatus();
  }

  absl::Status Close() override {
    if (file_.Close() != 0) return FileError(errno, "write", file_.path());
    return absl::OkStatus();
  }

 private:
  OpenFile file_;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(int fd, std::string path, std::int64_t size)
      : file_(fd, std::move(path)), size_(size) {}

  std::int64_t size() const override { return size_; }

  absl::Status ReadAt(std::int64_t offset,
                      absl::Span<char> into) const override {
    while (!into.empty()) {
      const ssize_t n = pread(file_.fd(), into.data(), into.size(), offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileError(errno, "read", file_.path());
      if (n == 0) {
        return absl::DataLossError(absl::StrCat(
            file_.path(), " ends at byte ", offset, ", ", into.size(),
            " bytes too early; restore it from a "
            "copy or use an earlier one"));
      }
      into.remove_prefix(static_cast<std::size_t>(n));
      offset += n;
    }
    return absl::OkStatus();
  }

 private:
  OpenFile file_;
  const std::int64_t size_;
};

// Lock by flock(): it belongs to the open file, so that two jobs of one process
// exclude each other too; over NFS it works between hosts.
class PosixFileLock : public FileLock {
 public:
  PosixFileLock(int fd, std::string path) : file_(fd, std::move(path)) {}

  absl::Status Take(absl::string_view holder) {
    while (flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;  // later calls may change it
      if (error == EINTR) continue;
      if (error == EWOULDBLOCK) return HeldBy(ReadHolder());
      const absl::Status failed = FileError(error, "lock", file_.path());
      return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP
                 ? absl::UnimplementedError(failed.message())
                 : failed;
    }
    if (ftruncate(file_.fd(), 0) != 0) {
      return FileError(errno, "write", file_.path());
    }
    TROUPE_RETURN_IF_ERROR(WriteAll(file_, absl::StrCat(holder, "\n")));
    // Synced, so that other hosts of a network file system can read it.
    if (fsync(file_.fd()) != 0) return FileError(errno, "write", file_.path());
    return absl::OkStatus();
  }

 private:
  absl::Status HeldBy(const std::string& holder) const {
    return absl::UnavailableError(
        absl::StrCat("cannot lock ", file_.path(), ": it is held by ",
                     holder.empty() ? "another process" : holder,
                     "; wait for it to end, or stop it, or use another path"));
  }
  // Returns the content of the file, on one line.
  std::string ReadHolder() const {
    char text[256];
    const ssize_t n = pread(file_.fd(), text, sizeof(text), 0);
    if (n <= 0) return "";
    return absl::CHexEscape(absl::StripAsciiWhitespace(
        absl::string_view(text, static_cast<std::size_t>(n))));
  }

  OpenFile file_;
};

absl::string_view WhatToDo(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space there or write to another disk";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case EACCES:
    case EPERM:
      return "change its permissions or use another path";
    case EROFS:
      return "use a path on a disk that may be written";
    case ENOENT:
      return "check the path";
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
      return "something else has that name: use another path or remove it";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    default:
      return "check the disk";
  }
}

std::string ParentOf(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Returns the error of opening `path` to read it. A link whose target is
// missing has the same errno as no file at all.
absl::Status CannotRead(int error, const std::string& path) {
  std::error_code no_link;
  const std::filesystem::path target =
      std::filesystem::read_symlink(path, no_link);
  if (no_link || (error != ENOENT && error != ELOOP)) {
    return FileError(error, "read", path);
  }
  return absl::NotFoundError(
      absl::StrCat("cannot read ", path, ": it is a link to ", target.string(),
                   ", which is not there; restore that or remove the link"));
}

absl::Status NotAFile(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", path, ": it is not a file; check the path"));
}

}  // namespace

absl::Status FileError(int error, absl::string_view verb,
                       absl::string_view path) {
  const absl::StatusCode code = error == EFBIG
                                    ? absl::StatusCode::kResourceExhausted
                                    : absl::ErrnoToStatusCode(error);
  return absl::Status(
      code, absl::StrCat("cannot ", verb, " ", path, ": ", strerror(error),
                         "; ", WhatToDo(error)));
}

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::Create(
    const std::string& path) {
  const int fd = OpenRetrying(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd < 0) return FileError(errno, "create", path);
  return std::make_unique<PosixWritableFile>(fd, path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::OpenToAppend(
    const std::string& path) {
  const int fd = OpenRetrying(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) return FileError(errno, "write", path);
  return std::make_unique<PosixWritableFile>(fd, path);
}

absl::StatusOr<std::unique_ptr<SharedFile>> PosixFileSystem::OpenToShare(
    const std::string& path, std::int64_t bytes) {
  const int fd = OpenRetrying(path, O_WRONLY | O_CREAT);
  if (fd < 0) return FileError(errno, "create", path);
  auto file = std::make_unique<PosixSharedFile>(fd, path);
  // Every writer sets the same size, so that none waits for another.
  TROUPE_RETURN_IF_ERROR(file->Resize(bytes));
  return file;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> PosixFileSystem::Open(
    const std::string& path) {
  // Non-blocking, since opening a pipe of this name must not hang the program.
  const int fd = OpenRetrying(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return CannotRead(errno, path);
  struct stat status;
  const int error = fstat(fd, &status) == 0 ? 0 : errno;
  auto file = std::make_unique<PosixReadableFile>(
      fd, path, error == 0 ? std::int64_t{status.st_size} : 0);
  if (error != 0) return FileError(error, "read", path);
  if (!S_ISREG(status.st_mode)) return NotAFile(path);
  return file;
}

absl::StatusOr<std::string> PosixFileSystem::ReadToEnd(const std::string& path,
                                                       std::int64_t bytes_max) {
  const int fd = OpenRetrying(path, O_RDONLY);
  if (fd < 0) return CannotRead(errno, path);
  const OpenFile file(fd, path);
  std::string contents;
  while (static_cast<std::int64_t>(contents.size()) <= bytes_max) {
    char bytes[4096];
    const ssize_t n = read(file.fd(), bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EISDIR) return NotAFile(path);
    if (n < 0) return FileError(errno, "read", path);
    if (n == 0) return contents;
    contents.append(bytes, static_cast<std::size_t>(n));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot read ", path, ": it has more than the ", bytes_max,
                   " bytes that are expected; check the path"));
}

absl::Status PosixFileSystem::CreateFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FileError(error.value(), "create folder", path);
  return absl::OkStatus();
}

absl::Status PosixFileSystem::SyncFolder(const std::string& path) {
  const int fd = OpenRetrying(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return FileError(errno, "open folder", path);
  OpenFile folder(fd, path);
  // Some file systems sync folders by themselves and lack this call.
  if (fsync(folder.fd()) != 0 && errno != EINVAL) {
    return FileError(errno, "write folder", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> PosixFileSystem::List(
    const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return FileError(errno, "list folder", path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  closedir(folder);
  if (error != 0) return FileError(error, "list folder", path);
  std::sort(names.begin(), names.end());
  return names;
}

bool PosixFileSystem::Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

absl::Status PosixFileSystem::Rename(const std::string& from,
                                     const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return FileError(errno, absl::StrCat("rename ", from, " to"), to);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::Exchange(const std::string& a,
                                       const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) ==
      0) {
    return absl::OkStatus();
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return FileError(errno, absl::StrCat("rename ", a, " to"), b);
  }
  return ExchangeByRenames(*this, a, b);
}

absl::Status PosixFileSystem::MakeLink(const std::string& target,
                                       const std::string& path) {
  if (symlink(target.c_str(), path.c_str()) != 0) {
    return FileError(errno, "make link", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PosixFileSystem::ReadLink(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target =
      std::filesystem::read_symlink(path, error);
  if (error) return FileError(error.value(), "read link", path);
  return target.string();
}

absl::Status PosixFileSystem::RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FileError(error.value(), "remove", path);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixFileSystem::Lock(
    const std::string& path, absl::string_view holder) {
  const int fd = OpenRetrying(path, O_RDWR | O_CREAT);
  if (fd < 0) return FileError(errno, "lock", path);
  auto lock = std::make_unique<PosixFileLock>(fd, path);
  TROUPE_RETURN_IF_ERROR(lock->Take(holder));
  return lock;
}

absl::Status ExchangeByRenames(FileSystem& files, const std::string& a,
                               const std::string& b) {
  const std::string aside = a + kAsideSuffix;
  TROUPE_RETURN_IF_ERROR(files.RemoveAll(aside));  // left by a crash in here
  TROUPE_RETURN_IF_ERROR(files.Rename(b, aside));
  absl::Status status = files.Rename(a, b);
  const bool halfway = status.ok();
  if (halfway) status = files.Rename(aside, a);
  if (status.ok()) return status;
  const bool back =
      (!halfway || files.Rename(b, a).ok()) && files.Rename(aside, b).ok();
  if (back) return status;
  return base::WithMessage(
      status, absl::StrCat(status.message(), "; what was ", b, " is called ",
                           aside, " now"));
}

absl::Status CreateFolderOnDisk(FileSystem& files, const std::string& path) {
  const bool is_new = !files.Exists(path);
  TROUPE_RETURN_IF_ERROR(files.CreateFolder(path));
  return is_new ? files.SyncFolder(ParentOf(path)) : absl::OkStatus();
}

}  // namespace troupe::base
