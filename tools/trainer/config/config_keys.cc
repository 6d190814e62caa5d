#include "tools/trainer/config/config_keys.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "actors/hooks/hooks.h"
#include "actors/spec/job_spec.h"
#include "base/field_error.h"
#include "comm/connect/transports.h"
#include "data/sampler.h"
#include "nn/models/models.h"
#include "pipeline/plan.h"
#include "tools/trainer/config/data_keys.h"
#include "tools/trainer/config/key_rules.h"
#include "tools/trainer/config/loss_kinds.h"
#include "tools/trainer/config/model_kinds.h"
#include "tools/trainer/config/optimizer_kinds.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/config/run_keys.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using actors::JobSpec;
using pipeline::BucketOptions;
using pipeline::PlanOptions;
using Names = std::vector<std::string>;

constexpr ConfigSection kSections[] = {
    {"model", "What is trained."},
    {"data", "The samples."},
    {"train", "How long, in which portions, and where."},
    {"loss", "What training makes small."},
    {"optimizer", "How parameters follow their gradients."},
    {"mesh", "How the ranks are laid out."},
    {"comm", "How ranks exchange gradients."},
    {"zero", "What data-parallel ranks share instead of each having a copy."},
    {"checkpoint", "What survives the run, and how to go on from it."},
    {"log", "What is shown and kept of the run."},
    {"metrics", "The run's numbers for a monitoring system, while it goes on."},
    {"trace", "A timeline of some steps, for ui.perfetto.dev."},
};

constexpr ConfigKey kTrainKeys[] = {
    {"train.steps", Field<&C::job, &JobSpec::steps>(), AtMost(kCountMax),
     "Optimizer steps in all, those before a resume included. Set this or "
     "train.epochs; either on the command line goes over both in the file.",
     "2000"},
    {"train.epochs", Field<&C::job, &JobSpec::epochs>(), AtMost(kEpochsMax),
     "Passes over the training samples. Set this or train.steps.", "5"},
    {"train.global_batch_size",
     Field<&C::job, &JobSpec::plan, &PlanOptions::global_batch_size>(),
     AtMost(kExtentMax), "Samples of one optimizer step, over all replicas.",
     "128", CopiedTo<&data::SamplerOptions::global_batch_size>},
    {"train.micro_batch_size",
     Field<&C::job, &JobSpec::plan, &PlanOptions::micro_batch_size>(),
     AtMost(kExtentMax),
     "Samples of one forward of one stage, per rank. Each replica's share of a "
     "global batch is cut into parts of this size, whose gradients are added "
     "up; a remainder is one smaller part. 0: the share whole, "
     "global_batch_size / mesh.dp, rounded up.",
     "16"},
    {"train.seed", Field<&C::job, &JobSpec::seed>(), kFromZero,
     "Seed of the first parameters and of the order of samples.", "42"},
    {"train.eval_every", Field<&C::job, &JobSpec::eval_every>(), kFromZero,
     "Steps between evaluations on the test samples; 0 means at the end of "
     "each epoch. The end of the run always has one.",
     "500"},
    {"train.stop_on_nan", Field<&C::job, &JobSpec::stop_on_nan>(), kAny,
     "Whether a loss that is not a finite number ends the run.", "false"},
    {"train.early_stop_patience",
     Field<&C::job, &JobSpec::early_stop_patience>(), kFromZero,
     "Evaluations in a row without improvement after which the run ends, as if "
     "its steps were done; 0 means never. checkpoint.best_metric says what "
     "improves.",
     "5"},
    {"train.early_stop_min_delta",
     Field<&C::job, &JobSpec::early_stop_min_delta>(), kAny,
     "Difference that an improvement must be larger than, for "
     "train.early_stop_patience.",
     "0.001"},
    {"train.precision", Field<&C::precision>(), OneOf([] {
       return Names{"f32", "bf16", "f16", "f64", kAutoPrecision};
     }),
     "What parameters and activations are: \"f32\"; or \"bf16\" or \"f16\" "
     "with sums, and the optimizer's copy of the parameters, in f32; or "
     "\"f64\", on the device \"reference:0\". \"auto\" measures a few steps "
     "and takes \"bf16\" where it is faster than \"f32\"; a run that is "
     "resumed keeps the choice.",
     "\"bf16\"", CopiedTo<&JobSpec::dtype>},
    {"train.loss_scale", Field<&C::loss_scale, &LossScaleConfig::scale>(),
     kNumberOrWord,
     "Gradients are multiplied by it until the update; a power of two changes "
     "no bit that neither overflows nor underflows. \"dynamic\": as in "
     "torch.amp.GradScaler, it halves at a step whose gradients are not "
     "finite, which updates nothing, and doubles after many others. \"auto\" "
     "is \"dynamic\" where train.precision is \"f16\", and 1 elsewhere.",
     "1024", CopiedTo<&JobSpec::dynamic_loss_scale>},
    {"train.loss_scale_init", Field<&C::loss_scale, &LossScaleConfig::init>(),
     kAny, "The dynamic loss scale of the first step.", "1024",
     CopiedTo<&JobSpec::loss_scale>},
    {"train.loss_scale_growth_interval",
     Field<&C::loss_scale, &LossScaleConfig::rule,
           &nn::LossScaleRule::growth_interval>(),
     AtMost(kCountMax),
     "Steps with finite gradients in a row, behind which the dynamic loss "
     "scale doubles.",
     "500"},
    {"train.loss_scale_min",
     Field<&C::loss_scale, &LossScaleConfig::rule, &nn::LossScaleRule::min>(),
     kAny,
     "A dynamic loss scale that falls below this ends the run with an error.",
     "1"},
    {"train.device", Field<&C::job, &JobSpec::device>(), kAny,
     "What computes: \"cpu:0\"; \"cuda\", a GPU for each rank of a process, or "
     "\"cuda:2\", that one for all of them, among those that "
     "CUDA_VISIBLE_DEVICES leaves; or \"reference:0\", plain loops in double "
     "precision (slow; to compare with).",
     "\"cuda\""},
    {"train.cuda_graphs", Field<&C::job, &JobSpec::cuda_graphs>(), OneOf([] {
       return Names{"auto", "on", "off"};
     }),
     "Whether a step on a GPU is recorded once and launched as a whole from "
     "then on; \"auto\" measures both ways and keeps the faster. The numbers "
     "are the same.",
     "\"off\""},
    {"train.kernel_cache", Field<&C::kernel_cache>(), kPath,
     "Folder where algorithms that were measured on a GPU are kept for later "
     "runs; \"auto\" is $XDG_CACHE_HOME/troupe/kernels or "
     "~/.cache/troupe/kernels, \"off\" keeps none. A run that is resumed takes "
     "those of its checkpoint before all others.",
     "\"off\""},
    {"train.threads_per_rank",
     Field<&C::job, &JobSpec::plan, &PlanOptions::threads_per_rank>(),
     KeyRule{1, 1024}, "Threads that the kernels of one rank may use.", "2"},

};

constexpr ConfigKey kCommKeys[] = {
    {"comm.first_bucket_bytes",
     Field<&C::job, &JobSpec::plan, &PlanOptions::buckets,
           &BucketOptions::first_bucket_bytes>(),
     Bytes(1, KeyUnit::kBytes),
     "Limit of the first gradient bucket; small, so that its reduction starts "
     "early.",
     "\"256KiB\""},
    {"comm.bucket_bytes",
     Field<&C::job, &JobSpec::plan, &PlanOptions::buckets,
           &BucketOptions::bucket_bytes>(),
     Bytes(1, KeyUnit::kBytes), "Limit of the other gradient buckets.",
     "\"4MiB\""},
    {"comm.inline_bytes",
     Field<&C::job, &JobSpec::plan, &PlanOptions::inline_bytes>(),
     Bytes(0, KeyUnit::kBytesOrAuto),
     "Gradients of a rank up to this size are reduced by its compute thread, "
     "without overlap: handing over costs more. \"auto\" measures at the "
     "start, or takes 64KiB where ranks live in several processes. The "
     "results are the same.",
     "\"64KiB\""},
    {"comm.fuse_updates",
     Field<&C::job, &JobSpec::plan, &PlanOptions::fuse_updates>(), kAny,
     "Where gradients are reduced by the compute thread: sum and update in one "
     "pass over memory. The results are the same.",
     "false"},
    {"comm.cross_step",
     Field<&C::job, &JobSpec::plan, &PlanOptions::cross_step>(), kAny,
     "Lets the next forward of a layer begin as soon as its own gradients are "
     "exchanged and applied, though those of later layers are still on their "
     "way. The results are the same. It changes nothing where gradients are "
     "reduced by the compute "
     "thread, nor with optimizer.skip_nonfinite or clip_grad_norm.",
     "true"},
    {"comm.reduction_order",
     Field<&C::job, &JobSpec::plan, &PlanOptions::reduction_order>(), OneOf([] {
       return Names{"auto", "tree", "any"};
     }),
     "In which order ranks add up. \"tree\": always the same one, with the "
     "bits "
     "of the CPU. \"any\": NCCL's, on GPUs alone and faster there; the bits "
     "depend on the GPUs. \"auto\" takes \"any\" where ranks live on several "
     "GPUs.",
     "\"tree\""},
    {"comm.reduction_dtype",
     Field<&C::job, &JobSpec::plan, &PlanOptions::reduction_dtype>(), OneOf([] {
       return Names{"auto", "f32", "bf16", "f16"};
     }),
     "What gradients are while ranks add them up: each sum of two is rounded "
     "to it. \"auto\" is what they are on a rank, train.precision.",
     "\"bf16\""},
    {"comm.hook", Field<&C::job, &JobSpec::hook>(), OneOf(actors::HookNames),
     "What ranks do in place of adding up gradients in one all-reduce. "
     "\"gather_bf16\", \"gather_f16\": each sum is rounded once, when it is "
     "complete, and is sent in 16 bits; of f32, three quarters of the bytes "
     "travel. comm.reduction_dtype sends half of them, and rounds each sum of "
     "two.",
     "\"gather_bf16\""},
    {"comm.timeout_s", Field<&C::job, &JobSpec::timeout>(), KeyRule{0.001, 1e9},
     "Seconds without progress after which the run fails.", "60"},
};

constexpr ConfigKey kZeroKeys[] = {
    {"zero.stage", Field<&C::job, &JobSpec::plan, &PlanOptions::zero_stage>(),
     KeyRule{0, pipeline::kZeroStageMax},
     "What data-parallel ranks share instead of each having a copy (ZeRO). 0: "
     "nothing. 1: the optimizer's states, of which each rank has and updates "
     "one part of mesh.dp. 2: also gradients, once they are reduced. 3: also "
     "parameters, which are gathered before each use. The results are the "
     "same, but for zero.accumulate, and rounding of lamb and lars.",
     "1"},
    {"zero.accumulate", Field<&C::pipeline, &PipelineConfig::zero_accumulate>(),
     OneOf([] {
       return Names{kZeroSharded, kZeroLocal};
     }),
     "What zero.stage = 2 and 3 do in steps of several micro-batches. "
     "\"sharded\": "
     "reduces the gradients of each, and adds up the parts that ranks keep; "
     "sums are rounded in another order, and gradients travel once for each. "
     "\"local\": keeps whole gradients until the last one, as stage 1.",
     "\"local\""},
    {"zero.ahead_bytes",
     Field<&C::job, &JobSpec::plan, &PlanOptions::zero_ahead_bytes>(),
     Bytes(0, KeyUnit::kBytes),
     "Limit on the parameters that zero.stage = 3 gathers ahead of the part of "
     "the model that runs: more overlaps more, and needs more memory. The "
     "results are the same.",
     "\"8MiB\""},
    {"zero.keep", Field<&C::job, &JobSpec::plan, &PlanOptions::zero_keep>(),
     kAny,
     "Whether zero.stage = 3 keeps what a step has gathered until its last "
     "use, in place of gathering it again for the backward, and for each "
     "micro-batch: fewer bytes travel, and a step needs all parameters. The "
     "results are the same.",
     "true"},
};

// Lists how tensors may travel, from the rows of the transports.
const char* TransportHelp() {
  static const std::string* const help = [] {
    std::vector<absl::string_view> ways;
    for (const comm::TransportRule& rule : comm::Transports()) {
      if (rule.transport != comm::Transport::kAuto) ways.push_back(rule.help);
    }
    const absl::string_view last = ways.back();
    ways.pop_back();
    return new std::string(
        absl::StrCat("How ranks of several processes exchange tensors: ",
                     absl::StrJoin(ways, ", "), ", or ", last, "; ",
                     comm::RuleOf(comm::Transport::kAuto).help,
                     ". The results are the same."));
  }();
  return help->c_str();
}

absl::Span<const ConfigKey> ProcessKeys() {
  static const ConfigKey keys[] = {
      {"comm.transport", Field<&C::network, &NetworkConfig::transport>(),
       OneOf([] { return comm::TransportNames(); }), TransportHelp(),
       "\"tcp\""},
      {"comm.encrypt", Field<&C::network, &NetworkConfig::encrypt>(), kAny,
       "Encrypts tensors that go by TCP, too. What processes say to each other "
       "beside them always is.",
       "true"},
      {"comm.liveness_s",
       Field<&C::network, &NetworkConfig::liveness_timeout>(),
       KeyRule{0.1, 1e6},
       "Seconds within which another process that gives no sign of life is "
       "taken for dead.",
       "30"},
      {"comm.join_s", Field<&C::network, &NetworkConfig::join_timeout>(),
       KeyRule{0.1, 1e6},
       "Seconds until all processes must have come together.", "60"},
  };
  return keys;
}

std::vector<ConfigKey> JoinedKeys() {
  std::vector<ConfigKey> keys;
  for (const absl::Span<const ConfigKey> table :
       {ModelKeys(), DataKeys(), absl::MakeConstSpan(kTrainKeys), LossKeys(),
        OptimizerKeys(), MeshKeys(), absl::MakeConstSpan(kCommKeys),
        ProcessKeys(), absl::MakeConstSpan(kZeroKeys), RunKeys()}) {
    keys.insert(keys.end(), table.begin(), table.end());
  }
  return keys;
}

}  // namespace

absl::string_view ConfigKey::section() const {
  const absl::string_view all = name;
  return all.substr(0, all.find('.'));
}

absl::string_view ConfigKey::key() const {
  const absl::string_view all = name;
  return all.substr(all.find('.') + 1);
}

absl::string_view ConfigKey::type() const {
  if (rule.unit == KeyUnit::kNumberOrWord) return "number or text";
  const bool is_size =
      rule.unit == KeyUnit::kBytes || rule.unit == KeyUnit::kBytesOrAuto;
  if (is_size) return "size";
  constexpr absl::string_view kTypes[] = {"text",
                                          "integer",
                                          "number",
                                          "true or false",
                                          "list of integers",
                                          "list of integers and texts",
                                          "list of numbers",
                                          "list of texts"};
  return kTypes[static_cast<int>(field.type)];
}

std::string ConfigKey::Values() const {
  if (rule.choices != nullptr) {
    return absl::StrCat("\"", absl::StrJoin(rule.choices(), "\", \""), "\"");
  }
  std::string values(type());
  // A limit that nobody reaches is there for the program, not for its reader.
  constexpr double kMaxShown = 1e6;
  const bool has_max = rule.max <= kMaxShown;
  if (rule.unit == KeyUnit::kBytesOrAuto) return values + " or \"auto\"";
  if (rule.unit == KeyUnit::kBytes) return values;
  if (!std::isinf(rule.min)) {
    absl::StrAppend(&values, ", ", has_max ? "" : "at least ", rule.min);
    if (has_max) absl::StrAppend(&values, " to ", rule.max);
  } else if (has_max) {
    absl::StrAppend(&values, ", at most ", rule.max);
  }
  return values;
}

absl::Span<const ConfigKey> ConfigKeys() {
  static const std::vector<ConfigKey> keys = JoinedKeys();
  return keys;
}
absl::Span<const ConfigSection> ConfigSections() { return kSections; }

const ConfigKey* FindKey(absl::string_view name) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

}  // namespace troupe::tools
