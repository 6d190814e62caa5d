// The collectives of a spanning group that are in flight in one process, by
// number, and how many each rank here has joined.
//
//   OperationTable table(&layout, /*in_flight_max=*/64);
//   TROUPE_RETURN_IF_ERROR(table.CheckRoom(place));
//   const OpPtr op = table.JoinNext(place);
//   table.Erase(op->seq);                  // it has finished
//   table.Recycle(op);                     // for the next one
//
// Not thread-safe: used under the group's lock.

#ifndef COMM_SPANNING_OPERATION_OPERATION_TABLE_H_
#define COMM_SPANNING_OPERATION_OPERATION_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "comm/spanning/operation/operation.h"
#include "comm/spanning/plan/layout.h"

namespace troupe::comm::internal {

class OperationTable {
 public:
  using Map = std::map<std::uint64_t, OpPtr>;

  // `layout` outlives the table.
  OperationTable(const GroupLayout* layout, int in_flight_max);

  // Returns kResourceExhausted if a rank has `in_flight_max` in flight.
  absl::Status CheckRoom(int place) const;
  // Returns the next collective of a rank, which joins it.
  OpPtr JoinNext(int place) { return FindOrMake(next_[place]++); }
  // Returns the number of collectives that a rank has joined.
  std::uint64_t joined(int place) const { return next_[place]; }

  // Returns whether another member may announce collective `seq`: it is not
  // over, and not further ahead than `in_flight_max` allows.
  bool MayBeAnnounced(std::uint64_t seq) const;
  OpPtr FindOrMake(std::uint64_t seq);
  // Returns null if the collective is not in flight.
  OpPtr Find(std::uint64_t seq) const;

  void Erase(std::uint64_t seq) { ops_.erase(seq); }
  // Keeps the operation of a finished collective for another one, unless
  // another thread still uses it.
  void Recycle(OpPtr op);

  // Returns the collectives in flight, in order; TakeAll() removes them.
  const Map& all() const { return ops_; }
  Map TakeAll() { return std::exchange(ops_, {}); }

 private:
  const GroupLayout& layout_;
  const std::uint64_t in_flight_max_;
  Map ops_;
  OpPtr spare_;                      // see Recycle(); may be null
  std::vector<std::uint64_t> next_;  // index: place
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_OPERATION_TABLE_H_
