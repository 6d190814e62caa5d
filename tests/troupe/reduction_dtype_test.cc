// DDPOptions::reduction_dtype beside PyTorch's compression hooks.

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/tensor/dtype.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

struct OneLayer : nn::Net {
  nn::Linear& only = Add<nn::Linear>("only", 3, 2);
  Var Forward(Var x) override { return only(x); }
};

// PyTorch 2.15's parameters with bf16_compress_hook and fp16_compress_hook
// after five steps on two ranks (tools/golden/make_comm_hooks.py).
TEST(ReductionDTypeTest, RoundedReductionsAreThoseOfPyTorch) {
  struct Case {
    nn::DType dtype;
    std::vector<float> want;
  };
  const Case cases[] = {
      {nn::DType::kBF16,
       {0.0922851562, 0.095117189, 0.1206543, 0.240234375, 0.264648438,
        0.267480463, 0.4140625, 0.413281262}},
      {nn::DType::kF16,
       {0.0920776427, 0.0950805768, 0.120745853, 0.240527362, 0.264965802,
        0.267749012, 0.414355457, 0.41342774}},
      {nn::DType::kF32,
       {0.0921049118, 0.095075734, 0.120740734, 0.240509599, 0.264980555,
        0.267704815, 0.414340436, 0.413461447}},
  };
  for (const Case& c : cases) {
    std::vector<float> have;
    const Program program = [&](Rank& rank) {
      auto model = rank.Make<OneLayer>();
      for (nn::Parameter* parameter : model.Parameters()) {
        const bool is_weight = parameter->shape.rank() == 2;
        auto values = parameter->value.span<float>();
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = is_weight ? (i + 1) / 16.0f : 0;
        }
      }
      DDPOptions options;
      options.reduction_dtype = c.dtype;
      DDP ddp(model, options);
      Sgd sgd(ddp, {/*lr=*/0.1});
      for (int step = 0; step < 5; ++step) {
        Var x = rank.Zeros({4, 3});
        for (int i = 0; i < 12; ++i) {
          const int number = 12 * rank.number() + i;
          x.tensor().data<float>()[i] =
              ((7 * number + 3 * step) % 11 - 5) / 3.0;
        }
        sgd.ZeroGrad();
        nn::MeanSquaredError(ddp(x), rank.Ones({4, 2})).Backward();
        sgd.Step();
      }
      if (rank.number() != 0) return;
      for (const nn::Parameter* parameter : ddp.Parameters()) {
        const float* const values = parameter->value.data<float>();
        have.insert(have.end(), values, values + parameter->value.numel());
      }
    };
    const absl::Status status = Spawn(program, /*ranks=*/2);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(have.size(), c.want.size());
    for (std::size_t i = 0; i < have.size(); ++i) {
      EXPECT_NEAR(have[i], c.want[i], 1e-6) << i;
    }
  }
}

}  // namespace
}  // namespace troupe
