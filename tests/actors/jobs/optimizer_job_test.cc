// Optimizers in jobs: norms and checks of gradients cover all replicas and
// stages, and a job resumes from a checkpoint with the same bits.

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "actors/checkpoint/load_model.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

JobSpec JobOn(int dp, int pp, std::int64_t steps) {
  JobSpec spec = TinyCnnJob(dp, steps);
  spec.test = nullptr;
  spec.plan.micro_batch_size = 8;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp == 2) spec.plan.cuts = {6};
  if (pp == 3) spec.plan.cuts = {3, 7};
  return spec;
}

// Returns SGD with a limit well below the norm of the gradients.
OptimizerFactory ClippedSgd(double clip_grad_norm) {
  return [clip_grad_norm] {
    nn::SgdOptions options;
    options.lr = 0.5;
    options.common.clip_grad_norm = clip_grad_norm;
    return std::make_unique<nn::Sgd>(options);
  };
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want,
                const std::string& what, double relative = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], relative * std::abs(want[i]))
        << what << ", " << i;
  }
}

std::vector<double> NormsOf(const Reports& reports) {
  std::vector<double> norms;
  for (const StepReport& step : reports.steps) norms.push_back(step.grad_norm);
  return norms;
}

TEST(OptimizerJobTest, TheNormOfGradientsIsThatOfAllStages) {
  std::vector<double> alone, norms_alone;
  for (const auto& [dp, pp] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2),
        std::pair(1, 3)}) {
    JobSpec spec = JobOn(dp, pp, /*steps=*/6);
    spec.optimizer = ClippedSgd(0.05);
    const Reports reports = ReportsOf(spec);
    EXPECT_EQ(absl::StrContains(reports.info.plan.ToString(), "NR"), pp > 1);
    if (alone.empty()) {
      alone = reports.losses();
      norms_alone = NormsOf(reports);
      EXPECT_GT(norms_alone.front(), 0.05) << "before clipping";
    }
    const std::string what = absl::StrCat("dp=", dp, " pp=", pp);
    ExpectNear(reports.losses(), alone, what);
    ExpectNear(NormsOf(reports), norms_alone, absl::StrCat("norm, ", what),
               /*relative=*/1e-4);
  }
  JobSpec spec = JobOn(1, 1, /*steps=*/6);
  spec.optimizer = ClippedSgd(0);
  const Reports reports = ReportsOf(spec);
  EXPECT_GT(std::abs(reports.losses().back() - alone.back()), 1e-3)
      << "nothing was clipped";
  EXPECT_EQ(NormsOf(reports), std::vector<double>(6, 0.0)) << "nobody asked";
}

// A rank along another axis than dp and pp has a copy of a replica: it counts
// neither in the divisor of the gradients nor in their norm. SGD would show a
// factor in either, which Adam hides.
TEST(OptimizerJobTest, CopiesAlongAnAxisCountOnce) {
  for (const auto& [dp, pp] :
       {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2)}) {
    for (const std::int64_t inline_bytes : {0, 1 << 30}) {
      JobSpec spec = JobOn(dp, pp, /*steps=*/3);
      spec.optimizer = ClippedSgd(0.05);
      spec.plan.inline_bytes = inline_bytes;
      const Reports alone = ReportsOf(spec);
      for (const char* axis : {"tp", "ep"}) {
        const pipeline::Axis copies = {axis, 2};
        spec.plan.mesh =
            *pipeline::Mesh::Create({copies, {"dp", dp}, {"pp", pp}});
        const Reports copied = ReportsOf(spec);
        const std::string mesh = spec.plan.mesh.ToString();
        EXPECT_EQ(copied.losses(), alone.losses()) << mesh;
        EXPECT_EQ(NormsOf(copied), NormsOf(alone)) << mesh;
      }
    }
  }
}

// A job with copies along an axis saves each parameter once, and goes on
// without the axis.
TEST(OptimizerJobTest, CopiesAlongAnAxisResumeWithoutIt) {
  JobSpec spec = JobOn(/*dp=*/2, /*pp=*/1, /*steps=*/4);
  spec.optimizer = ClippedSgd(0.05);
  const std::vector<double> whole = ReportsOf(spec).losses();
  spec.checkpoint.dir = FreshFolder("copies");
  spec.checkpoint.resume = true;
  spec.steps = 2;
  spec.plan.mesh = *pipeline::Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 1}});
  ReportsOf(spec);
  spec.steps = 4;
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  EXPECT_EQ(ReportsOf(spec).losses(),
            std::vector<double>(whole.begin() + 2, whole.end()));
}

TEST(OptimizerJobTest, StagesSkipAStepTogether) {
  JobSpec spec = JobOn(/*dp=*/2, /*pp=*/2, /*steps=*/3);
  spec.loss_scale = 0x1p127;
  spec.shuffle = false;
  spec.plan.global_batch_size = 256;  // every step has all samples
  spec.optimizer = [] {
    nn::SgdOptions options;
    options.common.skip_nonfinite = true;
    return std::make_unique<nn::Sgd>(options);
  };
  const Reports reports = ReportsOf(spec);
  ASSERT_EQ(reports.steps.size(), 3u);
  for (const StepReport& step : reports.steps) {
    EXPECT_TRUE(step.skipped) << step.step;
    EXPECT_EQ(step.loss, reports.steps[0].loss) << step.step;
  }
}

struct Kind {
  const char* name;
  OptimizerFactory optimizer;
};

std::vector<Kind> AllKinds() {
  const OptimizerFactory adamw = [] {
    nn::AdamOptions options = nn::AdamWDefaults();
    options.amsgrad = true;
    options.common.groups = {nn::NoDecayGroup()};
    options.common.schedule = nn::LrSchedule::Cosine(/*steps=*/8);
    options.common.clip_grad_norm = 1;
    options.common.ema_decay = 0.9;
    return std::make_unique<nn::Adam>(options);
  };
  const OptimizerFactory lamb = [] {
    nn::LambOptions options;
    options.weight_decay = 0.01;
    return std::make_unique<nn::Lamb>(options);
  };
  const OptimizerFactory lars = [] {
    nn::LarsOptions options;
    options.lr = 1;
    return std::make_unique<nn::Lars>(options);
  };
  return {{"adamw", adamw}, {"lamb", lamb}, {"lars", lars}};
}

TEST(OptimizerJobTest, AResumedJobHasTheBitsOfOneInOnePiece) {
  for (const Kind& kind : AllKinds()) {
    SCOPED_TRACE(kind.name);
    JobSpec spec = JobOn(/*dp=*/2, /*pp=*/1, /*steps=*/8);
    spec.optimizer = kind.optimizer;
    spec.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, "_whole"));
    const Reports whole = ReportsOf(spec);
    spec.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, "_parts"));
    spec.steps = 5;
    ReportsOf(spec);
    spec.steps = 8;
    spec.checkpoint.resume = true;
    const Reports rest = ReportsOf(spec);
    const std::vector<double> losses = whole.losses();
    EXPECT_EQ(rest.losses(),
              std::vector<double>(losses.begin() + 5, losses.end()));
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(FileBytes(absl::StrCat(rest.checkpoints.back(), "/", file)),
                FileBytes(absl::StrCat(whole.checkpoints.back(), "/", file)))
          << file;
    }
  }
}

// --- Ages of the optimizer's states ---

std::vector<Kind> KindsThatCount() {
  const OptimizerFactory adam = [] {
    nn::AdamOptions options;
    options.lr = 1e-3;
    return std::make_unique<nn::Adam>(options);
  };
  const OptimizerFactory sgd = [] {
    nn::SgdOptions options;
    options.lr = 0.1;
    options.momentum = 0.9;
    options.dampening = 0.5;
    return std::make_unique<nn::Sgd>(options);
  };
  const OptimizerFactory lamb = [] {
    return std::make_unique<nn::Lamb>(nn::LambOptions());
  };
  return {{"adam", adam}, {"sgd", sgd}, {"lamb", lamb}};
}

// Returns a job each of whose steps has all samples, in one order.
JobSpec SameSamplesJob(const OptimizerFactory& optimizer, int dp,
                       std::int64_t steps) {
  JobSpec spec = TinyCnnJob(dp, steps);
  spec.test = nullptr;
  spec.shuffle = false;
  spec.plan.global_batch_size = 256;
  spec.optimizer = optimizer;
  return spec;
}

// Freezes the parameters whose names begin with `prefix`.
void Freeze(const std::string& prefix, JobSpec& spec) {
  spec.model = [make = spec.model, prefix] {
    auto model = make();
    for (nn::Parameter* parameter : model->Parameters()) {
      if (absl::StartsWith(parameter->name, prefix)) {
        parameter->requires_grad = false;
      }
    }
    return model;
  };
}

// Returns the tensors of a safetensors file, by name.
std::map<std::string, nn::Tensor> TensorsIn(const std::string& path) {
  static nn::CachingAllocator memory;
  base::PosixFileSystem files;
  const auto file = nn::SafetensorsFile::Open(files, path);
  EXPECT_TRUE(file.ok()) << file.status();
  std::map<std::string, nn::Tensor> tensors;
  for (const nn::SafetensorsEntry& entry : file->entries()) {
    nn::Tensor tensor = *nn::Tensor::Create(entry.shape, entry.dtype, memory);
    EXPECT_TRUE(file->Read(entry.name, tensor).ok());
    tensors[entry.name] = tensor;
  }
  return tensors;
}

std::vector<float> NumbersIn(const nn::Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

// Removes the counts of updates, as earlier versions wrote checkpoints.
void RemoveCounts(const std::string& checkpoint) {
  base::PosixFileSystem files;
  const std::string state_path =
      absl::StrCat(checkpoint, "/trainer_state.json");
  const std::string state = FileBytes(state_path);
  const std::string earlier =
      absl::StrReplaceAll(state, {{"  \"update_counts\": true,\n", ""}});
  EXPECT_NE(earlier, state);
  ASSERT_TRUE(base::WriteWholeFile(files, state_path, earlier).ok());

  const std::string path = absl::StrCat(checkpoint, "/optimizer.safetensors");
  std::vector<nn::NamedTensor> left;

  for (const auto& [name, tensor] : TensorsIn(path)) {
    if (!absl::EndsWith(name, ".step")) left.push_back({name, tensor});
  }

  ASSERT_TRUE(nn::WriteSafetensors(files, path, left, {{"format", "pt"}}).ok());
}

// Returns the counts in a checkpoint as text: "1.bias.step=3 ".

std::string CountsIn(const std::string& checkpoint) {
  std::string text;
  for (const auto& [name, tensor] :
       TensorsIn(absl::StrCat(checkpoint, "/optimizer.safetensors"))) {
    if (!absl::EndsWith(name, ".step")) continue;
    EXPECT_EQ(tensor.shape(), nn::Shape());
    absl::StrAppend(&text, name, "=", tensor.data<double>()[0], " ");
  }
  return text;
}

// The first layer is frozen for five steps, then thawed: its first update must
// have the bits of a run that begins there.
void ExpectThawedLayersToBeginAnew(const Kind& kind, int dp, bool earlier) {
  const std::string frozen = "0.";
  JobSpec first = SameSamplesJob(kind.optimizer, dp, /*steps=*/5);
  Freeze(frozen, first);
  first.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, dp, "_frozen"));
  const std::string before = ReportsOf(first).checkpoints.back();
  if (earlier) RemoveCounts(before);

  JobSpec anew = SameSamplesJob(kind.optimizer, dp, /*steps=*/1);
  anew.init.from = before;
  anew.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, dp, "_anew"));
  const auto want = TensorsIn(
      absl::StrCat(ReportsOf(anew).checkpoints.back(), "/model.safetensors"));

  JobSpec thawed = SameSamplesJob(kind.optimizer, dp, /*steps=*/6);
  thawed.checkpoint.dir = first.checkpoint.dir;
  thawed.checkpoint.resume = true;
  const std::string after = ReportsOf(thawed).checkpoints.back();
  const auto got = TensorsIn(absl::StrCat(after, "/model.safetensors"));
  const auto started = TensorsIn(absl::StrCat(before, "/model.safetensors"));
  int compared = 0;
  for (const auto& [name, tensor] : got) {
    if (!absl::StartsWith(name, frozen)) continue;
    EXPECT_EQ(NumbersIn(tensor), NumbersIn(want.at(name))) << name;
    EXPECT_NE(NumbersIn(tensor), NumbersIn(started.at(name))) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
  EXPECT_EQ(CountsIn(after), "0.bias.step=1 0.weight.step=1 ");
}

TEST(OptimizerJobTest, AThawedLayerBeginsAnew) {
  for (const Kind& kind : KindsThatCount()) {
    SCOPED_TRACE(kind.name);
    ExpectThawedLayersToBeginAnew(kind, /*dp=*/1, /*earlier=*/false);
    ExpectThawedLayersToBeginAnew(kind, /*dp=*/2, /*earlier=*/false);
  }
}

// An earlier version's checkpoint has no counts: states of zeros are new.
TEST(OptimizerJobTest, AThawedLayerBeginsAnewFromAnEarlierCheckpoint) {
  for (const Kind& kind : KindsThatCount()) {
    SCOPED_TRACE(kind.name);
    ExpectThawedLayersToBeginAnew(kind, /*dp=*/1, /*earlier=*/true);
  }
}

// A layer keeps its age while it is frozen.
TEST(OptimizerJobTest, AFrozenLayerKeepsItsAge) {
  const Kind kind = KindsThatCount()[0];
  JobSpec spec = SameSamplesJob(kind.optimizer, /*dp=*/1, /*steps=*/3);
  spec.checkpoint.dir = FreshFolder("keeps_age");
  EXPECT_EQ(CountsIn(ReportsOf(spec).checkpoints.back()), "");
  JobSpec frozen = spec;
  Freeze("0.", frozen);
  frozen.checkpoint.resume = true;
  frozen.steps = 7;
  EXPECT_EQ(CountsIn(ReportsOf(frozen).checkpoints.back()),
            "0.bias.step=3 0.weight.step=3 ");
  spec.checkpoint.resume = true;
  spec.steps = 8;
  EXPECT_EQ(CountsIn(ReportsOf(spec).checkpoints.back()),
            "0.bias.step=4 0.weight.step=4 ");
}

// Another optimizer's checkpoint: all states are new, and so are their ages.
TEST(OptimizerJobTest, NewStatesBeginAnew) {
  const OptimizerFactory adam = KindsThatCount()[0].optimizer;
  JobSpec plain = SameSamplesJob(
      [] { return std::make_unique<nn::Sgd>(nn::SgdOptions{/*lr=*/0.1}); },
      /*dp=*/1, /*steps=*/4);
  plain.checkpoint.dir = FreshFolder("new_states");
  const std::string before = ReportsOf(plain).checkpoints.back();

  JobSpec anew = SameSamplesJob(adam, /*dp=*/1, /*steps=*/2);
  anew.init.from = before;
  const std::vector<double> want = ReportsOf(anew).losses();

  JobSpec spec = SameSamplesJob(adam, /*dp=*/1, /*steps=*/6);
  spec.checkpoint.dir = plain.checkpoint.dir;
  spec.checkpoint.resume = true;
  spec.checkpoint.allow_missing = true;
  EXPECT_EQ(ReportsOf(spec).losses(), want);
}

// --- f32 values of 16-bit parameters ---

// Master values and averages begin as the file's values, which 16 bits round.
TEST(OptimizerJobTest, MasterValuesBeginAsTheFilesValues) {
  JobSpec wide = SameSamplesJob(KindsThatCount()[1].optimizer, 1, /*steps=*/2);
  wide.checkpoint.dir = FreshFolder("wide");
  const std::string file = ReportsOf(wide).checkpoints.back();
  const auto want = TensorsIn(absl::StrCat(file, "/model.safetensors"));
  for (const nn::DType dtype : {nn::DType::kBF16, nn::DType::kF16}) {
    SCOPED_TRACE(nn::DTypeName(dtype));
    JobSpec narrow = SameSamplesJob(
        [] {
          nn::SgdOptions options;
          options.lr = 0;
          options.common.f32_master = true;
          options.common.ema_decay = 0.5;
          return std::make_unique<nn::Sgd>(options);
        },
        /*dp=*/1, /*steps=*/1);
    UseDType(dtype, narrow);
    narrow.init.from = file;
    narrow.checkpoint.dir =
        FreshFolder(std::string("narrow_") + nn::DTypeName(dtype).data());
    const std::string after = ReportsOf(narrow).checkpoints.back();
    const auto states =
        TensorsIn(absl::StrCat(after, "/optimizer.safetensors"));
    base::PosixFileSystem files;
    nn::CachingAllocator memory;
    const auto model =
        ReadModel(*Checkpoint::Open(files, after), memory, ReadValues::kMaster);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->size(), want.size());
    for (const auto& [name, tensor] : *model) {
      const std::vector<float> values = NumbersIn(want.at(name));
      EXPECT_EQ(NumbersIn(states.at(name + ".master_value")), values) << name;
      EXPECT_EQ(NumbersIn(states.at(name + ".ema_value")), values) << name;
      EXPECT_EQ(NumbersIn(tensor), values) << name;
    }
  }
}

// Where all states are as old as the run, counts change nothing.
TEST(OptimizerJobTest, AnEarlierCheckpointGoesOnToTheBit) {
  for (const Kind& kind : KindsThatCount()) {
    SCOPED_TRACE(kind.name);
    JobSpec spec = JobOn(/*dp=*/2, /*pp=*/1, /*steps=*/8);
    spec.optimizer = kind.optimizer;
    const std::vector<double> whole = ReportsOf(spec).losses();
    spec.checkpoint.dir = FreshFolder(absl::StrCat(kind.name, "_earlier"));
    spec.steps = 5;
    RemoveCounts(ReportsOf(spec).checkpoints.back());
    spec.steps = 8;
    spec.checkpoint.resume = true;
    EXPECT_EQ(ReportsOf(spec).losses(),
              std::vector<double>(whole.begin() + 5, whole.end()));
  }
}

}  // namespace
}  // namespace troupe::actors
