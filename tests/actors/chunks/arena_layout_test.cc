#include "actors/chunks/arena_layout.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

class ArenaLayoutTest : public testing::Test {
 protected:
  ArenaLayoutTest() {
    Add("a", nn::DType::kF32);
    Add("b", nn::DType::kBF16);
    Add("c", nn::DType::kF32);
    Add("d", nn::DType::kF32);
    stage_.buckets = {{2, 0}, {1}};
    stage_.frozen = {3};
  }
  // Adds a parameter of two elements, to the plan and to the module.
  void Add(const std::string& name, nn::DType dtype) {
    nn::Parameter& parameter = parameters_[stage_.parameters.size()];
    parameter.name = name;
    parameter.shape = nn::Shape({2});
    parameter.dtype = dtype;
    module_.push_back(&parameter);
    stage_.parameters.push_back(name);
    stage_.parameter_elems.push_back(2);
    stage_.parameter_dtypes.push_back(dtype);
  }
  absl::StatusOr<ArenaLayout> LayOut(
      const std::set<std::string>& copies = {}) const {
    return LayOutArenas(stage_, /*number=*/1, copies, module_);
  }
  static std::string NamesOf(const std::vector<nn::Parameter*>& parameters) {
    return absl::StrJoin(parameters, " ",
                         [](std::string* out, const nn::Parameter* each) {
                           absl::StrAppend(out, each->name);
                         });
  }

  nn::Parameter parameters_[4];
  std::vector<nn::Parameter*> module_;
  pipeline::StagePlan stage_;
};

TEST_F(ArenaLayoutTest, HasAnArenaForEachDType) {
  const ArenaLayout layout = *LayOut(/*copies=*/{"b"});
  ASSERT_EQ(layout.arenas.size(), 2u);
  ASSERT_EQ(layout.arenas[0].buckets.size(), 1u);
  EXPECT_EQ(NamesOf(layout.arenas[0].buckets[0]), "c a") << "in bucket order";
  EXPECT_EQ(NamesOf(layout.arenas[0].frozen), "d");
  EXPECT_TRUE(layout.arenas[0].copied.empty());
  EXPECT_EQ(NamesOf(layout.arenas[1].buckets[0]), "b");
  EXPECT_EQ(layout.arenas[1].copied, std::vector<int>({0}));
  ASSERT_EQ(layout.places.size(), 2u);
  EXPECT_EQ(layout.places[1].arena, 1);
  EXPECT_EQ(layout.places[1].k, 0);
}

TEST_F(ArenaLayoutTest, AStageWithoutParametersHasAnEmptyArena) {
  stage_ = pipeline::StagePlan();
  module_.clear();
  const ArenaLayout layout = *LayOut();
  ASSERT_EQ(layout.arenas.size(), 1u);
  EXPECT_TRUE(layout.arenas[0].buckets.empty());
}

TEST_F(ArenaLayoutTest, NamesTheParameterThatDiffersFromThePlan) {
  parameters_[2].shape = nn::Shape({3});
  const std::string other(LayOut().status().message());
  EXPECT_TRUE(absl::StrContains(other, "c is f32")) << other;
  EXPECT_TRUE(absl::StrContains(other, "not 2 elements of f32 in stage 1"))
      << other;
  parameters_[2].name = "e";
  const std::string missing(LayOut().status().message());
  EXPECT_TRUE(absl::StrContains(missing, "there is no c in stage 1"))
      << missing;
}

}  // namespace
}  // namespace troupe::actors
