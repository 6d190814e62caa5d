#include "base/processes/reserved_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(ReservedPortTest, IsFreeForWhoAsksForItself) {
  const absl::StatusOr<ReservedPort> port = ReservedPort::OnLoopback();
  ASSERT_TRUE(port.ok()) << port.status();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port->number()));
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  EXPECT_NE(bind(fd, at, sizeof(address)), 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  EXPECT_EQ(bind(fd, at, sizeof(address)), 0);
  EXPECT_EQ(listen(fd, 1), 0);
  close(fd);
}

}  // namespace
}  // namespace troupe::base
