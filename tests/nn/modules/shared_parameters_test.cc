// Parameters that several modules share, children without a name, lists of
// modules, frozen parameters.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/embedding.h"
#include "nn/modules/freeze.h"
#include "nn/modules/linear.h"
#include "nn/modules/module_list.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "pipeline/partition.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

std::string Names(Module& module) {
  return absl::StrJoin(
      module.Parameters(), " ", [](std::string* out, Parameter* parameter) {
        absl::StrAppend(out, parameter->name);
        for (const std::string& other : parameter->other_names) {
          absl::StrAppend(out, "=", other);
        }
      });
}

struct NoSink : GradientSink {
  void GradientComplete(Parameter& parameter) override {
    names.push_back(parameter.name);
  }
  void LastReaderDone(Parameter&) override {}
  std::vector<std::string> names;
};

// Dtype of the gradients: the parameters' dtype, or f64.
enum class Precision { kSame, kWide };

// Maps tokens to vectors and back by one table, as GPT-2 does.
std::unique_ptr<Sequential> MakeTied(bool tied) {
  auto model = std::make_unique<Sequential>();
  auto& tokens = model->AppendNamed<Embedding>("wte", 5, 3);
  model->Append<ReLU>();
  Linear::Options options;
  options.bias = false;
  auto& head = model->AppendNamed<Linear>("lm_head", 3, 5, options);
  if (tied) head.TieParameter("weight", tokens, "weight");
  return model;
}

// Returns the gradients of one step on two tokens, by name.
std::vector<std::vector<double>> Gradients(Module& model) {
  auto kernels = CreateReferenceKernels();
  Allocator& memory = kernels->allocator();
  const std::vector<Parameter*> parameters = model.Parameters();
  auto arena = *ParameterArena::Create({parameters}, {}, memory);
  for (Parameter* parameter : parameters) {
    for (std::int64_t i = 0; i < parameter->shape.numel(); ++i) {
      parameter->value.data<float>()[i] = 0.25f * static_cast<float>(i % 7 - 2);
    }
  }
  Tensor tokens = Tensor::Zeros({2}, DType::kI64, memory);
  tokens.data<std::int64_t>()[1] = 4;
  Tape tape;
  Context ctx(*kernels, &tape);
  const Tensor loss = ops::SoftmaxCrossEntropy(ctx, model(ctx, tokens), tokens);
  EXPECT_TRUE(ctx.ok()) << ctx.status();
  NoSink sink;
  BackwardPass pass(tape, *kernels, sink, BackwardPass::Mode::kWhole);
  pass.Seed(loss);
  while (*pass.Next()) {
  }
  EXPECT_EQ(sink.names.size(), parameters.size());
  std::vector<std::vector<double>> gradients;
  for (Parameter* parameter : parameters) {
    gradients.push_back(ValuesOf(parameter->grad));
  }
  return gradients;
}

TEST(SharedParameters, AreListedOnceUnderTheirFirstName) {
  EXPECT_EQ(Names(*MakeTied(false)), "wte.weight lm_head.weight");
  auto tied = MakeTied(true);
  EXPECT_EQ(Names(*tied), "wte.weight=lm_head.weight");
  // and so at the second call
  EXPECT_EQ(Names(*tied), "wte.weight=lm_head.weight");
  ShapeRecord record;
  ASSERT_TRUE(ShapeOnlyForward(*tied, {2}, DType::kI64, Device{}, record).ok());
  EXPECT_EQ(record.parameters, tied->Parameters());
}

TEST(SharedParameters, HaveTheSumOfTheirUsersGradients) {
  const auto apart = Gradients(*MakeTied(false));
  const auto tied = Gradients(*MakeTied(true));
  ASSERT_EQ(apart.size(), 2u);
  ASSERT_EQ(tied.size(), 1u);
  for (std::size_t i = 0; i < tied[0].size(); ++i) {
    EXPECT_NEAR(tied[0][i], apart[0][i] + apart[1][i], 1e-6) << i;
  }
}

TEST(SharedParameters, OutliveTheModuleThatDeclaredThem) {
  auto model = MakeTied(true);
  auto parts = *Sequential::Cut(std::move(model), {{1}});
  parts[0].reset();
  EXPECT_EQ(Names(*parts[1]), "lm_head.weight");
}

// Each part has its copy under the names of the whole model.
TEST(SharedParameters, AreCopiedByACut) {
  for (const int stage : {0, 1}) {
    const auto part =
        *pipeline::BuildStage([] { return MakeTied(true); }, {"1"}, stage);
    EXPECT_EQ(Names(*part), "wte.weight=lm_head.weight") << stage;
    EXPECT_EQ(part->Parameters()[0]->shape, (Shape{5, 3}));
    const auto own =
        *pipeline::BuildStage([] { return MakeTied(false); }, {"1"}, stage);
    EXPECT_EQ(Names(*own), stage == 0 ? "wte.weight" : "lm_head.weight");
  }
}

// Runs the backward of one micro-batch.
void AddGradients(Module& model, Kernels& kernels, std::int64_t token) {
  Tensor tokens = Tensor::Zeros({3}, DType::kI64, kernels.allocator());
  tokens.data<std::int64_t>()[0] = token;
  tokens.data<std::int64_t>()[2] = 4;
  Tape tape;
  Context ctx(kernels, &tape);
  const Tensor loss = ops::SoftmaxCrossEntropy(ctx, model(ctx, tokens), tokens);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  NoSink sink;
  BackwardPass pass(tape, kernels, sink, BackwardPass::Mode::kWhole);
  pass.Seed(loss);
  while (*pass.Next()) {
  }
}

// Returns the table's gradient over three micro-batches; with `tied` false, the
// head's plus the table's.
std::vector<double> GradientOfThree(bool tied, Precision grads, bool per_use) {
  auto kernels = CreateReferenceKernels();
  auto model = MakeTied(tied);
  const std::vector<Parameter*> parameters = model->Parameters();
  ParameterArena::Options options;
  if (grads == Precision::kWide) options.grad_dtype = DType::kF64;
  auto arena =
      *ParameterArena::Create({parameters}, options, kernels->allocator());
  for (Parameter* parameter : parameters) {
    parameter->first_use.apart = per_use;
    for (std::int64_t i = 0; i < parameter->shape.numel(); ++i) {
      parameter->value.data<float>()[i] = 0.1f * static_cast<float>(i % 7);
    }
  }
  arena->BeginStep();
  for (std::int64_t token : {0, 1, 2}) AddGradients(*model, *kernels, token);
  for (Parameter* parameter : parameters) {
    EXPECT_TRUE(AddUses(*kernels, *parameter).ok());
    EXPECT_FALSE(parameter->first_use.grad.defined());
  }
  if (!tied) {
    Tensor& sum = parameters[1]->grad;
    EXPECT_TRUE(kernels->Add(sum, parameters[0]->grad, sum).ok());
  }
  return ValuesOf(parameters.back()->grad);
}

// Each use is summed over all micro-batches, then both are added: the sum of
// two stages that hold one use each.
TEST(SharedParameters, MayAddUpUseByUse) {
  for (const Precision grads : {Precision::kSame, Precision::kWide}) {
    EXPECT_EQ(GradientOfThree(/*tied=*/true, grads, /*per_use=*/true),
              GradientOfThree(/*tied=*/false, grads, /*per_use=*/false));
  }
  EXPECT_NE(GradientOfThree(true, Precision::kSame, /*per_use=*/true),
            GradientOfThree(true, Precision::kSame, /*per_use=*/false))
      << "in the order of micro-batches, the last bits are others";
}

TEST(SharedParameters, HaveOneShape) {
  Sequential model;
  auto& a = model.Append<Linear>(2, 3);
  auto& b = model.Append<Linear>(3, 2);
  b.TieParameter("weight", a, "weight");
  EXPECT_EQ(model.CheckDeclarations(),
            absl::InvalidArgumentError(
                "module 1 ties its parameter \"weight\", f32[2, 3], to "
                "\"weight\", which is f32[3, 2]"));
  Sequential other;
  auto& c = other.Append<Linear>(2, 2);
  c.TieParameter("weight", a, "wight");
  EXPECT_EQ(other.CheckDeclarations(),
            absl::InvalidArgumentError("module 0 ties its parameter \"weight\" "
                                       "to \"wight\", and there is no "
                                       "\"wight\""));
}

class ClassToken : public Module {
 public:
  ClassToken() { Declare("cls_token", {1, 1, 2}, Initializer::Constant(0)); }
  Tensor Forward(Context&, const Tensor& x) override { return x; }
};

TEST(Module, AChildWithoutANameLendsItsNames) {
  Sequential model;
  model.AppendNamed<ClassToken>("");
  model.AppendNamed<Linear>("head", 2, 2);
  EXPECT_EQ(Names(model), "cls_token head.weight head.bias");
  EXPECT_TRUE(model.CheckDeclarations().ok());
  model.AppendNamed<ClassToken>("");
  EXPECT_EQ(model.CheckDeclarations(),
            absl::InvalidArgumentError(
                "the model has two parameters, buffers "
                "or children named \"cls_token\"; rename one"));
}

// Returns x plus the output of each of its layers for x.
class Branches : public Module {
 public:
  explicit Branches(int count) : layers_(Add<ModuleList<Linear>>("layers")) {
    for (int i = 0; i < count; ++i) layers_.Append(2, 2);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    Tensor y = x;
    for (Linear& layer : layers_) y = ops::Add(ctx, y, layer(ctx, x));
    return y;
  }
  const ModuleList<Linear>& layers() const { return layers_; }

 private:
  ModuleList<Linear>& layers_;
};

TEST(ModuleList, NamesItsModulesByNumber) {
  Branches model(2);
  EXPECT_EQ(Names(model),
            "layers.0.weight layers.0.bias layers.1.weight layers.1.bias");
  EXPECT_EQ(model.layers().size(), 2);
  EXPECT_EQ(model.layers()[1].name(), "1");
  ShapeRecord record;
  ASSERT_TRUE(
      ShapeOnlyForward(model, {4, 2}, DType::kF32, Device{}, record).ok());
  ASSERT_EQ(record.ops.size(), 4u);
  EXPECT_EQ(record.ops[2].module, "layers.1");
}

TEST(ModuleList, HasNoForward) {
  Sequential model;
  model.Append<ModuleList<>>().Append<Linear>(2, 2);
  ShapeRecord record;
  EXPECT_EQ(
      ShapeOnlyForward(model, {4, 2}, DType::kF32, Device{}, record).status(),
      absl::InvalidArgumentError("in module 0: a ModuleList has no forward: "
                                 "call its modules, or use a Sequential"));
}

TEST(FreezeParameters, TakesPatterns) {
  auto model = MakeTied(false);
  ASSERT_TRUE(FreezeParameters(*model, {"wte.*"}).ok());
  EXPECT_FALSE(model->Parameters()[0]->requires_grad);
  EXPECT_TRUE(model->Parameters()[1]->requires_grad);
  EXPECT_EQ(
      FreezeParameters(*model, {"features.*"}),
      absl::InvalidArgumentError(
          "no parameter is called \"features.*\" (* stands for any text); "
          "choose among wte.weight lm_head.weight"));
  auto tied = MakeTied(true);
  ASSERT_TRUE(FreezeParameters(*tied, {"lm_head.*"}).ok());
  EXPECT_FALSE(tied->Parameters()[0]->requires_grad);
}

TEST(FreezeParameters, StarsStandForAnyText) {
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{
           {"*", ""},
           {"*", "a.b"},
           {"a*", "a"},
           {"*.bias", "0.x.bias"},
           {"h.*.ln*.weight", "h.10.ln_1.weight"},
           {"", ""},
           {"**", "x"}}) {
    EXPECT_TRUE(MatchesPattern(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{{"", "a"},
                                                        {"a", ""},
                                                        {"a*b", "abc"},
                                                        {"*.bias", "0.bias2"},
                                                        {"h.1.*", "h.10.x"},
                                                        {"a*a", "a"}}) {
    EXPECT_FALSE(MatchesPattern(pattern, text)) << pattern << " " << text;
  }
}

}  // namespace
}  // namespace troupe::nn
