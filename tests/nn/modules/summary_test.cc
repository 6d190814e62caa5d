#include "nn/modules/summary.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/freeze.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {
namespace {

TEST(Summary, IsATableOfTheModules) {
  Sequential model;
  auto& features = model.AppendNamed<Sequential>("features");
  features.Append<Linear>(4, 1000);
  features.Append<ReLU>();
  model.AppendNamed<Linear>("head", 1000, 3);
  ASSERT_TRUE(FreezeParameters(model, {"features.*"}).ok());
  const auto summary = Summary(model, {{2, 4}, DType::kF32});
  ASSERT_TRUE(summary.ok()) << summary.status();
  const std::string want = R"(
Layer                     Output shape      Parameters       Mult-adds
======================================================================
Sequential                [2, 3]                    --              --
├─ features (Sequential)  [2, 1000]                 --              --
│  ├─ 0 (Linear)          [2, 1000]            (5,000)           8,000
│  └─ 1 (ReLU)            [2, 1000]                 --           1,000
└─ head (Linear)          [2, 3]                 3,003           6,000
======================================================================
Parameters: 8,003, of which 3,003 are trained; buffers: 0
Mult-adds of a forward of f32[2, 4]: 15,000
Memory: parameters 32.0 kB, gradients 12.0 kB, buffers 0 B, activations for backward up to 16.0 kB
)";
  EXPECT_EQ("\n" + summary->ToString(), want);
}

TEST(Summary, RowsOfATableHaveWhatLiesBelow) {
  Sequential model;
  auto& block = model.Append<Sequential>();
  block.Append<Linear>(4, 4);
  block.Append<ReLU>();
  model.Append<Linear>(4, 2);
  block.Parameters()[0]->requires_grad = false;
  const auto summary = Summary(model, {{1, 4}, DType::kF32});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ("\n" + summary->Table(/*depth=*/1), R"(
Layer              Output shape      Parameters       Mult-adds
===============================================================
Sequential         [1, 2]                    --              --
├─ 0 (Sequential)  [1, 4]                    20              18
└─ 1 (Linear)      [1, 2]                    10               8
===============================================================
)");
  for (Parameter* p : block.Parameters()) p->requires_grad = false;
  const auto frozen = Summary(model, {{1, 4}, DType::kF32});
  EXPECT_NE(frozen->Table(0).find(" 30 "), std::string::npos);
  EXPECT_NE(frozen->Table(1).find(" (20) "), std::string::npos);
}

TEST(Summary, CountsASharedParameterOnce) {
  Sequential model;
  auto& first = model.Append<Linear>(4, 4);
  auto& second = model.Append<Linear>(4, 4);
  second.TieParameter("weight", first, "weight");
  const auto summary = Summary(model, {{1, 4}, DType::kF32});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->parameters, 24);
  EXPECT_EQ(summary->gradient_bytes, 96);
  EXPECT_EQ(summary->rows[1].parameters, 20);
  EXPECT_EQ(summary->rows[2].parameters, 4);
  EXPECT_EQ(summary->mult_adds, 32);
}

TEST(Summary, HasTheErrorOfTheForward) {
  EXPECT_EQ(
      Summary(*MakeMlp({4, 3}, {}), {{1, 5}, DType::kF32}).status().message(),
      "in module 1: linear takes x[..., K] and w[M, K] of one dtype, got "
      "f32[1, 5] and f32[3, 4]");
}

}  // namespace
}  // namespace troupe::nn
