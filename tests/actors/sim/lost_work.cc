#include "tests/actors/sim/lost_work.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/files/file_system.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 4, kEvery = 2;
// The first target of a sample that the loss refuses.
constexpr float kRefused = 7;
// A sample of the third step.
constexpr std::int64_t kSample = 2 * kSmallJobBatch + 5;

// Samples of another dataset, one of which the loss refuses.
class WithARefusedSample : public data::Dataset {
 public:
  explicit WithARefusedSample(data::DatasetPtr good)
      : data::Dataset(good->size(), good->spec()), good_(std::move(good)) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    const absl::Status status = good_->Fill(indices, epoch, inputs, targets);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != kSample) continue;
      targets.span<float>()[i * targets.dim(1)] = kRefused;
    }
    return status;
  }

  const data::DatasetPtr good_;
};

JobSpec SavingJob(const std::string& dir) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kFloat, kSteps});
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {2};
  spec.test = spec.train;
  spec.eval_every = kEvery;
  spec.checkpoint.every = kEvery;
  spec.checkpoint.dir = dir;
  spec.loss = [loss = spec.loss](nn::Context& ctx, const nn::Tensor& output,
                                 const nn::Tensor& target) {
    if (ctx.ok() && !ctx.shape_only()) {
      for (std::int64_t i = 0; i < target.dim(0); ++i) {
        if (target.span<float>()[i * target.dim(1)] != kRefused) continue;
        return ctx.Fail(absl::InvalidArgumentError("a refused sample"));
      }
    }
    return loss(ctx, output, target);
  };
  return spec;
}

// Returns what is wrong with a run that must have failed after step 2, with a
// checkpoint of it.
std::string WrongFailure(const SimulatedRun& run, const std::string& dir) {
  if (run.result.ok()) return "the job did not fail";
  const std::string error = run.result.status().ToString();
  if (!absl::StrContains(error, "a refused sample")) return error;
  base::PosixFileSystem files;
  const auto paths = ListCheckpoints(files, dir);
  if (!paths.ok()) return paths.status().ToString();
  if (paths->empty()) return "the checkpoint of step 2 is lost";
  const auto saved = Checkpoint::Open(files, paths->back());
  if (!saved.ok()) return saved.status().ToString();
  if (saved->state().step != kEvery) {
    return absl::StrCat("the last checkpoint is of step ", saved->state().step);
  }
  return run.reports.checkpoints.empty()
             ? "the checkpoint of step 2 is not reported"
             : "";
}

}  // namespace

std::string LostByAFailingStep(std::uint64_t seed) {
  const std::string dir = FreshFolder(absl::StrCat("failing_step", seed));
  JobSpec spec = SavingJob(dir);
  spec.train = std::make_shared<WithARefusedSample>(spec.train);
  return WrongFailure(Simulate(spec, seed), dir);
}

std::string LostByAFailingEvaluation(std::uint64_t seed) {
  static const SimulatedRun* const straight = [] {
    JobSpec spec = SavingJob(FreshFolder("straight"));
    spec.checkpoint.keep_best = true;
    return new SimulatedRun(Simulate(spec, /*seed=*/0));
  }();
  const std::string dir = FreshFolder(absl::StrCat("failing_test", seed));
  JobSpec spec = SavingJob(dir);
  spec.checkpoint.keep_best = true;
  const data::DatasetPtr good = spec.test;
  spec.test = std::make_shared<WithARefusedSample>(good);
  std::string wrong = WrongFailure(Simulate(spec, seed), dir);
  if (!wrong.empty()) return wrong;
  spec.test = good;
  spec.checkpoint.resume = true;
  const SimulatedRun resumed = Simulate(spec, seed);
  wrong = Difference(resumed, *straight);
  if (!wrong.empty()) return wrong;
  const std::size_t evaluations = resumed.reports.evaluations.size();
  if (evaluations != straight->reports.evaluations.size()) {
    return absl::StrCat(evaluations, " evaluations after the resume");
  }
  return resumed.result->best.step == straight->result->best.step
             ? ""
             : "another evaluation is the best";
}

}  // namespace troupe::actors
