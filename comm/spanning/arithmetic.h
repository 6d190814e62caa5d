// The arithmetic of collectives between processes: computes pieces, and parts
// of ranges that are accessed by reference.
//
//   SumNode(context, *op, piece, node, sum);       // to send it
//   TROUPE_RETURN_IF_ERROR(ComputePiece(context, op, piece));
//
// An update (ReplicaUpdate) is user code: its exceptions become errors.
//
// Threads: any, without the group's lock; one per piece, which is running
// (PieceProgress), and one per part that was claimed (DirectAccess).

#ifndef COMM_SPANNING_ARITHMETIC_H_
#define COMM_SPANNING_ARITHMETIC_H_

#include "absl/status/status.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/operation.h"
#include "comm/spanning/plan/direct_work.h"

namespace troupe::comm::internal {

// Writes the sum of one of this process's nodes of piece i to `to`.
void SumNode(const GroupContext& context, const Operation& op, int i, int node,
             void* to);

// Computes the value of piece i from its parts, or takes the value that has
// arrived, and writes it to the ranges of the ranks here, or updates replicas.
absl::Status ComputePiece(const GroupContext& context, Operation* op, int i);

// Computes a part by reference, from the inputs of all ranks.
absl::Status ComputePart(const GroupContext& context, Operation* op,
                         const DirectWork::Part& part);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_ARITHMETIC_H_
