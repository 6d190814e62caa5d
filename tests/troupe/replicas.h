// Helpers of the tests of Join().

#ifndef TESTS_TROUPE_REPLICAS_H_
#define TESTS_TROUPE_REPLICAS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"
#include "tests/troupe/ranks.h"
#include "troupe/troupe.h"

namespace troupe {

// Batches of each of two ranks.
inline constexpr int kBatches[] = {3, 5};

// Fails unless all ranks return without an error.
inline void ExpectRuns(const Program& program, int ranks) {
  const absl::Status status = Spawn(program, Ranks(ranks));
  EXPECT_TRUE(status.ok()) << status;
}

// Fails if the ranks differ in a parameter or buffer, or have made other
// numbers of steps.
inline void ExpectEqualReplicas(Rank& rank, const DDP& ddp,
                                const Optimizer& optimizer,
                                std::int64_t steps) {
  EXPECT_EQ(optimizer.steps(), steps) << "rank " << rank.number();
  const auto compare = [&rank](const std::string& name, const Tensor& value) {
    const Var all = rank.world().AllGather(value);
    const float* const values = all.tensor().data<float>();
    for (std::int64_t i = 0; i < all.numel(); ++i) {
      ASSERT_TRUE(std::isfinite(values[i])) << name << "[" << i << "]";
      ASSERT_EQ(values[i], values[i % value.numel()])
          << name << "[" << i << "]";
    }
  };
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    compare(parameter->name, parameter->value);
  }
  for (const nn::Buffer* buffer : ddp.module().Buffers()) {
    if (buffer->value.dtype() == DType::kF32) {
      compare(buffer->name, buffer->value);
    }
  }
}

inline std::vector<float> ValuesOf(const DDP& ddp) {
  std::vector<float> values;
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    const auto span = parameter->value.span<float>();
    values.insert(values.end(), span.begin(), span.end());
  }
  return values;
}

// Fills the tensor with the drawn numbers of golden files.
inline void Fill(const Tensor& tensor, const std::string& name, double scale) {
  const std::vector<double> values =
      nn::GoldenInput(name, tensor.numel(), scale);
  std::copy(values.begin(), values.end(), tensor.data<float>());
}

}  // namespace troupe

#endif  // TESTS_TROUPE_REPLICAS_H_
