// Declares names that the usage comments in comm/connect/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_CONNECT_H_
#define TESTS_USAGE_WORDS_COMM_CONNECT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/owned_fd.h"
#include "comm/connect/connect_options.h"
#include "comm/connect/handshake.h"
#include "comm/connect/tls_links.h"
#include "comm/link.h"
#include "comm/store.h"

namespace troupe::comm::usage {
namespace connect_links_h {
extern const JobToken token;
extern Store& store;
extern const Frame frame;
extern const char* const payload;
}  // namespace connect_links_h

namespace handshake_h {
extern base::OwnedFd socket;
extern const HandshakeParty me;
void Wait(int fd, short events);
}  // namespace handshake_h

namespace tls_links_h {
extern const std::shared_ptr<TlsContext> context;
extern std::vector<Connection> connections;
}  // namespace tls_links_h

namespace host_key_h {
extern const std::string theirs;
void UseSharedMemory();
}  // namespace host_key_h

namespace transport_h {
extern ConnectOptions options;
}

namespace transports_h {
extern const ConnectOptions options;
extern Store& store;
extern const Frame frame;
extern const char* const payload;
}  // namespace transports_h

}  // namespace troupe::comm::usage

#endif  // TESTS_USAGE_WORDS_COMM_CONNECT_H_
