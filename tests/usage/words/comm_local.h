// Declares names that the usage comments in comm/local/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_LOCAL_H_
#define TESTS_USAGE_WORDS_COMM_LOCAL_H_

#include <cstdint>

#include "absl/time/time.h"
#include "comm/communicator.h"
#include "comm/local/agreement.h"
#include "comm/local/group_state.h"
#include "comm/local/group_waits.h"
#include "comm/local/group_work.h"
#include "comm/local/messages.h"
#include "comm/local/operation_ring.h"
#include "comm/mailbox.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal::usage {

extern const int rank;

namespace agreement_h {
extern const OperationRing ring;
extern const std::uint64_t seq;
}  // namespace agreement_h

namespace group_state_h {
extern GroupState& state;
extern const std::int64_t seq;
extern const Collective collective;
extern const Event event;
}  // namespace group_state_h

namespace group_waits_h {
extern const OperationRing ring;
extern const Messages messages;
extern const std::uint64_t seq;
}  // namespace group_waits_h

namespace group_work_h {
extern const OperationRing ring;
extern const std::uint64_t seq, signature, chunk;
extern const int share;
}  // namespace group_work_h

namespace messages_h {
extern const Offer offer;
}

namespace operation_ring_h {
extern const std::uint64_t seq;
extern const Collective collective;
extern const Event event;
}  // namespace operation_ring_h

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
