// A file descriptor with one owner, whose destructor closes it.
//
//   OwnedFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
//   if (!null.valid()) return absl::ErrnoToStatus(errno, "/dev/null");
//   const int fd = null.get();
//
// Threads: one at a time.

#ifndef BASE_FILES_OWNED_FD_H_
#define BASE_FILES_OWNED_FD_H_

#include <unistd.h>

#include <utility>

namespace troupe::base {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~OwnedFd() { reset(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Returns the descriptor, which the caller must close.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace troupe::base

#endif  // BASE_FILES_OWNED_FD_H_
