#include "comm/spanning/plan/algorithm.h"

namespace troupe::comm::internal {
namespace {

// Size from which two steps are faster than one: between 3 processes an
// exchange sends 1.5 times as much, and the factor grows with their number.
// Between 2 it sends as much, but each adds the whole, not a half.
struct Row {
  bool tree;
  bool pair;  // for groups of 2 processes; otherwise of more
  std::size_t two_step_from_bytes;
};
constexpr Row kTable[] = {
    {/*tree=*/true, /*pair=*/true, std::size_t{2} << 20},
    {/*tree=*/true, /*pair=*/false, std::size_t{16} << 10},
    {/*tree=*/false, /*pair=*/false, std::size_t{256} << 10},
};

}  // namespace

absl::string_view AlgorithmName(Algorithm algorithm) {
  return algorithm == Algorithm::kTwoStep ? "two_step" : "exchange";
}

Algorithm ChooseAlgorithm(const BlockShape& shape,
                          std::optional<bool> two_step) {
  // A result that some members do not want goes straight to the others, and so
  // does a copy to a single one.
  const bool pair = shape.members <= 2;
  if (shape.members < 2 || shape.targets < shape.members ||
      (pair && !shape.tree)) {
    return Algorithm::kExchange;
  }
  if (two_step) return *two_step ? Algorithm::kTwoStep : Algorithm::kExchange;
  for (const Row& row : kTable) {
    if (row.tree == shape.tree && row.pair == pair) {
      return shape.bytes >= row.two_step_from_bytes ? Algorithm::kTwoStep
                                                    : Algorithm::kExchange;
    }
  }
  return Algorithm::kExchange;
}

}  // namespace troupe::comm::internal
