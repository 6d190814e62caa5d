// An anonymous file whose size is fixed, and its mapping.
//
//   TROUPE_ASSIGN_OR_RETURN(SealedFile file, SealedFile::Create("demo", 4096));
//   SendDescriptor(file.fd());  // by SCM_RIGHTS; then, at the other end:
//   TROUPE_ASSIGN_OR_RETURN(SealedFile same,
//                           SealedFile::Open(std::move(received)));
//
// It has no name, and ends with the last process that has it open or mapped.
// All memory is reserved at once: a machine without enough memory gives an
// error here, not a signal later. Threads: any.

#ifndef COMM_SHM_SEALED_FILE_H_
#define COMM_SHM_SEALED_FILE_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/owned_fd.h"

namespace troupe::comm {

class SealedFile {
 public:
  // Creates a file of zeros.
  //   kResourceExhausted and others: there is not enough memory.
  static absl::StatusOr<SealedFile> Create(const char* name, std::size_t bytes);
  // Maps a file of Create(), in another process or this one.
  //   kInvalidArgument: it is another kind of file, or its size is not sealed.
  static absl::StatusOr<SealedFile> Open(base::OwnedFd file);

  SealedFile() = default;
  SealedFile(SealedFile&& other) noexcept { *this = std::move(other); }
  SealedFile& operator=(SealedFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SealedFile();

  int fd() const { return file_.get(); }
  // Closes the descriptor; the mapping stays.
  void CloseDescriptor() { file_.reset(); }
  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  SealedFile(base::OwnedFd file, char* data, std::size_t bytes)
      : file_(std::move(file)), data_(data), bytes_(bytes) {}
  static absl::StatusOr<SealedFile> Map(base::OwnedFd file, std::size_t bytes);

  base::OwnedFd file_;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::comm

#endif  // COMM_SHM_SEALED_FILE_H_
