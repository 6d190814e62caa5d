// Parameters that stages share, in jobs on threads: a small GPT whose head is
// tied to its embedding has the bits of one rank in every pipeline, and its
// checkpoints equal those of one rank, whichever layout writes or resumes them.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/hooks/gathered_reduction.h"
#include "actors/inference/export_model.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/modules/flatten.h"
#include "nn/modules/freeze.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/ties.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kTiedSamples = 64, kTiedTokens = 6, kTiedVocabulary = 11;

// Returns sequences in which 3 t + 1 modulo 11 follows each token t.
data::DatasetPtr TiedSequences() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kTiedSamples, kTiedTokens};
  nn::Tensor inputs = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  nn::Tensor targets = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  for (std::int64_t i = 0; i < kTiedSamples * kTiedTokens; ++i) {
    const std::int64_t token = i % kTiedTokens == 0
                                   ? i / kTiedTokens % kTiedVocabulary
                                   : targets.data<std::int64_t>()[i - 1];
    inputs.data<std::int64_t>()[i] = token;
    targets.data<std::int64_t>()[i] = (3 * token + 1) % kTiedVocabulary;
  }
  return *data::MakeInMemoryDataset(inputs, targets, kTiedVocabulary);
}

std::unique_ptr<nn::Module> MakeGpt() {
  nn::Gpt2Options options = *nn::Gpt2Preset("gpt_nano");
  options.vocab_size = kTiedVocabulary;
  options.context = kTiedTokens;
  return *nn::MakeGpt2(options);
}

// Returns a job with AdamW, averages of parameters, and four micro-batches per
// step.
JobSpec GptJob(std::int64_t steps) {
  JobSpec spec;
  spec.model = MakeGpt;
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::SoftmaxCrossEntropy(ctx, y, t);
  };
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.lr = 0.01;
    adam.weight_decay = 0.1;
    adam.decoupled_weight_decay = true;
    adam.common.ema_decay = 0.9;
    return std::make_unique<nn::Adam>(adam);
  };
  spec.train = spec.test = TiedSequences();
  spec.steps = steps;
  spec.timeout = absl::Seconds(60);
  spec.plan.global_batch_size = 16;
  spec.plan.micro_batch_size = 4;
  return spec;
}

struct TiedLayout {
  const char* schedule;  // "" for none
  int dp, pp;
  std::vector<pipeline::Cut> cuts;
};

const TiedLayout& OneRank() {
  static const auto& layout = *new TiedLayout{"", 1, 1, {}};
  return layout;
}

std::vector<TiedLayout> Pipelines() {
  return {{"1f1b", 1, 2, {"h.1"}},
          {"zb_h1", 1, 3, {"h.1", "ln_f"}},
          {"interleaved_1f1b", 1, 2, {"h.0", "h.1", "h.2"}},
          {"zb_v", 1, 2, {"h.0", "h.1", "h.2"}}};
}

JobSpec LaidOut(JobSpec spec, const TiedLayout& layout) {
  spec.plan.mesh = pipeline::Mesh(layout.dp, layout.pp);
  spec.plan.cuts = layout.cuts;
  if (layout.schedule[0] == 0) return spec;
  const int stages = static_cast<int>(layout.cuts.size()) + 1;
  spec.plan.virtual_stages = stages / layout.pp;
  const absl::Status set = pipeline::SetSchedule(layout.schedule, spec.plan);
  EXPECT_TRUE(set.ok()) << set;
  return spec;
}

// Returns all tensors of a checkpoint, by name, from all of its files.
std::vector<std::string> Contents(const std::string& path) {
  base::PosixFileSystem files;
  const Checkpoint checkpoint = *Checkpoint::Open(files, path);
  nn::CachingAllocator memory;
  std::vector<std::string> contents;
  const auto append = [&](const std::string& name,
                          const nn::SafetensorsEntry& entry, bool of_model) {
    nn::Tensor tensor = nn::Tensor::Empty(entry.shape, entry.dtype, memory);
    EXPECT_TRUE((of_model ? checkpoint.ReadModel(name, tensor)
                          : checkpoint.ReadOptimizer(name, tensor))
                    .ok());
    contents.push_back(
        absl::StrCat(name, "=",
                     absl::string_view(static_cast<const char*>(tensor.raw()),
                                       tensor.bytes())));
  };
  for (const std::string& name : checkpoint.ModelNames()) {
    append(name, *checkpoint.FindModel(name), /*of_model=*/true);
  }
  for (const std::string& name : checkpoint.OptimizerNames()) {
    append(name, *checkpoint.FindOptimizer(name), /*of_model=*/false);
  }
  return contents;
}

TEST(TiedJobTest, PipelinesHaveTheBitsOfOneRank) {
  JobSpec spec = GptJob(/*steps=*/6);
  spec.checkpoint.dir = FreshFolder("one");
  const Reports one = ReportsOf(spec);
  EXPECT_LT(one.losses().back(), one.losses().front());
  for (const TiedLayout& layout : Pipelines()) {
    spec.checkpoint.dir = FreshFolder(layout.schedule);
    const Reports reports = ReportsOf(LaidOut(spec, layout));
    EXPECT_EQ(pipeline::TiesOf(reports.info.plan.stages).size(), 1u);
    EXPECT_EQ(reports.losses(), one.losses()) << layout.schedule;
    EXPECT_EQ(Contents(reports.checkpoints.back()),
              Contents(one.checkpoints.back()))
        << layout.schedule;
    EXPECT_EQ(reports.info.plan.parameter_elems(),
              one.info.plan.parameter_elems());
    EXPECT_EQ(reports.evaluations[0].accuracy, one.evaluations[0].accuracy);
  }
}

TEST(TiedJobTest, CheckpointsMoveBetweenPipelines) {
  JobSpec straight = GptJob(/*steps=*/6);
  straight.checkpoint.dir = FreshFolder("straight");
  const auto want = Contents(ReportsOf(straight).checkpoints.back());
  std::vector<TiedLayout> all = Pipelines();
  all.push_back(OneRank());
  for (std::size_t i = 0; i < all.size(); ++i) {
    JobSpec spec = LaidOut(GptJob(/*steps=*/3), all[i]);
    spec.checkpoint.dir = FreshFolder("moved");
    const Reports first = ReportsOf(spec);
    spec = LaidOut(GptJob(/*steps=*/6), all[(i + 1) % all.size()]);
    spec.checkpoint.dir = FreshFolder("moved_on");
    spec.checkpoint.from = first.checkpoints.back();
    EXPECT_EQ(Contents(ReportsOf(spec).checkpoints.back()), want)
        << "from " << all[i].schedule;
  }
}

// The export contains the tied weight once, by the name of its owner.
TEST(TiedJobTest, AnExportIsThatOfOneRank) {
  std::vector<std::string> exports;
  for (const TiedLayout& layout : {OneRank(), Pipelines()[0]}) {
    JobSpec spec = LaidOut(GptJob(/*steps=*/2), layout);
    spec.checkpoint.dir = FreshFolder("exported");
    ReportsOf(spec);
    const std::string path = testing::TempDir() + "/tied.safetensors";
    ASSERT_EQ(ExportModel(spec, path), absl::OkStatus());
    exports.push_back(FileBytes(path));
  }
  EXPECT_TRUE(exports[0] == exports[1]);
  EXPECT_NE(exports[1].find("wte.weight"), std::string::npos);
  EXPECT_EQ(exports[1].find("lm_head"), std::string::npos);
}

TEST(TiedJobTest, AFrozenTableIsNotSummed) {
  JobSpec spec = GptJob(/*steps=*/3);
  spec.model = [] {
    auto model = MakeGpt();
    EXPECT_TRUE(nn::FreezeParameters(*model, {"lm_head.*"}).ok());
    return model;
  };
  spec.checkpoint.dir = FreshFolder("frozen_one");
  const Reports one = ReportsOf(spec);
  spec.checkpoint.dir = FreshFolder("frozen");
  const Reports two = ReportsOf(LaidOut(spec, Pipelines()[0]));
  EXPECT_TRUE(pipeline::TiesOf(two.info.plan.stages).empty());
  EXPECT_EQ(two.losses(), one.losses());
  EXPECT_EQ(Contents(two.checkpoints.back()), Contents(one.checkpoints.back()));
}

// Gradients are summed over stages in their own dtype, then over replicas in
// that of reductions or by a hook; also if the next step overlaps.
TEST(TiedJobTest, ReplicasAreSummedBehindStages) {
  for (const std::string reduced : {"", "in bf16", "by a hook"}) {
    JobSpec spec = GptJob(/*steps=*/4);
    spec.plan.cross_step = true;
    spec.plan.inline_bytes = 0;
    if (reduced == "in bf16") spec.plan.reduction_dtype = nn::DType::kBF16;
    if (reduced == "by a hook") spec.hook = GatherIn(nn::DType::kBF16);
    const Reports flat = ReportsOf(LaidOut(spec, {"", 2, 1, {}}));
    for (TiedLayout layout : Pipelines()) {
      if (layout.pp != 2) continue;
      layout.dp = 2;
      EXPECT_EQ(ReportsOf(LaidOut(spec, layout)).losses(), flat.losses())
          << layout.schedule << " " << reduced;
    }
  }
}

// With 16-bit parameters and f32 master values, the buckets of the copies begin
// at different offsets of their arenas.
TEST(TiedJobTest, HasCopiesOfMasterValuesToo) {
  JobSpec spec = GptJob(/*steps=*/4);
  const data::DatasetPtr data = TinyCnnJob(1, 1).train;
  spec.train = data;
  spec.test = nullptr;
  spec.dtype = nn::DType::kBF16;
  spec.plan.grad_dtype = nn::DType::kF32;
  spec.model = [] {
    const nn::Linear::Options bf16 = {/*bias=*/true, nn::DType::kBF16};
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 10, bf16);
    auto& first = model->Append<nn::Linear>(10, 10, bf16);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(10, 10, bf16);
    auto& last = model->Append<nn::Linear>(10, 10, bf16);
    last.TieParameter("weight", first, "weight");
    last.TieParameter("bias", first, "bias");
    return model;
  };
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.common.f32_master = true;
    adam.common.ema_decay = 0.9;
    return std::make_unique<nn::Adam>(adam);
  };
  spec.plan.inline_bytes = 0;
  std::vector<std::vector<std::string>> contents;
  for (const TiedLayout& layout :
       {TiedLayout{"", 2, 1, {}}, TiedLayout{"1f1b", 2, 2, {3}},
        TiedLayout{"v_min", 2, 2, {2, 3, 4}}}) {
    JobSpec laid_out = LaidOut(spec, layout);
    laid_out.checkpoint.dir = FreshFolder("masters");
    contents.push_back(Contents(ReportsOf(laid_out).checkpoints.back()));
    EXPECT_EQ(contents.back(), contents[0]) << layout.schedule;
  }
}

}  // namespace
}  // namespace troupe::actors
