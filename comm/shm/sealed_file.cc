#include "comm/shm/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::comm {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

absl::StatusOr<SealedFile> SealedFile::Create(const char* name,
                                              std::size_t bytes) {
  base::OwnedFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    const absl::Status status = absl::ErrnoToStatus(
        error, absl::StrCat("cannot have ", bytes, " bytes of shared memory"));
    return base::WithMessage(
        status,
        absl::StrCat(status.message(),
                     error == EFBIG
                         ? "; raise the limit on file sizes (ulimit -f), which "
                           "holds for files of memory, too"
                         : "; free memory, or let processes talk by TCP"));
  }
  if (::fcntl(file.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "cannot seal shared memory");
  }
  return Map(std::move(file), bytes);
}

absl::StatusOr<SealedFile> SealedFile::Open(base::OwnedFd file) {
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) {
    return absl::ErrnoToStatus(errno, "fstat of shared memory");
  }
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || about.st_size <= 0) {
    return absl::InvalidArgumentError(
        "the shared memory that came is not sealed against shrinking");
  }
  return Map(std::move(file), static_cast<std::size_t>(about.st_size));
}

absl::StatusOr<SealedFile> SealedFile::Map(base::OwnedFd file,
                                           std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, "cannot map shared memory");
  }
  return SealedFile(std::move(file), static_cast<char*>(memory), bytes);
}

SealedFile::~SealedFile() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace troupe::comm
