// Looks at the machine before a job begins. Above all it chooses where a
// reduction runs: on the compute strand, or handed over to the communication
// strand.
//
//   options.inline_bytes =
//       MeasureInlineBytes(ranks_here, base::AvailableCores());
//
// A hand-over pays where a core is free to reduce while the compute strand goes
// on. Where every core has a compute strand, the communication strands only
// take turns with them: then all is reduced inline. Elsewhere it is measured
// what a hand-off costs beside the work it saves.
//
// The result decides only where a reduction runs, never its additions or their
// order, so it changes no bit; it is part of the plan, since all ranks of a
// group must decide alike.

#ifndef ACTORS_PLANNING_CALIBRATE_H_
#define ACTORS_PLANNING_CALIBRATE_H_

#include <cstdint>

namespace troupe::actors {

// Gradient bytes of a rank up to which reducing on the compute strand is
// cheaper than handing over, for `ranks` compute strands in this process on
// `cores` cores. Takes about 2 ms, or nothing where no core is free or one rank
// has none to reduce with.
std::int64_t MeasureInlineBytes(int ranks, int cores);

// How long it takes until a thread that waits has what another one leaves for
// it: what a message between two strands takes. About 2 ms.
double MeasureHandOffSeconds();

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_CALIBRATE_H_
