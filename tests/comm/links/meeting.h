// Connects processes of a job through the whole handshake of ConnectLinks(), in
// each supported combination of transport, TLS and number of hosts.
//
//   const Meeting meeting{"two_hosts", Transport::kAuto, /*tls=*/false,
//                         /*hosts=*/2};
//   std::vector<std::unique_ptr<Link>> links =
//       Meet(meeting, /*process=*/1, /*processes=*/3, store);
//
// Hosts are network namespaces, joined by veth pairs: process p is on host
// p % hosts. They exist only as long as this program runs.

#ifndef TESTS_COMM_LINKS_MEETING_H_
#define TESTS_COMM_LINKS_MEETING_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm/connect/transport.h"
#include "comm/link.h"
#include "comm/store.h"

namespace troupe::comm {

struct Meeting {
  const char* name;
  Transport transport = Transport::kAuto;
  bool tls = false;
  int hosts = 0;  // 0: all processes use the host's own network
  // Whether ranges lie in memory that is sent by reference
  // (process_group_test).
  bool lends = false;
};

inline std::ostream& operator<<(std::ostream& out, const Meeting& meeting) {
  return out << meeting.name;
}

inline constexpr Meeting kMeetings[] = {
    {"tcp", Transport::kTcp},
    {"shm", Transport::kShm},
    {"memory", Transport::kShm, /*tls=*/false, /*hosts=*/0, /*lends=*/true},
    {"tls", Transport::kTcp, /*tls=*/true},
    // Shared memory within a host, TCP between hosts.
    {"two_hosts", Transport::kAuto, /*tls=*/false, /*hosts=*/2},
    {"three_hosts", Transport::kAuto, /*tls=*/true, /*hosts=*/3},
};

// Makes the certificates and hosts that a meeting needs. Must be called before
// threads and other processes are started.
//
// Errors: those of NetworkHosts::Make(), if the meeting has hosts.
absl::Status Prepare(const Meeting& meeting);

// Returns the links of `process`, indexed by peer. Must be called after
// Prepare(). If the meeting has hosts, the calling thread joins the network
// namespace of the process's host, and stays in it.
std::vector<std::unique_ptr<Link>> Meet(const Meeting& meeting, int process,
                                        int processes, Store& store);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_MEETING_H_
