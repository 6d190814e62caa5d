// What a reduction does to two elements.
//
//   ReduceOp op = ReduceOp::kAvg;
//   ReduceOpName(op);                         // "avg"
//
// kAvg adds, and divides once, when all ranks' elements are in the sum.
// kMin and kMax give NaN where any rank has one.

#ifndef COMM_REDUCE_OP_H_
#define COMM_REDUCE_OP_H_

#include "absl/strings/string_view.h"

namespace troupe::comm {

enum class ReduceOp { kSum, kAvg, kMin, kMax, kProduct };

// "sum", "avg", "min", "max", "product".
absl::string_view ReduceOpName(ReduceOp op);

}  // namespace troupe::comm

#endif  // COMM_REDUCE_OP_H_
