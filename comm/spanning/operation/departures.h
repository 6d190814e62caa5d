// The ranks that have left a spanning group, each after how many collectives.
//
//   departures.Add(/*rank=*/3, /*joined=*/7);
//   TROUPE_RETURN_IF_ERROR(departures.Before(op->seq));
//
// A rank departs in order if none of its work is left: its peers go on with
// what it has joined, and only later collectives fail.
//
// Not thread-safe: used under the group's lock.

#ifndef COMM_SPANNING_OPERATION_DEPARTURES_H_
#define COMM_SPANNING_OPERATION_DEPARTURES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "comm/spanning/plan/layout.h"

namespace troupe::comm::internal {

class Departures {
 public:
  // `layout` outlives this.
  explicit Departures(const GroupLayout* layout) : layout_(*layout) {}

  // Records that `rank` has left after it joined `joined` collectives.
  void Add(int rank, std::uint64_t joined) { joined_[rank] = joined; }
  // Returns kUnavailable if a rank left before it joined collective `seq`,
  // which can never complete then.
  absl::Status Before(std::uint64_t seq) const;
  // Returns whether all ranks of `member` have left.
  bool HasDeparted(int member) const;
  // Returns the ranks that have left, in order.
  std::vector<int> ranks() const;

 private:
  const GroupLayout& layout_;
  std::map<int, std::uint64_t> joined_;  // index: rank of the group
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_DEPARTURES_H_
