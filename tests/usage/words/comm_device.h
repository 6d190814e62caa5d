// Declares names that the usage comments in comm/device/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_DEVICE_H_
#define TESTS_USAGE_WORDS_COMM_DEVICE_H_

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/device/device_state.h"
#include "comm/device/device_work.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::usage {

extern const int rank;
extern DeviceWork& work;
extern const Event gradients_ready;

namespace device_group_h {
extern DeviceWork& work;
extern const nn::Tensor gradients;
}  // namespace device_group_h

namespace staged_group_h {
extern std::unique_ptr<Communicator> spanning_rank;
extern const Collective collective;
extern const Event after;
}  // namespace staged_group_h

namespace device_work_h {
extern const std::vector<nn::Tensor> ranges;
}

}  // namespace troupe::comm::usage

namespace troupe::comm::internal::usage::device_state_h {
extern DeviceState& state;
extern const int rank;
extern const Collective collective;
extern const Event after;
extern DeviceWork& work;
extern absl::Status status;
}  // namespace troupe::comm::internal::usage::device_state_h

namespace troupe::comm::internal::usage::device_check_h {
extern const Collective collective;
extern const int rank;
}  // namespace troupe::comm::internal::usage::device_check_h

#endif  // TESTS_USAGE_WORDS_COMM_DEVICE_H_
