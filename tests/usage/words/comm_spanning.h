// Declares names that the usage comments in comm/spanning/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_SPANNING_H_
#define TESTS_USAGE_WORDS_COMM_SPANNING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "comm/fabric.h"
#include "comm/flow.h"
#include "comm/link.h"
#include "comm/reduction_tree.h"
#include "comm/signature.h"
#include "comm/spanning/courier.h"
#include "comm/spanning/direct_work.h"
#include "comm/spanning/layout.h"
#include "comm/spanning/spanning_state.h"
#include "comm/spanning/switchboard.h"
#include "comm/spanning/transfer_plan.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal::usage {

extern Switchboard* const board;
extern const std::shared_ptr<Courier> courier;
extern const std::uint32_t group;
extern const GroupLayout layout;
extern const TransferSettings settings;

extern const int rank, to, from, peer, place;
extern const std::uint32_t tag, channel;
extern const std::uint64_t seq;
extern const std::size_t count, bytes;
extern const Collective collective;
extern const Event after, done, event;
extern const std::string header;
extern const nn::Tensor payload;

namespace courier_h {
extern const std::uint64_t lane;
extern const Frame frame, offer_frame;
extern const char* const bytes;  // payload of the frame
extern const nn::Tensor memory;
extern const std::function<void(const absl::Status&)> told;
}  // namespace courier_h

namespace direct_work_h {
extern const TransferPlan plan;
extern const std::size_t element_bytes;
void Compute(const DirectWork::Part& part);
void TellTheOthers();
}  // namespace direct_work_h

namespace messages_h {
extern const nn::Tensor data, into;
extern Arrival* const arrival;
}  // namespace messages_h

namespace node_tree_h {
extern const Reduction reduction;
extern const char* const* node_sums;
extern const char* const* rank_inputs;
extern const absl::Span<void* const> destinations;
}  // namespace node_tree_h

namespace parcels_h {
extern const std::shared_ptr<ParcelHandler> handler;
}

namespace spanning_group_h {
extern const std::shared_ptr<Switchboard> board;
extern const std::uint32_t number;
extern const FabricGroupOptions options;
}  // namespace spanning_group_h

namespace spanning_state_h {
extern const std::shared_ptr<SpanningState> state;
}

namespace switchboard_h {
extern FabricOptions options;
extern const std::shared_ptr<Endpoint> endpoint;
extern const Frame frame;
extern const char* const payload;
extern SendDone* const done;
}  // namespace switchboard_h

namespace transfer_plan_h {
extern const std::vector<Block> blocks;
void Compute(const TransferPlan::Piece& piece);
}  // namespace transfer_plan_h

}  // namespace troupe::comm::internal::usage

#endif  // TESTS_USAGE_WORDS_COMM_SPANNING_H_
