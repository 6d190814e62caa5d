#include "pipeline/partition.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"

namespace troupe::pipeline {
namespace {

// Flatten, Linear, ReLU, Linear, ReLU, Linear: children 0 to 5.
std::unique_ptr<nn::Module> Mlp() { return nn::MakeMlp({8, 7, 6, 5}, {}); }

// "1.weight[7, 8] 1.bias[7] ": the parameters of a stage.
std::string Parameters(const std::vector<int>& cuts, int stage) {
  absl::StatusOr<std::unique_ptr<nn::Module>> module =
      BuildStage(Mlp, cuts, stage);
  if (!module.ok()) return module.status().ToString();
  std::string text;
  for (const nn::Parameter* parameter : (*module)->Parameters()) {
    absl::StrAppend(&text, parameter->name, parameter->shape.ToString(), " ");
  }
  return text;
}

TEST(PartitionTest, StagesAreContiguousAndKeepTheirNames) {
  EXPECT_EQ(Parameters({}, 0),
            "1.weight[7, 8] 1.bias[7] 3.weight[6, 7] 3.bias[6] "
            "5.weight[5, 6] 5.bias[5] ");
  EXPECT_EQ(Parameters({3}, 0), "1.weight[7, 8] 1.bias[7] ");
  EXPECT_EQ(Parameters({3}, 1),
            "3.weight[6, 7] 3.bias[6] 5.weight[5, 6] 5.bias[5] ");
  EXPECT_EQ(Parameters({2, 5}, 1), "3.weight[6, 7] 3.bias[6] ");
  EXPECT_EQ(Parameters({2, 3, 4}, 1), "") << "a stage without parameters";
}

TEST(PartitionTest, CutsThatDoNotFit) {
  const std::string inside =
      " is not inside the model: cuts ascend between 1 and 5 for a Sequential "
      "of 6";
  EXPECT_EQ(Parameters({0}, 0),
            absl::StrCat("INVALID_ARGUMENT: cut 0", inside));
  EXPECT_EQ(Parameters({6}, 0),
            absl::StrCat("INVALID_ARGUMENT: cut 6", inside));
  EXPECT_EQ(Parameters({4, 2}, 0),
            absl::StrCat("INVALID_ARGUMENT: cut 2", inside));
  EXPECT_EQ(Parameters({2, 2}, 0),
            absl::StrCat("INVALID_ARGUMENT: cut 2", inside));
}

TEST(PartitionTest, OnlyASequentialIsCut) {
  const nn::ModelFactory linear = [] {
    return std::make_unique<nn::Linear>(3, 2);
  };
  ASSERT_TRUE(BuildStage(linear, {}, 0).ok());
  EXPECT_EQ((*BuildStage(linear, {}, 0))->Parameters()[0]->name, "weight");
  EXPECT_EQ(BuildStage(linear, {1}, 0).status(),
            absl::InvalidArgumentError(
                "only a Sequential can be cut into stages; make the model one, "
                "or set mesh.pp to 1"));
}

class Twins : public nn::Sequential {
 public:
  Twins() {
    Add<nn::Linear>("twin", 3, 3);
    Add<nn::Linear>("twin", 3, 3);
  }
};

TEST(PartitionTest, ANameInTwoStagesIsFoundBeforeTheCut) {
  const nn::ModelFactory twins = [] { return std::make_unique<Twins>(); };
  EXPECT_EQ(BuildStage(twins, {1}, 1).status(),
            absl::InvalidArgumentError("the model has two parameters, buffers "
                                       "or children named \"twin\""));
}

TEST(PartitionTest, AFactoryMayFail) {
  EXPECT_EQ(BuildStage([] { return nullptr; }, {}, 0).status(),
            absl::InvalidArgumentError("the model factory returned no model"));
}

}  // namespace
}  // namespace troupe::pipeline
