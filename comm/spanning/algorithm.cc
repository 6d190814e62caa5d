#include "comm/spanning/algorithm.h"

namespace troupe::comm::internal {
namespace {

// Size from which two steps are faster than one: between 3 processes an
// exchange sends 1.5 times as much, and the factor grows with their number.
struct Row {
  bool tree;
  std::size_t two_step_from_bytes;
};
constexpr Row kTable[] = {
    {/*tree=*/true, std::size_t{16} << 10},
    {/*tree=*/false, std::size_t{256} << 10},
};

}  // namespace

absl::string_view AlgorithmName(Algorithm algorithm) {
  return algorithm == Algorithm::kTwoStep ? "two_step" : "exchange";
}

Algorithm ChooseAlgorithm(const BlockShape& shape,
                          std::optional<bool> two_step) {
  // A result that some members do not want goes straight to the others. Two
  // members compute the whole each: no more on the wire, and one step less.
  if (shape.members <= 2 || shape.targets < shape.members) {
    return Algorithm::kExchange;
  }
  if (two_step) return *two_step ? Algorithm::kTwoStep : Algorithm::kExchange;
  for (const Row& row : kTable) {
    if (row.tree == shape.tree) {
      return shape.bytes >= row.two_step_from_bytes ? Algorithm::kTwoStep
                                                    : Algorithm::kExchange;
    }
  }
  return Algorithm::kExchange;
}

}  // namespace troupe::comm::internal
