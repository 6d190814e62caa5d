// Declares names that the usage comments in comm/sim/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_SIM_H_
#define TESTS_USAGE_WORDS_COMM_SIM_H_

#include "comm/fabric.h"
#include "comm/link.h"
#include "comm/sim/sim_clock.h"

namespace troupe::comm::usage {

extern SimClock clock;

namespace sim_channel_h {
extern const Frame frame;
extern const char* const payload;
extern SendDone* const done;
extern FrameSink& sink;
}  // namespace sim_channel_h

namespace sim_lent_ranges_h {
extern const SharedRange range;
void Step();
void Read(const char* bytes);
void Discard();
}  // namespace sim_lent_ranges_h

namespace sim_link_h {
extern FabricOptions options;
}

}  // namespace troupe::comm::usage

#endif  // TESTS_USAGE_WORDS_COMM_SIM_H_
