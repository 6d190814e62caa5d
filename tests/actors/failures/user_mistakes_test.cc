// Mistakes in a user's model, loss, factories and schedule: each ends the job
// with a Status that names rank, step and module, and never the process.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/table/schedule.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Computes what it is given.
class Custom : public nn::Module {
 public:
  using Fn = std::function<nn::Tensor(nn::Context& ctx, const nn::Tensor& x)>;
  explicit Custom(Fn fn) : fn_(std::move(fn)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return fn_(ctx, x);
  }

 private:
  const Fn fn_;
};

// Declares what it uses when it is run for the `at`-th time.
class Late : public nn::Module {
 public:
  enum class What { kParameter, kBuffer, kModule };
  Late(What what, int at) : what_(what), left_(at) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    if (left_-- > 0) return x;
    switch (what_) {
      case What::kParameter:
        ctx.Use(Declare("late", {1}, nn::Initializer::Constant(0)));
        return x;
      case What::kBuffer:
        ctx.Use(DeclareBuffer("late", {1}, /*initial=*/0));
        return x;
      case What::kModule:
        return Add<nn::Linear>("late", 10, 10)(ctx, x);
    }
    return x;
  }

 private:
  const What what_;
  int left_;
};

// Digits through one linear layer, then `last`.
JobSpec LinearJob(std::function<void(nn::Sequential&)> last) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/3);
  spec.plan.micro_batch_size = 16;
  spec.test = nullptr;
  spec.model = [last = std::move(last)] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 10);
    last(*model);
    return model;
  };
  return spec;
}
JobSpec CustomJob(Custom::Fn fn) {
  return LinearJob(
      [fn = std::move(fn)](auto& model) { model.template Append<Custom>(fn); });
}

JobSpec PlainJob(int dp = 1) {
  JobSpec spec = LinearJob([](nn::Sequential&) {});
  spec.plan.mesh = pipeline::Mesh(dp);
  return spec;
}

// A job with this loss.
JobSpec LossJob(nn::ops::LossFn loss) {
  JobSpec spec = PlainJob();
  spec.loss = std::move(loss);
  return spec;
}

// How the job ends that a mistake ends.
std::string ErrorOf(const JobSpec& spec) {
  const absl::Status status = RunJob(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

constexpr char kInStep1[] = "rank 0, compute: step 1, micro-batch 0: ";

TEST(UserMistakesTest, WithoutOneItTrains) {
  const absl::StatusOr<JobResult> result = RunJob(PlainJob(/*dp=*/2));
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST(UserMistakesTest, ALayerThatIsMadeInForward) {
  const auto late = [](Late::What what, int at) {
    return ErrorOf(LinearJob(
        [=](nn::Sequential& model) { model.Append<Late>(what, at); }));
  };
  constexpr char kAdvice[] =
      " has no memory: either the model has none yet (an arena gives it), or "
      "it was declared after the model was made; declare it, and add its "
      "module, in the constructor";
  // In the second step, which has two micro-batches as the first one has.
  constexpr char kInStep2[] =
      "rank 0, compute: step 2, micro-batch 0: in module 2";
  EXPECT_EQ(late(Late::What::kParameter, 2),
            absl::StrCat(kInStep2, ": parameter late", kAdvice));
  EXPECT_EQ(late(Late::What::kBuffer, 2),
            absl::StrCat(kInStep2, ": buffer late", kAdvice));
  EXPECT_EQ(late(Late::What::kModule, 2),
            absl::StrCat(kInStep2, ".late: parameter weight", kAdvice));
  // In the shape-only forward already: then in the plan.
  EXPECT_EQ(late(Late::What::kModule, 0),
            "rank 0, compute: JobSpec.model made another model than the one "
            "that was planned: there is no 2.late.weight in stage 0; it must "
            "make the same model each time");
  EXPECT_EQ(late(Late::What::kBuffer, 0),
            absl::StrCat(kInStep1, "in module 2: buffer late", kAdvice));
}

TEST(UserMistakesTest, ElementsInAShapeOnlyForward) {
  EXPECT_EQ(ErrorOf(CustomJob([](nn::Context&, const nn::Tensor& x) {
              x.data<float>()[0] = 1;
              return x;
            })),
            "in module 2: f32[16, 10] on cpu:0 (meta) has no memory: in a "
            "shape-only forward, ask Context::computes() before touching "
            "elements");
  EXPECT_EQ(ErrorOf(CustomJob([](nn::Context& ctx, const nn::Tensor& x) {
              nn::Tensor y = ctx.Empty("mine", x.shape(), x.dtype());
              ctx.Fail(ctx.kernels().Add(x, x, y));
              return y;
            })),
            "in module 2: a shape-only forward has no kernels: ask "
            "Context::computes() first");
}

TEST(UserMistakesTest, ATensorThatIsTakenForAnother) {
  const auto in_training = [](Custom::Fn fn) {
    return ErrorOf(
        CustomJob([fn = std::move(fn)](nn::Context& ctx, const nn::Tensor& x) {
          return ctx.shape_only() ? x : fn(ctx, x);
        }));
  };
  EXPECT_EQ(in_training([](nn::Context&, const nn::Tensor& x) {
              x.data<double>()[0] = 1;
              return x;
            }),
            absl::StrCat(kInStep1,
                         "in module 2: f32[16, 10] on cpu:0 has no elements of "
                         "f64"));
  EXPECT_EQ(in_training(
                [](nn::Context&, const nn::Tensor& x) { return x.View({3}); }),
            absl::StrCat(kInStep1,
                         "in module 2: f32[16, 10] on cpu:0 has no view [3]: "
                         "that has another number of elements"));
  EXPECT_EQ(in_training([](nn::Context&, const nn::Tensor& x) {
              return nn::Tensor::Meta(x.shape(), x.dtype(), x.device());
            }),
            absl::StrCat(kInStep1,
                         "f32[16, 10] on cpu:0 (meta) has no memory: in a "
                         "shape-only forward, ask Context::computes() before "
                         "touching elements"));
}

TEST(UserMistakesTest, AForwardThatReturnsNothing) {
  constexpr char kNothing[] =
      "in module 2: Forward() returned an undefined tensor and no error; "
      "return a tensor, or call Context::Fail()";
  EXPECT_EQ(ErrorOf(CustomJob(
                [](nn::Context&, const nn::Tensor&) { return nn::Tensor(); })),
            kNothing);
  EXPECT_EQ(ErrorOf(CustomJob([](nn::Context& ctx, const nn::Tensor& x) {
              return ctx.shape_only() ? x : nn::Tensor();
            })),
            absl::StrCat(kInStep1, kNothing));
  // A tensor without elements is one.
  EXPECT_EQ(ErrorOf(CustomJob([](nn::Context&, const nn::Tensor& x) {
              return x.Slice(0, 0);
            })),
            absl::StrCat(kInStep1,
                         "cross entropy takes logits[..., C] and i64 "
                         "targets[...], got f32[0, 10] and i64[16]"));
}

TEST(UserMistakesTest, ALossThatIsNone) {
  constexpr char kNotStatistics[] =
      ", not the statistics of a loss; return those of nn/ops/loss.h";
  const auto returned = [&](const std::string& what) {
    return absl::StrCat(kInStep1, "the loss function returned ", what,
                        kNotStatistics);
  };
  using nn::Tensor;
  EXPECT_EQ(ErrorOf(LossJob([](nn::Context&, const Tensor&, const Tensor&) {
              return Tensor();
            })),
            returned("an undefined tensor"));
  EXPECT_EQ(ErrorOf(LossJob([](nn::Context&, const Tensor& y, const Tensor&) {
              return y;
            })),
            returned("f32[16, 10] on cpu:0"));
  EXPECT_EQ(ErrorOf(LossJob([](nn::Context&, const Tensor& y, const Tensor&) {
              return Tensor::Meta({nn::ops::kNumLossStats}, nn::DType::kF64,
                                  y.device());
            })),
            returned("f64[3] on cpu:0 (meta)"));
  EXPECT_EQ(
      ErrorOf(LossJob([](nn::Context& ctx, const Tensor& y, const Tensor& t) {
        t.data<float>();
        return nn::ops::SoftmaxCrossEntropy(ctx, y, t);
      })),
      absl::StrCat(kInStep1, "i64[16] on cpu:0 has no elements of f32"));
}

TEST(UserMistakesTest, WhatThrowsIsNamed) {
  JobSpec spec = CustomJob([](nn::Context& ctx, const nn::Tensor& x) {
    if (!ctx.shape_only()) throw std::runtime_error("no luck today");
    return x;
  });
  EXPECT_EQ(RunJob(spec).status(),
            absl::InternalError(
                absl::StrCat(kInStep1, "in module 2: no luck today")));
  spec = LossJob(
      [](nn::Context&, const nn::Tensor&, const nn::Tensor&) -> nn::Tensor {
        throw std::runtime_error("no luck today");
      });
  EXPECT_EQ(RunJob(spec).status(),
            absl::InternalError(absl::StrCat(kInStep1, "no luck today")));
}

TEST(UserMistakesTest, ANameThatIsTakenTwice) {
  struct Twins : nn::Module {
    Twins() {
      Declare("twin", {1}, nn::Initializer::Constant(0));
      DeclareBuffer("twin", {1}, /*initial=*/0);
    }
    nn::Tensor Forward(nn::Context&, const nn::Tensor& x) override { return x; }
  };
  EXPECT_EQ(ErrorOf(LinearJob([](nn::Sequential& model) {
              model.Append<nn::Sequential>().Append<Twins>();
            })),
            "module 2.0 has two parameters, buffers or children named "
            "\"twin\"; rename one");
}

// A job of two ranks whose factory makes something else for the second of them
// (the plan's model is the first).
JobSpec DifferingJob(std::function<void(nn::Sequential&, bool other)> last) {
  auto made = std::make_shared<std::atomic<int>>(0);
  JobSpec spec = LinearJob([made, last = std::move(last)](auto& model) {
    last(model, made->fetch_add(1) == 2);
  });
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  return spec;
}

TEST(UserMistakesTest, FactoriesThatDifferAmongRanks) {
  const auto another = [](const std::string& what) {
    return testing::MatchesRegex(absl::StrCat(
        "rank [01], compute: JobSpec.model made another model than the one "
        "that was planned: ",
        what, " in stage 0; it must make the same model each time"));
  };
  EXPECT_THAT(ErrorOf(DifferingJob([](nn::Sequential& model, bool other) {
                if (other) model.Append<nn::Linear>(10, 10);
              })),
              another("there is a 2.(weight|bias)"));
  EXPECT_THAT(ErrorOf(DifferingJob([](nn::Sequential& model, bool other) {
                if (!other) model.Append<nn::Linear>(10, 10);
              })),
              another("there is no 2.weight"));
  EXPECT_THAT(ErrorOf(DifferingJob([](nn::Sequential& model, bool other) {
                model.Append<nn::Linear>(10, other ? 11 : 10);
              })),
              another("2.weight is f32.11, 10., not 100 elements of f32"));
}

TEST(UserMistakesTest, FactoriesThatMakeNothingForARank) {
  auto made = std::make_shared<std::atomic<int>>(0);
  JobSpec spec = PlainJob(/*dp=*/2);
  spec.optimizer = [made]() -> std::unique_ptr<nn::Optimizer> {
    if (made->fetch_add(1) == 2) return nullptr;
    return std::make_unique<nn::Sgd>(nn::SgdOptions());
  };
  EXPECT_THAT(ErrorOf(spec), testing::MatchesRegex(
                                 "(rank [01], compute|supervisor): "
                                 "JobSpec.optimizer returned null; return an "
                                 "optimizer from it"));
  spec = PlainJob(/*dp=*/2);
  made->store(0);
  spec.model = [made, model = spec.model]() -> std::unique_ptr<nn::Module> {
    return made->fetch_add(1) == 2 ? nullptr : model();
  };
  EXPECT_THAT(
      ErrorOf(spec),
      testing::MatchesRegex("rank [01], compute: the ModelFactory returned "
                            "null; return a module from it"));
}

TEST(UserMistakesTest, AScheduleWithTransfersOfItsOwn) {
  JobSpec spec = LinearJob(
      [](nn::Sequential& model) { model.Append<nn::Linear>(10, 10); });
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {2};
  for (const char* table : {"F0 SA0 F1 SA1 B0 B1", "F0 F1 SA1 SA0 B0 B1"}) {
    spec.plan.schedule = [table](const pipeline::Mesh&, int, int) {
      return *pipeline::ParseTable(table);
    };
    EXPECT_THAT(ErrorOf(spec),
                testing::MatchesRegex(
                    "schedule: SA[01] is there twice; remove one of them"));
  }
}

}  // namespace
}  // namespace troupe::actors
