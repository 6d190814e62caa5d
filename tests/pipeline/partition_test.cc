#include "pipeline/partition.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"

namespace troupe::pipeline {
namespace {

// Flatten, Linear, ReLU, Linear, ReLU, Linear: children 0 to 5.
std::unique_ptr<nn::Module> Mlp() { return nn::MakeMlp({8, 7, 6, 5}, {}); }

// A module that holds a Sequential and does more with it.
class Residual : public nn::Module {
 public:
  Residual() : body_(Add<nn::Sequential>("body")) {
    body_.Append<nn::Linear>(3, 3);
    body_.Append<nn::Linear>(3, 3);
  }
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return body_(ctx, x);
  }

 private:
  nn::Sequential& body_;
};

// stem, features (0, 1: block of 0 and 1, 2), residual, head: children with
// names, two of them Sequentials within each other.
class Net : public nn::Sequential {
 public:
  Net() {
    Add<nn::Linear>("stem", 3, 3);
    auto& features = Add<nn::Sequential>("features");
    features.Append<nn::Linear>(3, 3);
    auto& block = features.Append<nn::Sequential>();
    block.Append<nn::Linear>(3, 3);
    block.Append<nn::Linear>(3, 3);
    features.Append<nn::ReLU>();
    Add<Residual>("residual");
    Add<nn::Linear>("head", 3, 2);
  }
};
std::unique_ptr<nn::Module> MakeNet() { return std::make_unique<Net>(); }

// "3 features.4", or the error.
std::string Resolved(const nn::ModelFactory& factory,
                     const std::vector<Cut>& cuts) {
  const auto begins = ResolveCuts(factory, cuts);
  if (begins.ok()) return absl::StrJoin(*begins, " ");
  EXPECT_TRUE(absl::IsInvalidArgument(begins.status())) << begins.status();
  return std::string(begins.status().message());
}

// "1.weight[7, 8] 1.bias[7] ": the parameters of a stage.
std::string Parameters(const nn::ModelFactory& factory,
                       const std::vector<Cut>& cuts, int stage) {
  const auto begins = ResolveCuts(factory, cuts);
  if (!begins.ok()) return begins.status().ToString();
  const auto module = BuildStage(factory, *begins, stage);
  if (!module.ok()) return module.status().ToString();
  std::string text;
  for (const nn::Parameter* parameter : (*module)->Parameters()) {
    absl::StrAppend(&text, parameter->name, parameter->shape.ToString(), " ");
  }
  return text;
}

TEST(PartitionTest, StagesAreContiguousAndKeepTheirNames) {
  EXPECT_EQ(Parameters(Mlp, {}, 0),
            "1.weight[7, 8] 1.bias[7] 3.weight[6, 7] 3.bias[6] "
            "5.weight[5, 6] 5.bias[5] ");
  EXPECT_EQ(Parameters(Mlp, {3}, 0), "1.weight[7, 8] 1.bias[7] ");
  EXPECT_EQ(Parameters(Mlp, {3}, 1),
            "3.weight[6, 7] 3.bias[6] 5.weight[5, 6] 5.bias[5] ");
  EXPECT_EQ(Parameters(Mlp, {2, 5}, 1), "3.weight[6, 7] 3.bias[6] ");
  EXPECT_EQ(Parameters(Mlp, {2, 3, 4}, 1), "") << "a stage without parameters";
}

TEST(PartitionTest, OnePlaceHasOnePath) {
  EXPECT_EQ(Resolved(Mlp, {}), "");
  EXPECT_EQ(Resolved(Mlp, {2, 5}), "2 5");
  EXPECT_EQ(Resolved(Mlp, {"2", 5}), "2 5");
  for (const Cut& cut : {Cut(1), Cut("features"), Cut("features.0")}) {
    EXPECT_EQ(Resolved(MakeNet, {cut}), "features") << cut.ToString();
  }
  EXPECT_EQ(Resolved(MakeNet, {"features.1.0", "features.1.1", 3}),
            "features.1 features.1.1 head");
}

TEST(PartitionTest, ASequentialInAnotherIsCut) {
  const std::vector<Cut> cuts = {"features.1.1", "features.2", "head"};
  EXPECT_EQ(Parameters(MakeNet, cuts, 0),
            "stem.weight[3, 3] stem.bias[3] features.0.weight[3, 3] "
            "features.0.bias[3] features.1.0.weight[3, 3] "
            "features.1.0.bias[3] ");
  EXPECT_EQ(Parameters(MakeNet, cuts, 1),
            "features.1.1.weight[3, 3] features.1.1.bias[3] ");
  EXPECT_EQ(Parameters(MakeNet, cuts, 2),
            "residual.body.0.weight[3, 3] residual.body.0.bias[3] "
            "residual.body.1.weight[3, 3] residual.body.1.bias[3] ");
  EXPECT_EQ(Parameters(MakeNet, cuts, 3), "head.weight[2, 3] head.bias[2] ");
}

// With any cuts, the stages have the model's parameters, with the same names.
TEST(PartitionTest, NamesDoNotDependOnCuts) {
  const std::string whole = Parameters(MakeNet, {}, 0);
  for (const std::vector<Cut>& cuts : std::vector<std::vector<Cut>>{
           {1}, {"features.1"}, {"features.1.1"}, {"features.2", "residual"}}) {
    std::string parts;
    for (int stage = 0; stage <= static_cast<int>(cuts.size()); ++stage) {
      parts += Parameters(MakeNet, cuts, stage);
    }
    EXPECT_EQ(parts, whole);
  }
}

TEST(PartitionTest, CutsThatDoNotFit) {
  const std::string inside =
      " is not inside the model: cuts must be between 1 and 5 for a Sequential "
      "of "
      "6";
  EXPECT_EQ(Resolved(Mlp, {0}), absl::StrCat("cut 0", inside));
  EXPECT_EQ(Resolved(Mlp, {6}), absl::StrCat("cut 6", inside));
  EXPECT_EQ(Resolved(Mlp, {-1}), absl::StrCat("cut -1", inside));
  EXPECT_EQ(Resolved(Mlp, {4, 2}),
            "cut 2 does not stand behind cut 4; put them in order");
  EXPECT_EQ(Resolved(Mlp, {2, "2"}),
            "cut \"2\" does not stand behind cut 2; put them in order");
  EXPECT_EQ(Resolved(MakeNet, {"features.2", "features.1.1"}),
            "cut \"features.1.1\" does not stand behind cut \"features.2\"; "
            "put them in order");
  for (const std::string path : {"stem", "0"}) {
    const nn::ModelFactory factory = path == "0" ? Mlp : MakeNet;
    EXPECT_EQ(Resolved(factory, {path}),
              absl::StrCat("cut \"", path,
                           "\" is where the model begins, as the first stage "
                           "does; leave it out"));
  }
}

TEST(PartitionTest, PathsThatLeadNowhere) {
  constexpr char kOnlySequentials[] =
      ", and only a Sequential can be cut; cut before it or behind it";
  const std::vector<std::pair<std::string, std::string>> errors = {
      {"feature",
       "the model has no child \"feature\"; it has stem features residual "
       "head"},
      {"", "the model has no child \"\"; it has stem features residual head"},
      {"features.3", "module features has no child \"3\"; it has 0 1 2"},
      {"features.", "module features has no child \"\"; it has 0 1 2"},
      {"features.2.weight",
       absl::StrCat("module features.2 is a troupe::nn::ReLU",
                    kOnlySequentials)},
      // The inner module is a Sequential, the outer one is not.
      {"residual.body.1",
       absl::StrCat("module residual is a troupe::pipeline::(anonymous "
                    "namespace)::Residual",
                    kOnlySequentials)},
  };
  for (const auto& [path, error] : errors) {
    EXPECT_EQ(Resolved(MakeNet, {path}),
              absl::StrCat("cut \"", path, "\": ", error));
  }
  const nn::ModelFactory wide = [] {
    auto model = std::make_unique<nn::Sequential>();
    for (int i = 0; i < 100; ++i) model->Append<nn::ReLU>();
    return model;
  };
  EXPECT_EQ(Resolved(wide, {"x"}),
            "cut \"x\": the model has no child \"x\"; it has 0 1 2 3 4 5 6 7 8 "
            "9 10 11 12 13 14 15 ...");
}

TEST(PartitionTest, OnlyASequentialIsCut) {
  const nn::ModelFactory linear = [] {
    return std::make_unique<nn::Linear>(3, 2);
  };
  ASSERT_TRUE(BuildStage(linear, {}, 0).ok());
  EXPECT_EQ((*BuildStage(linear, {}, 0))->Parameters()[0]->name, "weight");
  const std::string error =
      "only a Sequential can be cut into stages, not a troupe::nn::Linear; "
      "make the model one, or leave it whole";
  EXPECT_EQ(Resolved(linear, {1}), error);
  EXPECT_EQ(BuildStage(linear, {"1"}, 0).status(),
            absl::InvalidArgumentError(error));
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
  const std::string error =
      "the model has two parameters, buffers or children named \"twin\"; "
      "rename one";
  EXPECT_EQ(Resolved(twins, {1}), error);
  EXPECT_EQ(BuildStage(twins, {"twin"}, 1).status(),
            absl::InvalidArgumentError(error));
}

TEST(PartitionTest, AFactoryMayFail) {
  const nn::ModelFactory none = [] { return nullptr; };
  EXPECT_EQ(BuildStage(none, {}, 0).status(),
            absl::InvalidArgumentError(
                "the ModelFactory returned null; return a module from it"));
  EXPECT_EQ(Resolved(none, {1}),
            "the ModelFactory returned null; return a module from it");
}

}  // namespace
}  // namespace troupe::pipeline
