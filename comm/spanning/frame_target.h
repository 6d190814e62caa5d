// Validates a frame of elements: finds the piece that it belongs to. No frame
// is trusted.
//
//   FrameTarget target;
//   TROUPE_RETURN_IF_ERROR(
//       FindTarget(context, table, member, frame, &target));
//   PieceProgress& piece = target.op->pieces[target.piece];

#ifndef COMM_SPANNING_FRAME_TARGET_H_
#define COMM_SPANNING_FRAME_TARGET_H_

#include "absl/status/status.h"
#include "comm/link.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/operation_table.h"

namespace troupe::comm::internal {

struct FrameTarget {
  OpPtr op;
  int piece = -1;
  int node = PieceProgress::kValue;
};

// Sets `target` for a frame kPartial or kValue of `member`. Returns
// kInvalidArgument if the frame was not announced, does not fit into the plan
// of its collective, or is a duplicate. Called under the group's lock.
absl::Status FindTarget(const GroupContext& context,
                        const OperationTable& table, int member,
                        const Frame& frame, FrameTarget* target);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAME_TARGET_H_
