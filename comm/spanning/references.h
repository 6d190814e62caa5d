// The references of a note: where a process's ranges lie in memory that all
// processes of the group have mapped.
//
//   const std::string references = LendRanges(context, *op);
//   // On the other side:
//   TROUPE_RETURN_IF_ERROR(BorrowRanges(context, op, member));
//
// A note has two references for each rank of its process, to its input and to
// its output, empty ones if no member needs it.

#ifndef COMM_SPANNING_REFERENCES_H_
#define COMM_SPANNING_REFERENCES_H_

#include <string>

#include "absl/status/status.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/operation.h"

namespace troupe::comm::internal {

// Returns what follows the parts of the note of `op`; "" if all elements go
// over the links. Threads: any, without the group's lock.
std::string LendRanges(const GroupContext& context, const Operation& op);

// Sets the addresses in `op->direct` of the memory of `member` that this
// process needs; kInvalidArgument if the member does not lend it. Called under
// the group's lock.
absl::Status BorrowRanges(const GroupContext& context, Operation* op,
                          int member);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_REFERENCES_H_
