// The ways in which processes of a job may meet, and the links that come of it:
// the whole handshake, as ConnectLinks() does it.
//
//   const Meeting meeting{"two_hosts", Transport::kAuto, /*tls=*/false,
//                         /*hosts=*/2};
//   std::vector<std::unique_ptr<Link>> links =
//       Meet(meeting, /*process=*/1, /*processes=*/3, store);
//
// Hosts are network namespaces, joined by veth pairs: process p is on host
// p % hosts. They are this program's, and gone with it.

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
  int hosts = 0;  // 0: all are on this one
  // Whether ranges lie in memory that goes by reference (process_group_test).
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
    // Memory within a host, TCP between them.
    {"two_hosts", Transport::kAuto, /*tls=*/false, /*hosts=*/2},
    {"three_hosts", Transport::kAuto, /*tls=*/true, /*hosts=*/3},
};

// Makes what a meeting needs: certificates, hosts. Once, before threads and
// other processes.
//   As NetworkHosts::Make(), where it takes hosts.
absl::Status Prepare(const Meeting& meeting);

// Where more than one host is there, the calling thread is on the process's
// from now on. After Prepare().
std::vector<std::unique_ptr<Link>> Meet(const Meeting& meeting, int process,
                                        int processes, Store& store);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_MEETING_H_
