// Measures the machine before a job begins, above all to choose where a
// reduction runs: inline on the compute strand, or handed over to the
// communication strand.
//
//   options.inline_bytes =
//       MeasureInlineBytes(ranks_here, base::AvailableCores());
//
// A hand-over pays if a core is free to reduce while the compute strand goes
// on. If every core has a compute strand, communication strands only take turns
// with them: then all is reduced inline. Otherwise the time of a hand-over is
// compared with the time of the reduction that it saves the compute strand.
//
// The result decides only where a reduction runs, never its additions or their
// order, so it changes no bit; it is part of the plan, since all ranks of a
// group must decide alike.

#ifndef ACTORS_PLANNING_CALIBRATE_H_
#define ACTORS_PLANNING_CALIBRATE_H_

#include <cstdint>

namespace troupe::actors {

// Limit on inline reductions between several processes: the network takes less
// time for this many bytes than two strands take to wake each other.
inline constexpr std::int64_t kSpanningInlineBytes = std::int64_t{64} << 10;

// Returns the gradient bytes of a rank up to which reducing on the compute
// strand is cheaper than handing over, for `ranks` compute strands in this
// process on `cores` cores. Takes about 2 ms; no time if no core is free, or
// there is only one rank.
std::int64_t MeasureInlineBytes(int ranks, int cores);

// Returns the seconds that a message between two strands takes, measured as the
// time to wake a thread that waits. Takes about 2 ms.
double MeasureHandOffSeconds();

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_CALIBRATE_H_
