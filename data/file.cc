#include "data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace troupe::data {
namespace {

absl::Status OpenError(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(
          path, ": no such file; give the folder that holds the data"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          path, ": may not be read by this user; check its permissions"));
    default:
      return absl::UnavailableError(
          absl::StrCat(path, ": cannot be opened: ", std::strerror(error)));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::uint8_t>> ReadFile(const std::string& path,
                                                   std::int64_t bytes_max) {
  // Not blocking: the open of a pipe that nobody writes would wait for ever.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(path, errno);
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0) return OpenError(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is not a regular file"));
  }
  if (info.st_size > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": has ", info.st_size,
                     " bytes, more than the limit of ", bytes_max));
  }
  std::vector<std::uint8_t> bytes(info.st_size);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::DataLossError(absl::StrCat(
          path, ": reading failed at byte ", done, " of ", bytes.size(), ": ",
          got == 0 ? "the file became shorter" : std::strerror(errno)));
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

std::string JoinPath(const std::string& folder, const std::string& name) {
  if (folder.empty() || folder.back() == '/') return folder + name;
  return absl::StrCat(folder, "/", name);
}

}  // namespace troupe::data
