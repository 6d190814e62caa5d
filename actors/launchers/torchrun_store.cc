#include "actors/launchers/torchrun_store.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;

// Kinds of requests; kValidate begins every connection.
constexpr char kValidate = 0, kSet = 1, kGet = 3, kWait = 6;
// Advice on a server that does not answer as torchrun's store does.
constexpr char kCheckAddress[] =
    "let MASTER_ADDR and MASTER_PORT be those of torchrun";
constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr char kStopWaiting = 0;  // answer to kWait

// Appends a number, which is little-endian.
template <typename T>
void Append(std::string* text, T number) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    text->push_back(static_cast<char>(number >> (8 * i)));
  }
}

void AppendString(std::string* text, absl::string_view value) {
  Append<std::uint64_t>(text, value.size());
  text->append(value.data(), value.size());
}

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

// A connection to the store, with one deadline for all operations.
class Connection {
 public:
  explicit Connection(const TorchrunStore& store)
      : name_(absl::StrCat("torchrun's store at ", store.address.ToString())),
        deadline_(Clock::now() + absl::ToChronoNanoseconds(store.timeout)) {}
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  absl::Status Open(const base::HostPort& address) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code =
        getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(),
                    &hints, &found);
    if (code != 0) return Lost("cannot be found", gai_strerror(code));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found,
                                                                  freeaddrinfo);
    absl::Status status = absl::OkStatus();
    for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
      status = ConnectTo(*at);
      if (status.ok()) return Begin();
    }
    return status;
  }

  absl::Status Write(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        TROUPE_RETURN_IF_ERROR(Await(POLLOUT));
      } else if (errno != EINTR) {
        return Lost("broke off", ErrnoText(errno));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
      const ssize_t n = recv(fd_, &text[have], bytes - have, 0);
      if (n > 0) {
        have += static_cast<std::size_t>(n);
      } else if (n == 0) {
        return Lost("broke off", "it hung up");
      } else if (errno == EAGAIN) {
        TROUPE_RETURN_IF_ERROR(Await(POLLIN));
      } else if (errno != EINTR) {
        return Lost("broke off", ErrnoText(errno));
      }
    }
    return text;
  }

  absl::StatusOr<std::string> ReadString() {
    TROUPE_ASSIGN_OR_RETURN(const std::string head, Read(8));
    std::uint64_t size = 0;
    for (int i = 7; i >= 0; --i) {
      size = size << 8 | static_cast<unsigned char>(head[i]);
    }
    if (size > kAddressBytesMax) {
      return absl::DataLossError(absl::StrCat(
          name_, " answers with ", size, " bytes where an address has ",
          kAddressBytesMax, " at most; ", kCheckAddress));
    }
    return Read(size);
  }

  const std::string& name() const { return name_; }

 private:
  absl::Status Begin() {
    std::string hello(1, kValidate);
    Append(&hello, kMagic);
    return Write(hello);
  }

  absl::Status ConnectTo(const addrinfo& to) {
    Close();
    fd_ = socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return Lost("cannot be reached", ErrnoText(errno));
    if (connect(fd_, to.ai_addr, to.ai_addrlen) == 0) return absl::OkStatus();
    if (errno != EINPROGRESS) {
      return Lost("cannot be reached", ErrnoText(errno));
    }
    TROUPE_RETURN_IF_ERROR(Await(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? absl::OkStatus()
                      : Lost("cannot be reached", ErrnoText(error));
  }

  absl::Status Await(short events) {
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline_ - Clock::now());
      pollfd entry = {fd_, events, 0};
      const int ready = poll(&entry, 1,
                             static_cast<int>(std::clamp<std::int64_t>(
                                 left.count(), 0, 1'000'000)));
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno != EINTR)
        return Lost("broke off", ErrnoText(errno));
      if (Clock::now() >= deadline_) {
        return absl::DeadlineExceededError(
            absl::StrCat(name_, " does not answer; ", kCheckAddress));
      }
    }
  }

  absl::Status Lost(absl::string_view what, absl::string_view why) const {
    return absl::UnavailableError(
        absl::StrCat(name_, " ", what, ": ", why, "; ", kCheckAddress));
  }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  const std::string name_;
  const Clock::time_point deadline_;
  int fd_ = -1;
};

}  // namespace

absl::Status PublishAddress(const TorchrunStore& store,
                            const base::HostPort& own) {
  Connection connection(store);
  TROUPE_RETURN_IF_ERROR(connection.Open(store.address));
  std::string request(1, kSet);
  AppendString(&request, store.key);
  AppendString(&request, own.ToString());
  // A kSet has no answer. An answer to a later request proves that it was
  // processed.
  request.push_back(kGet);
  AppendString(&request, store.key);
  TROUPE_RETURN_IF_ERROR(connection.Write(request));
  TROUPE_ASSIGN_OR_RETURN(const std::string stored, connection.ReadString());
  if (stored == own.ToString()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      connection.name(), " does not keep what it is given; ", kCheckAddress));
}

absl::StatusOr<base::HostPort> WaitAddress(const TorchrunStore& store) {
  Connection connection(store);
  TROUPE_RETURN_IF_ERROR(connection.Open(store.address));
  std::string request(1, kWait);
  Append<std::uint64_t>(&request, 1);  // number of keys
  AppendString(&request, store.key);
  TROUPE_RETURN_IF_ERROR(connection.Write(request));
  const absl::StatusOr<std::string> answer = connection.Read(1);
  if (absl::IsDeadlineExceeded(answer.status())) {
    return absl::DeadlineExceededError(absl::StrCat(
        "process 0 has not put its address into ", connection.name(), " in ",
        absl::FormatDuration(store.timeout), "; see what it says"));
  }
  TROUPE_RETURN_IF_ERROR(answer.status());
  if ((*answer)[0] != kStopWaiting) {
    return absl::DataLossError(
        absl::StrCat(connection.name(), " answers a wait with byte ",
                     static_cast<int>((*answer)[0]), "; ", kCheckAddress));
  }
  request.assign(1, kGet);
  AppendString(&request, store.key);
  TROUPE_RETURN_IF_ERROR(connection.Write(request));
  TROUPE_ASSIGN_OR_RETURN(const std::string text, connection.ReadString());
  absl::StatusOr<base::HostPort> address = base::ParseHostPort(text);
  if (address.ok()) return address;
  return absl::DataLossError(absl::StrCat(connection.name(), " has under ",
                                          store.key, ": ",
                                          address.status().message()));
}

}  // namespace troupe::actors
