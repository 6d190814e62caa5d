// Memory that simulated processes lend to each other (Link::Lend), which is in
// fact memory of one process: a borrower gets the pointer of the lender.
//
//   SimLentRanges lent(&clock, /*processes=*/3, /*at_once=*/false);
//   while (!lent.Lend(/*from=*/0, /*to=*/2, range)) Step();  // a random delay
//   std::shared_ptr<char> bytes = lent.Borrow(/*by=*/2, /*from=*/0, range.id,
//                                             /*offset=*/0, range.bytes);
//   Read(bytes.get());
//   if (!lent.Holds(/*by=*/2, /*from=*/0)) Discard();  // 0 may have reused it
//
// Threads: one at a time.

#ifndef COMM_SIM_SIM_LENT_RANGES_H_
#define COMM_SIM_SIM_LENT_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "comm/link.h"
#include "comm/sim/sim_clock.h"

namespace troupe::comm {

class SimLentRanges {
 public:
  // `at_once`: a range can be used as soon as it is lent, else after a delay.
  // The clock outlives the ranges.
  SimLentRanges(SimClock* clock, int processes, bool at_once)
      : clock_(*clock),
        processes_(processes),
        at_once_(at_once),
        given_up_(processes * processes) {}

  // Returns whether process `to` can use a range of process `from`; the first
  // call offers the range.
  bool Lend(int from, int to, const SharedRange& range);
  void TakeBack(int from, int to, std::uint64_t id);
  // Returns bytes [offset, offset + bytes) of a range that process `from` lends
  // to process `by`; null if it does not lend them, or not yet.
  std::shared_ptr<char> Borrow(int by, int from, std::uint64_t id,
                               std::uint64_t offset, std::size_t bytes) const;

  // Records that process `from` has given up its link to process `to`: it may
  // reuse what it has lent.
  void GiveUp(int from, int to) { given_up_[from * processes_ + to] = true; }
  // Returns whether what `by` has read of the memory of `from` is valid.
  bool Holds(int by, int from) const {
    return !given_up_[from * processes_ + by];
  }

 private:
  struct Loan {
    SharedRange range;
    std::uint64_t due = 0;  // time from which the borrower can use it
  };

  SimClock& clock_;
  const int processes_;
  const bool at_once_;
  // Indexed by the process that lends, the one that borrows, and the range.
  std::map<std::tuple<int, int, std::uint64_t>, Loan> loans_;
  // Whether the lender has given up its link, by lender and borrower.
  std::vector<bool> given_up_;
};

}  // namespace troupe::comm

#endif  // COMM_SIM_SIM_LENT_RANGES_H_
