#include "tools/bench/nn/saved_activations.h"

#include "gtest/gtest.h"
#include "tools/bench/train_case.h"

namespace troupe::bench {
namespace {

double SavedMiB(const std::string& name,
                const std::vector<std::string>& settings = {}) {
  const auto spec = MakeTrainJob(name, /*ranks=*/1, settings);
  EXPECT_TRUE(spec.ok()) << spec.status();
  const auto mib = SavedActivationMiB(*spec);
  EXPECT_TRUE(mib.ok()) << mib.status();
  return mib.value_or(0);
}

// The aim is less than half of the activations.
TEST(SavedActivations, RecomputedBlocksOfGptKeepTheirInputsAlone) {
  // 8 x 128 x 256 numbers of 4 bytes.
  constexpr double kInputMiB = 1;
  const double all = SavedMiB("gpt12");
  const double left = SavedMiB("gpt12_recomputed");
  EXPECT_LT(left, all / 2);
  EXPECT_GE(left, 12 * kInputMiB);
  EXPECT_LT(left, 20 * kInputMiB);
}

TEST(SavedActivations, ThoseOfBf16TakeAboutHalf) {
  const double f32 = SavedMiB("toy_cnn");
  const double bf16 = SavedMiB("toy_cnn", {"train.precision=bf16"});
  EXPECT_GT(f32, 0);
  EXPECT_GT(bf16, 0.4 * f32);
  EXPECT_LT(bf16, 0.7 * f32);
}

}  // namespace
}  // namespace troupe::bench
