#include "tools/golden/parity_table.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace troupe::golden {
namespace {

// Returns a row with all values within the limits.
ParityRow Row() {
  ParityRow row;
  row.model = "gpt";
  row.f64 = {1e-15, 2e-15, {{"wte.weight", 4e-15}, {"ln_f.bias", 3e-15}}, 1e-9};
  row.f32 = {2e-7, 0, {{"wte.weight", 4e-7}, {"ln_f.bias", 6e-7}}, 2e-6};
  row.torch_f32 = {4e-7, 0, {{"ln_f.bias", 4e-7}, {"wte.weight", 4e-7}}, 1e-6};
  return row;
}

TEST(ParityTable, ShowsWhatIsFurthest) {
  const std::vector<ParityLine> lines = Judge(Row());
  EXPECT_TRUE(AllOk(lines));
  EXPECT_EQ(ParityTableHead() + ParityTableLines("gpt", lines),
            R"(model     what            f64    limit       f32   PyTorch  ratio
gpt       output      1.0e-15    1e-09   2.0e-07   4.0e-07   0.50
gpt       loss        2.0e-15    1e-09   0.0e+00   0.0e+00   0.00
gpt       gradients   4.0e-15    1e-09   6.0e-07   4.0e-07   1.50
          worst: f64 wte.weight, f32 ln_f.bias
gpt       losses      1.0e-09    1e-06   2.0e-06   1.0e-06   2.00
)");
}

TEST(ParityTable, JudgesEachNumber) {
  const auto failing = [](auto change) {
    ParityRow row = Row();
    change(row);
    std::string names;
    for (const ParityLine& line : Judge(row)) {
      if (!line.ok()) names += line.what + " ";
    }
    return names;
  };
  EXPECT_EQ(failing([](ParityRow&) {}), "");
  EXPECT_EQ(failing([](ParityRow& row) { row.f64.output = 2e-9; }), "output ");
  EXPECT_EQ(failing([](ParityRow& row) { row.f64.loss = 2e-9; }), "loss ");
  EXPECT_EQ(failing([](ParityRow& row) { row.f64.gradients[1].error = 2e-9; }),
            "gradients ");
  EXPECT_EQ(failing([](ParityRow& row) { row.f64.losses = 2e-6; }), "losses ");
  EXPECT_EQ(failing([](ParityRow& row) { row.f32.output = 9e-7; }), "output ");
  EXPECT_EQ(failing([](ParityRow& row) { row.f32.loss = 1e-7; }), "");
  EXPECT_EQ(failing([](ParityRow& row) { row.f32.loss = 2e-7; }), "loss ");
  EXPECT_EQ(failing([](ParityRow& row) { row.f32.gradients[0].error = 9e-7; }),
            "gradients ");
  // A gradient of PyTorch's that is exact may be so by chance.
  EXPECT_EQ(failing([](ParityRow& row) {
              row.torch_f32.gradients[1].error = 0;
              row.f32.gradients[0].error = 4.7e-7;
            }),
            "");
  EXPECT_EQ(failing([](ParityRow& row) {
              row.torch_f32.gradients[1].error = 0;
              row.f32.gradients[0].error = 4.8e-7;
            }),
            "gradients ");
  EXPECT_EQ(failing([](ParityRow& row) {
              row.f64.losses = std::numeric_limits<double>::infinity();
            }),
            "losses ");
}

TEST(ParityTable, SaysWhatFailed) {
  ParityRow row = Row();
  row.f64.output = 0.25;
  const std::vector<ParityLine> lines = Judge(row);
  EXPECT_FALSE(AllOk(lines));
  EXPECT_EQ(
      ParityTableLines("gpt", {lines[0]}),
      "gpt       output      2.5e-01    1e-09   2.0e-07   4.0e-07   0.50  "
      "FAILED\n");
}

}  // namespace
}  // namespace troupe::golden
