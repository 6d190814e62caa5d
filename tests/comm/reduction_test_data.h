// Seeded values for reductions of any dtype, and the expected results.
//
//   Tensor mine = TestRange(dtype, count, /*seed=*/7, rank, allocator);
//   Tensor result = ExpectedResult(op, {all ranks' ranges}, allocator);
//   EXPECT_TRUE(BitEqual(mine, result));
//
// Floating-point values include NaNs, infinities and both zeros; integers use
// their whole range, so that sums wrap around.

#ifndef TESTS_COMM_REDUCTION_TEST_DATA_H_
#define TESTS_COMM_REDUCTION_TEST_DATA_H_

#include <cstdint>
#include <vector>

#include "comm/reduction/reduce_op.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

inline constexpr ReduceOp kAllOps[] = {
    ReduceOp::kSum,     ReduceOp::kAvg,  ReduceOp::kMin, ReduceOp::kMax,
    ReduceOp::kProduct, ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor};
inline constexpr nn::DType kAllDTypes[] = {
    nn::DType::kF32, nn::DType::kF64, nn::DType::kBF16, nn::DType::kF16,
    nn::DType::kI32, nn::DType::kI64, nn::DType::kU8};

// Returns a view that begins one element into its storage, and so is not
// aligned for vector loads.
nn::Tensor TestRange(nn::DType dtype, std::int64_t count, std::uint64_t seed,
                     int rank, nn::Allocator& allocator);

nn::Tensor ExpectedResult(ReduceOp op, const std::vector<nn::Tensor>& ranges,
                          nn::Allocator& allocator);

// Advances `state` and returns 64 pseudorandom bits (splitmix64).
std::uint64_t NextBits(std::uint64_t* state);

}  // namespace troupe::comm

#endif  // TESTS_COMM_REDUCTION_TEST_DATA_H_
