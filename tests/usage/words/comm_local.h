// Declares names that the usage comments in comm/local/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_LOCAL_H_
#define TESTS_USAGE_WORDS_COMM_LOCAL_H_

#include <cstdint>

#include "absl/time/time.h"
#include "comm/communicator.h"
#include "comm/local/group_state.h"
#include "comm/mailbox.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal::usage {

extern const int rank;

namespace group_state_h {
extern GroupState& state;
extern const std::int64_t seq;
extern const Collective collective;
extern const Event event;
}  // namespace group_state_h

namespace messages_h {
extern const Offer offer;
}

namespace waiter_h {
extern const absl::Duration timeout;
bool done();
}  // namespace waiter_h

namespace wakeup_h {
extern bool awake;
}

}  // namespace troupe::comm::internal::usage

namespace troupe::comm::usage::local_group_h {
extern const int rank;
extern const nn::Tensor gradients;
}  // namespace troupe::comm::usage::local_group_h

#endif  // TESTS_USAGE_WORDS_COMM_LOCAL_H_
