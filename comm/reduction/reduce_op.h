// The operation that a reduction applies to two elements.
//
//   ReduceOp op = ReduceOp::kAvg;
//   ReduceOpName(op);                         // "avg"
//
// kAvg adds, and divides once, at the root of the tree. kMin and kMax give NaN
// if any rank has one. kBand, kBor and kBxor combine the bits of integers.

#ifndef COMM_REDUCTION_REDUCE_OP_H_
#define COMM_REDUCTION_REDUCE_OP_H_

#include "absl/strings/string_view.h"

namespace troupe::comm {

enum class ReduceOp { kSum, kAvg, kMin, kMax, kProduct, kBand, kBor, kBxor };

// Returns "sum", "avg", "min", "max", "product", "band", "bor", "bxor".
absl::string_view ReduceOpName(ReduceOp op);

}  // namespace troupe::comm

#endif  // COMM_REDUCTION_REDUCE_OP_H_
