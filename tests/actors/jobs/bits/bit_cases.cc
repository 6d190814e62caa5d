#include "tests/actors/jobs/bits/bit_cases.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/hooks/gathered_reduction.h"
#include "base/check.h"
#include "nn/models/models.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/freeze.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/jobs/bits/bit_jobs.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/skip_models.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Cases = std::vector<BitCase>;
using Edit = void (*)(JobSpec& spec);

// Adds the job with Troupe's own plain loops; `edit` changes it, if given.
void Add(Cases& cases, const std::string& name, JobSpec spec,
         Edit edit = nullptr) {
  if (edit != nullptr) edit(spec);
  UseOwnLoops(base::CpuIsa::kPlain, spec);
  cases.push_back({name, "plain", base::CpuIsa::kPlain, std::move(spec)});
}

// Adds the job with the loops of each instruction set.
void AddForEachIsa(Cases& cases, const std::string& name, JobSpec spec) {
  Add(cases, name, spec);
  UseOwnLoops(base::CpuIsa::kAvx2, spec);
  cases.push_back({name, "avx2", base::CpuIsa::kAvx2, spec});
  UseOwnLoops(base::CpuIsa::kAvx512, spec);
  cases.push_back({name, "avx512", base::CpuIsa::kAvx512, spec});
}

// --- Changes of a job ---

void ReduceInline(JobSpec& spec) { spec.plan.inline_bytes = 1 << 30; }

void ReduceInlineAndUpdateApart(JobSpec& spec) {
  ReduceInline(spec);
  spec.plan.fuse_updates = false;
}

void OverlapSteps(JobSpec& spec) { spec.plan.cross_step = true; }

void KeepTheOrderOfTheTable(JobSpec& spec) {
  spec.plan.dispatch = pipeline::Dispatch::kStrict;
}

// Makes micro-batches of 10, 10 and 4 samples.
void UseUnevenMicroBatches(JobSpec& spec) { spec.plan.micro_batch_size = 10; }

void SumLosses(JobSpec& spec) {
  spec.loss_reduction = nn::ops::LossReduction::kSum;
}

// Evaluates after the second step, too.
void Evaluate(JobSpec& spec) {
  if (spec.test == nullptr) spec.test = spec.train;
  spec.eval_every = 2;
}

void ReduceInBF16(JobSpec& spec) {
  spec.plan.reduction_dtype = nn::DType::kBF16;
}

void GatherInBF16(JobSpec& spec) { spec.hook = GatherIn(nn::DType::kBF16); }

void UseLamb(JobSpec& spec) {
  spec.optimizer = [] {
    nn::LambOptions lamb;
    lamb.lr = 0.01;
    lamb.weight_decay = 0.1;
    return std::make_unique<nn::Lamb>(lamb);
  };
}

// The scale is too large for the first steps, which are skipped; it grows after
// two steps in a row that are not.
void TrainInF16(JobSpec& spec) {
  UseDType(nn::DType::kF16, spec);
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02;
    sgd.momentum = 0.9;
    sgd.common.f32_master = true;
    sgd.common.skip_nonfinite = true;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.loss_scale = 0x1p15;
  spec.dynamic_loss_scale.emplace().growth_interval = 2;
}

void FreezeTheTableOfTokens(JobSpec& spec) {
  spec.model = [model = std::move(spec.model)] {
    std::unique_ptr<nn::Module> made = model();
    TROUPE_CHECK(nn::FreezeParameters(*made, {"wte.*"}).ok(), "it has wte");
    return made;
  };
}

void SyncBatchNorm(JobSpec& spec) {
  spec.model = [model = std::move(spec.model)] {
    return nn::ConvertSyncBatchNorm(model());
  };
}

// --- The table ---

// Adds the jobs with which the golden file began. Their specs stay as they
// were, and so do their lines.
void AddLeNets(Cases& cases) {
  JobSpec spec = TinyCnnJob(1, 6);
  ReduceInline(spec);
  AddForEachIsa(cases, "lenet", spec);
  spec = TinyCnnJob(2, 6);
  ReduceInline(spec);
  AddForEachIsa(cases, "lenet dp=2", spec);
  spec = TinyCnnJob(3, 6);
  spec.plan.global_batch_size = 48;
  spec.plan.buckets.first_bucket_bytes = 4 << 10;
  spec.plan.buckets.bucket_bytes = 32 << 10;
  spec.plan.inline_bytes = 0;
  AddForEachIsa(cases, "lenet dp=3 buckets launched", spec);
  ReduceInline(spec);
  AddForEachIsa(cases, "lenet dp=3 buckets inline", spec);
  spec = TinyCnnJob(2, 6);
  spec.plan.micro_batch_size = 4;
  spec.plan.inline_bytes = 0;
  AddForEachIsa(cases, "lenet dp=2 micro-batches", spec);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {3};
  AddForEachIsa(cases, "lenet dp=2 pp=2", spec);
}

void AddLayouts(Cases& cases) {
  Add(cases, "lenet pp=2", LeNetJob(1, 2));
  Add(cases, "resnet18", ResNetJob(1, 1));
  Add(cases, "resnet18 dp=2", ResNetJob(2, 1));
  Add(cases, "resnet18 pp=2", ResNetJob(1, 2));
  Add(cases, "resnet18 dp=2 pp=2", ResNetJob(2, 2));
  Add(cases, "vit", VitJob(1, 1));
  Add(cases, "vit dp=2", VitJob(2, 1));
  Add(cases, "vit pp=2", VitJob(1, 2));
  Add(cases, "vit dp=2 pp=2", VitJob(2, 2));
  // The head is tied to the embedding; of two stages, each has a copy.
  Add(cases, "gpt", GptJob(1, 1));
  Add(cases, "gpt dp=2", GptJob(2, 1));
  Add(cases, "gpt pp=2", GptJob(1, 2));
  Add(cases, "gpt dp=2 pp=2", GptJob(2, 2));
  // Ranks along tp have pieces, and their replicas slices of them.
  JobSpec pieces = GptJob(2, 1);
  pieces.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2);
  pieces.plan.zero_accumulates_whole = true;
  Add(cases, "gpt dp=2 tp=2", pieces);
  for (pieces.plan.zero_stage = 1; pieces.plan.zero_stage <= 3;
       ++pieces.plan.zero_stage) {
    Add(cases, absl::StrCat("gpt dp=2 tp=2 zero=", pieces.plan.zero_stage),
        pieces);
  }
}

void AddModels(Cases& cases) {
  nn::Gpt2Options options = SmallGptOptions();
  options.tie_head = false;
  Add(cases, "gpt untied pp=2", GptJob(1, 2, options));
  options = SmallGptOptions();
  options.dropout = options.attention_dropout = 0.2;
  Add(cases, "gpt dropout dp=2", GptJob(2, 1, options));
  Add(cases, "gpt dropout pp=2", GptJob(1, 2, options));
  Add(cases, "gpt frozen table pp=2", GptJob(1, 2), FreezeTheTableOfTokens);
  Add(cases, "resnet18 synchronised dp=2", ResNetJob(2, 1), SyncBatchNorm);
  // Skip connections that cross stages.
  JobSpec unet = LeNetJob(1, 2);
  unet.model = ImageUNet();
  unet.plan.cuts = {7};
  Add(cases, "unet pp=2", unet);
  unet.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
  unet.plan.cuts = {4, 8};
  Add(cases, "unet dp=2 pp=3", unet);
  // Skip connections of three dtypes, and a block that runs again in the
  // backward pass.
  JobSpec dense = SmallJob({/*ranks=*/1, Numbers::kExact});
  DenseUNetOptions recomputes;
  recomputes.recompute = true;
  dense.model = DenseUNet(recomputes);
  dense.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/4);
  dense.plan.cuts = {3, 6, 11};
  cases.push_back(
      {"dense unet pp=4", "reference", base::CpuIsa::kPlain, dense});
}

// Adds a model with weights so large that one rank with one micro-batch updates
// them by rows while their gradients are computed.
void AddUpdatesInBackward(Cases& cases) {
  JobSpec spec = LeNetJob(1, 1);
  spec.model = [] { return nn::MakeMlp({28 * 28, 400, 10}, {}); };
  spec.plan.micro_batch_size = 0;
  spec.test = nullptr;
  Add(cases, "mlp updated in backward", spec);
  spec.plan.fuse_updates = false;
  Add(cases, "mlp updated behind backward", spec);
}

JobSpec Scheduled(const pipeline::NamedSchedule& schedule, JobSpec spec) {
  spec.plan.virtual_stages = schedule.chunks == 0 ? 2 : schedule.chunks;
  if (spec.plan.virtual_stages == 2) spec.plan.cuts = {"h.1", "h.2", "h.3"};
  TROUPE_CHECK(pipeline::SetSchedule(schedule.name, spec.plan).ok(),
               "the schedule fits the mesh");
  return spec;
}

// Adds each schedule that has a name, with one or two stages a rank.
void AddSchedules(Cases& cases) {
  for (const pipeline::NamedSchedule& schedule : pipeline::NamedSchedules()) {
    const std::string name(schedule.name);
    Add(cases, "gpt pp=2 " + name, Scheduled(schedule, GptJob(1, 2)));
    if (name != "zb_v" && name != "interleaved_1f1b") continue;
    const JobSpec replicas = Scheduled(schedule, GptJob(2, 2));
    Add(cases, "gpt dp=2 pp=2 " + name, replicas);
    Add(cases, "gpt dp=2 pp=2 strict " + name, replicas,
        KeepTheOrderOfTheTable);
    Add(cases, "gpt dp=2 pp=2 cross-step " + name, replicas, OverlapSteps);
    Add(cases, "gpt dp=2 pp=2 clipped " + name, replicas, ClipByNorm);
    Add(cases, "gpt dp=2 pp=2 evaluated " + name, replicas, Evaluate);
  }
}

void AddSteps(Cases& cases) {
  Add(cases, "lenet dp=2 cross-step", LeNetJob(2, 1), OverlapSteps);
  Add(cases, "lenet dp=2 pp=2 cross-step", LeNetJob(2, 2), OverlapSteps);
  Add(cases, "lenet dp=2 updates apart", LeNetJob(2, 1),
      ReduceInlineAndUpdateApart);
  Add(cases, "lenet uneven micro-batches", LeNetJob(1, 1),
      UseUnevenMicroBatches);
  Add(cases, "lenet pp=2 uneven micro-batches", LeNetJob(1, 2),
      UseUnevenMicroBatches);
  Add(cases, "lenet dp=2 summed losses", LeNetJob(2, 1), SumLosses);
  Add(cases, "gpt dp=2 pp=2 reduced inline", GptJob(2, 2), ReduceInline);
  Add(cases, "lenet dp=2 pp=2 evaluated", LeNetJob(2, 2), Evaluate);
}

void AddOptimizers(Cases& cases) {
  Add(cases, "vit dp=2 clipped", VitJob(2, 1), ClipByNorm);
  Add(cases, "vit pp=2 clipped", VitJob(1, 2), ClipByNorm);
  Add(cases, "vit dp=2 pp=2 clipped", VitJob(2, 2), ClipByNorm);
  Add(cases, "gpt pp=2 clipped", GptJob(1, 2), ClipByNorm);
  Add(cases, "lenet dp=2 lamb", LeNetJob(2, 1), UseLamb);
}

void AddDTypes(Cases& cases) {
  Add(cases, "lenet dp=3 reduced in bf16", LeNetJob(3, 1), ReduceInBF16);
  Add(cases, "gpt dp=2 pp=2 reduced in bf16", GptJob(2, 2), ReduceInBF16);
  Add(cases, "lenet dp=3 gathered in bf16", LeNetJob(3, 1), GatherInBF16);
  Add(cases, "gpt dp=2 pp=2 gathered in bf16", GptJob(2, 2), GatherInBF16);
  Add(cases, "lenet dp=2 bf16", LeNetJob(2, 1), TrainInBF16);
  JobSpec inline_job = LeNetJob(2, 1);
  ReduceInline(inline_job);
  Add(cases, "lenet dp=2 bf16 reduced inline", inline_job, TrainInBF16);
  Add(cases, "gpt dp=2 bf16", GptJob(2, 1), TrainInBF16);
  Add(cases, "gpt dp=2 pp=2 bf16", GptJob(2, 2), TrainInBF16);
  Add(cases, "lenet dp=2 f16", LeNetJob(2, 1, /*steps=*/8), TrainInF16);
  Add(cases, "lenet pp=2 f16", LeNetJob(1, 2, /*steps=*/8), TrainInF16);
  Add(cases, "lenet dp=2 pp=2 f16", LeNetJob(2, 2, /*steps=*/8), TrainInF16);
}

Cases AllCases() {
  Cases cases;
  AddLeNets(cases);
  AddLayouts(cases);
  AddModels(cases);
  AddUpdatesInBackward(cases);
  AddSchedules(cases);
  AddSteps(cases);
  AddOptimizers(cases);
  AddDTypes(cases);
  return cases;
}

}  // namespace

const std::vector<BitCase>& BitCases() {
  static const Cases* const cases = new Cases(AllCases());
  return *cases;
}

void PrintTo(const BitCase& one, std::ostream* out) { *out << one.line(); }

const BitCase& BitCaseOf(absl::string_view line) {
  for (const BitCase& one : BitCases()) {
    if (one.line() == line) return one;
  }
  TROUPE_CHECK(false, "the line is one of BitCases()");
}

}  // namespace troupe::actors
