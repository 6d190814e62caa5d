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
#include "comm/reduction/reduction_tree.h"
#include "comm/signature.h"
#include "comm/spanning/agreement.h"
#include "comm/spanning/arithmetic.h"
#include "comm/spanning/direct_transfers.h"
#include "comm/spanning/frame_target.h"
#include "comm/spanning/frames/courier.h"
#include "comm/spanning/frames/messages.h"
#include "comm/spanning/frames/switchboard.h"
#include "comm/spanning/frames/task_queue.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/group_lifetime.h"
#include "comm/spanning/link_transfers.h"
#include "comm/spanning/note_content.h"
#include "comm/spanning/operation/departures.h"
#include "comm/spanning/operation/memory_use.h"
#include "comm/spanning/operation/operation_table.h"
#include "comm/spanning/plan/direct_access.h"
#include "comm/spanning/plan/direct_work.h"
#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/transfer_plan.h"
#include "comm/spanning/references.h"
#include "comm/spanning/send_queue.h"
#include "comm/spanning/spanning_state.h"
#include "comm/spanning/wait_report.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::internal::usage {

extern Switchboard* const board;
extern const std::shared_ptr<Courier> courier;
extern const std::uint32_t group;
extern const GroupLayout layout;
extern const TransferSettings settings;

extern const int rank, to, from, peer, place, member;
extern const std::uint32_t tag, channel;
extern const std::uint64_t seq;
extern const std::size_t count, bytes;
extern const Collective collective;
extern const Event after, done, event;
extern const std::string header;
extern const nn::Tensor payload;

// One group, and a collective of it.
extern const GroupContext context;
extern const std::shared_ptr<GroupLifetime> life;
extern const OpPtr op;
extern Outbox out;

namespace arithmetic_h {
extern Operation* const op;
extern const int piece, node;
extern void* const sum;
}  // namespace arithmetic_h

namespace courier_h {
extern const std::uint64_t lane;
extern const Frame frame, offer_frame;
extern const char* const bytes;  // payload of the frame
extern const nn::Tensor memory;
extern const std::function<void(const absl::Status&)> told;
}  // namespace courier_h

namespace departures_h {
extern Departures departures;
}

namespace direct_access_h {
extern const TransferPlan plan;
extern const std::size_t element_bytes;
extern const std::shared_ptr<char> memory;
void Compute(const char* input, const DirectWork::Part& part);
}  // namespace direct_access_h

namespace direct_work_h {
extern const TransferPlan plan;
extern const std::size_t element_bytes;
void Compute(const DirectWork::Part& part);
void TellTheOthers();
}  // namespace direct_work_h

namespace frame_target_h {
extern const OperationTable table;
extern const Frame frame;
}  // namespace frame_target_h

namespace group_context_h {
extern const std::shared_ptr<Switchboard> board;
extern FabricGroupOptions options;
}  // namespace group_context_h

namespace group_lifetime_h {
extern const std::shared_ptr<Switchboard> board;
extern const std::uint32_t number;
extern const FabricGroupOptions options;
}  // namespace group_lifetime_h

namespace local_calls_h {
void Announce(const Collective& collective);
}

namespace memory_use_h {
extern MemoryUse memory;
extern const std::vector<Event> events;
void Complete(const std::vector<Event>& events);
}  // namespace memory_use_h

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

namespace note_content_h {
extern Operation* const op;
extern const std::string references;
}  // namespace note_content_h

namespace notes_h {
extern Note note;
void Begin();
}  // namespace notes_h

namespace operands_h {
extern Operands operands;
extern const TransferPlan plan;
extern const int b;
}  // namespace operands_h

namespace outbox_h {
extern const std::shared_ptr<LinkTransfers> links;
}

namespace parcels_h {
extern const std::shared_ptr<ParcelHandler> handler;
}

namespace piece_progress_h {
extern const int node;
extern StagingBuffer buffer;
void Compute(const char* data);
}  // namespace piece_progress_h

namespace references_h {
extern Operation* const op;
}

namespace send_queue_h {
extern SendQueue queue;
void SendParts(const OpPtr& op, int piece);
}  // namespace send_queue_h

namespace send_schedule_h {
extern const TransferPlan plan;
void Send(int piece);
absl::Status Broke(int member);
}  // namespace send_schedule_h

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

namespace task_queue_h {
void Compute();
}

namespace transfer_plan_h {
extern const std::vector<Block> blocks;
void Compute(const TransferPlan::Piece& piece);
}  // namespace transfer_plan_h

namespace wait_report_h {
extern const OperationTable table;
extern const SpanningMessages messages;
}  // namespace wait_report_h

}  // namespace troupe::comm::internal::usage

#endif  // TESTS_USAGE_WORDS_COMM_SPANNING_H_
