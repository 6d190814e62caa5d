#include "tools/bench/nn/breakdown.h"

#include "gtest/gtest.h"

namespace troupe::bench {
namespace {

TEST(Breakdown, ProductsAreTheOpsWithWeightsOrMatrices) {
  for (const char* op : {"LinearForward", "Conv2dBackwardInput",
                         "AttentionBackward", "MatMul"}) {
    EXPECT_TRUE(IsProduct(op)) << op;
  }
  for (const char* op : {"BiasForward", "NormForward", "SgdUpdate", "Scale"}) {
    EXPECT_FALSE(IsProduct(op)) << op;
  }
}

}  // namespace
}  // namespace troupe::bench
