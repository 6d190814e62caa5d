#include "troupe/plateau.h"

#include <vector>

#include "gtest/gtest.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

// Expected rates: PyTorch 2.15.
TEST(PlateauTest, HasTheRatesOfPyTorch) {
  const absl::Status status = Spawn(
      [](Rank& rank) {
        Sgd sgd(rank.Make<nn::Linear>(1, 1), {/*lr=*/0.1});
        const auto rates = [&](const PlateauOptions& options,
                               const std::vector<double>& metrics) {
          sgd.set_lr(0.1);
          ReduceLROnPlateau plateau(sgd, options);
          std::vector<double> all;
          for (const double metric : metrics) {
            plateau.Step(metric);
            all.push_back(sgd.lr());
          }
          return all;
        };
        PlateauOptions options;
        options.factor = 0.5;
        options.patience = 1;
        options.cooldown = 1;
        options.min_lr = 0.02;
        EXPECT_EQ(
            rates(options, {1.0, 0.9, 0.9, 0.89999, 0.95, 0.8, 0.81, 0.82, 0.83,
                            0.84, 0.85, 0.86, 0.87, 0.88}),
            (std::vector<double>{0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.025,
                                 0.025, 0.025, 0.02, 0.02, 0.02, 0.02}));
        PlateauOptions largest;
        largest.maximize = true;
        largest.patience = 0;
        largest.threshold = 0.05;
        largest.relative = false;
        EXPECT_EQ(rates(largest, {0.5, 0.54, 0.6, 0.64, 0.66}),
                  (std::vector<double>{
                      0.1, 0.010000000000000002, 0.010000000000000002,
                      0.0010000000000000002, 0.0010000000000000002}));
        largest.factor = 1;
        EXPECT_EQ(
            base::Try([&] { ReduceLROnPlateau(sgd, largest); }).ToString(),
            "INVALID_ARGUMENT: PlateauOptions.factor is at least 0 and below "
            "1, "
            "not 1");
      },
      /*ranks=*/1);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace troupe
