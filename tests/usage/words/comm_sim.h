// Declares names that the usage comments in comm/sim/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_SIM_H_
#define TESTS_USAGE_WORDS_COMM_SIM_H_

#include "comm/fabric.h"

namespace troupe::comm::usage::sim_link_h {
extern FabricOptions options;
}

#endif  // TESTS_USAGE_WORDS_COMM_SIM_H_
