// Measures what a hand-off between two strands costs beside the work it saves.
//
//   options.inline_bytes = MeasureInlineBytes();
//
// The result decides only where a reduction runs, never its additions or their
// order, so it changes no bit; it is part of the plan, since all ranks of a
// group must decide alike.

#ifndef ACTORS_CALIBRATE_H_
#define ACTORS_CALIBRATE_H_

#include <cstdint>

namespace troupe::actors {

// Gradient bytes of a rank up to which reducing on the compute strand is
// cheaper than handing over. Takes about 2 ms.
std::int64_t MeasureInlineBytes();

}  // namespace troupe::actors

#endif  // ACTORS_CALIBRATE_H_
