// Options of tests that run programs on several ranks.

#ifndef TESTS_TROUPE_RANKS_H_
#define TESTS_TROUPE_RANKS_H_

#include "troupe/program.h"

namespace troupe {

// Returns the defaults for `ranks` ranks in threads of this process.
inline SpawnOptions Ranks(int ranks) {
  SpawnOptions options;
  options.ranks = ranks;
  return options;
}

}  // namespace troupe

#endif  // TESTS_TROUPE_RANKS_H_
