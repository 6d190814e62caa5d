#include "tools/trainer/config/config_keys.h"

#include "actors/job_spec.h"
#include "actors/trace.h"
#include "base/field_error.h"
#include "data/registry.h"
#include "data/sampler.h"
#include "nn/models/models.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan.h"
#include "tools/trainer/config/key_rules.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using actors::CheckpointOptions;
using actors::ChromeTrace;
using actors::JobSpec;
using data::DatasetOptions;
using nn::LrSchedule;
using nn::SgdOptions;
using pipeline::BucketOptions;
using pipeline::PlanOptions;
using Names = std::vector<std::string>;

// mesh.dp and mesh.pp are set one at a time, a mesh as a whole.
template <typename ReplaceAxis>
absl::Status SetAxis(const KeyValue& value, TrainerConfig& config,
                     ReplaceAxis replace) {
  pipeline::Mesh& mesh = config.job.plan.mesh;
  mesh = replace(mesh, static_cast<int>(std::get<std::int64_t>(value)));
  return absl::OkStatus();
}

constexpr KeyField kMeshDp = {
    KeyType::kInteger,
    [](const TrainerConfig& config) {
      return KeyValue(std::int64_t{config.job.plan.mesh.dp()});
    },
    [](const KeyValue& value, TrainerConfig& config) {
      return SetAxis(value, config, [](const pipeline::Mesh& mesh, int size) {
        return pipeline::Mesh(size, mesh.pp());
      });
    },
    [] { return pipeline::AxisFieldName("dp"); },
};
constexpr KeyField kMeshPp = {
    KeyType::kInteger,
    [](const TrainerConfig& config) {
      return KeyValue(std::int64_t{config.job.plan.mesh.pp()});
    },
    [](const KeyValue& value, TrainerConfig& config) {
      return SetAxis(value, config, [](const pipeline::Mesh& mesh, int size) {
        return pipeline::Mesh(mesh.dp(), size);
      });
    },
    [] { return pipeline::AxisFieldName("pp"); },
};

constexpr KeyField kSaveMinutes = {
    KeyType::kNumber,
    [](const TrainerConfig& config) {
      return KeyValue(absl::ToDoubleMinutes(config.job.checkpoint.every_time));
    },
    [](const KeyValue& value, TrainerConfig& config) {
      config.job.checkpoint.every_time = absl::Minutes(std::get<double>(value));
      return absl::OkStatus();
    },
    [] { return base::FieldName<&CheckpointOptions::every_time>(); },
};

template <auto kField>
constexpr KeyField Schedule() {
  return Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::schedule,
               kField>();
}

constexpr ConfigSection kSections[] = {
    {"model", "What is trained."},
    {"data", "The samples."},
    {"train", "How long, in which portions, and where."},
    {"optimizer", "How parameters follow their gradients."},
    {"mesh", "How the ranks are laid out."},
    {"comm", "How ranks exchange gradients."},
    {"checkpoint", "What survives the run, and how to go on from it."},
    {"log", "What is shown and kept of the run."},
    {"trace", "A timeline of some steps, for ui.perfetto.dev."},
};

constexpr ConfigKey kKeys[] = {
    {"model.kind", Field<&C::model, &ModelConfig::kind>(), OneOf([] {
       return Names{"lenet", "mlp", "linear"};
     }),
     "The network: \"lenet\" (convolutions, for images of at least 16x16), "
     "\"mlp\" (linear layers with ReLU) or \"linear\" (one linear layer).",
     "\"mlp\""},
    {"model.widths", Field<&C::model, &ModelConfig::widths>(), kExtent,
     "Widths of the hidden layers of \"mlp\".", "[256, 128]"},
    {"model.bias",
     Field<&C::model, &ModelConfig::options, &nn::ModelOptions::bias>(), kAny,
     "Whether layers add a bias.", "false"},

    {"data.kind", Field<&C::data, &DatasetOptions::kind>(),
     OneOf(data::DatasetKinds),
     "The data set. \"glyphs\" (drawn digits) and \"synthetic\" need no files.",
     "\"mnist\""},
    {"data.path", Field<&C::data, &DatasetOptions::path>(), kAny,
     "Folder of the files of \"mnist\" or \"cifar10\"; relative to the folder "
     "the trainer is started in.",
     "\"data/mnist\""},
    {"data.train_count", Field<&C::data, &DatasetOptions::train_count>(),
     AtMost(kCountMax),
     "Use only the first so many training samples; 0 means all.", "8000",
     base::FieldName<&data::SamplerOptions::dataset_size>},
    {"data.test_count", Field<&C::data, &DatasetOptions::test_count>(),
     AtMost(kCountMax), "Use only the first so many test samples; 0 means all.",
     "2000"},
    {"data.seed", Field<&C::data, &DatasetOptions::seed>(), kFromZero,
     "Seed of generated data and of augmentation.", "1"},
    {"data.normalize", Field<&C::data, &DatasetOptions::normalize>(), kAny,
     "Whether images get mean 0 and variance 1 per channel.", "false"},
    {"data.augment", Field<&C::data, &DatasetOptions::augment>(), kAny,
     "Whether training images of \"cifar10\" are shifted and mirrored at "
     "random.",
     "true"},
    {"data.input_shape", Field<&C::data, &DatasetOptions::input_shape>(),
     kExtent,
     "Shape of a sample of \"synthetic\": [length] or [height, width, "
     "channels].",
     "[28, 28, 1]"},
    {"data.num_classes", Field<&C::data, &DatasetOptions::num_classes>(),
     kExtentOrNone,
     "Classes of \"synthetic\"; 0 makes it a regression, trained on the "
     "squared error.",
     "0"},
    {"data.target_dim", Field<&C::data, &DatasetOptions::target_dim>(), kExtent,
     "Length of the target of a \"synthetic\" regression.", "5"},
    {"data.prefetch", Field<&C::job, &JobSpec::prefetch_steps>(),
     KeyRule{1, 1024}, "Steps that loaders may be ahead of training.", "8"},

    {"train.steps", Field<&C::job, &JobSpec::steps>(), AtMost(kCountMax),
     "Optimizer steps in all, those before a resume included. Set this or "
     "train.epochs; either on the command line goes over both in the file.",
     "2000"},
    {"train.epochs", Field<&C::job, &JobSpec::epochs>(), AtMost(kEpochsMax),
     "Passes over the training samples. Set this or train.steps.", "5"},
    {"train.global_batch_size",
     Field<&C::job, &JobSpec::plan, &PlanOptions::global_batch_size>(),
     AtMost(kExtentMax), "Samples of one optimizer step, over all replicas.",
     "128", base::FieldName<&data::SamplerOptions::global_batch_size>},
    {"train.micro_batch_size",
     Field<&C::job, &JobSpec::plan, &PlanOptions::micro_batch_size>(),
     AtMost(kExtentMax),
     "Samples of one forward of one stage, per rank; 0 means global_batch_size "
     "/ mesh.dp. Smaller ones accumulate gradients, and fill a pipeline.",
     "16"},
    {"train.seed", Field<&C::job, &JobSpec::seed>(), kFromZero,
     "Seed of the first parameters and of the order of samples.", "42"},
    {"train.eval_every", Field<&C::job, &JobSpec::eval_every>(), kFromZero,
     "Steps between evaluations on the test samples; 0 means at the end of "
     "each epoch. The end of the run always has one.",
     "500"},
    {"train.stop_on_nan", Field<&C::job, &JobSpec::stop_on_nan>(), kAny,
     "Whether a loss that is not a finite number ends the run.", "false"},
    {"train.loss_scale", Field<&C::job, &JobSpec::loss_scale>(), kAny,
     "Gradients are multiplied by it until the update; a power of two changes "
     "no bit that neither overflows nor underflows.",
     "1024"},
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
    {"train.kernel_cache", Field<&C::kernel_cache>(), kAny,
     "Folder where algorithms that were measured on a GPU are kept for later "
     "runs; \"auto\" is $XDG_CACHE_HOME/troupe/kernels or "
     "~/.cache/troupe/kernels, \"off\" keeps none. A run that is resumed takes "
     "those of its checkpoint before all others.",
     "\"off\""},
    {"train.threads_per_rank",
     Field<&C::job, &JobSpec::plan, &PlanOptions::threads_per_rank>(),
     KeyRule{1, 1024}, "Threads that the kernels of one rank may use.", "2"},

    {"optimizer.kind", Field<&C::optimizer, &OptimizerConfig::kind>(),
     OneOf([] { return Names{"sgd"}; }),
     "The optimizer: stochastic gradient descent.", "\"sgd\""},
    {"optimizer.lr",
     Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::lr>(), kAny,
     "Learning rate.", "0.1"},
    {"optimizer.momentum",
     Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::momentum>(), kAny,
     "Momentum, as in torch.optim.SGD.", "0.9"},
    {"optimizer.dampening",
     Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::dampening>(),
     kAny, "Share of the gradient kept out of the momentum.", "0.1"},
    {"optimizer.weight_decay",
     Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::weight_decay>(),
     kAny, "Factor of the parameters that is added to their gradients.",
     "1e-4"},
    {"optimizer.nesterov",
     Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::nesterov>(), kAny,
     "Nesterov's momentum; needs momentum and no dampening.", "true"},
    {"optimizer.skip_nonfinite",
     Field<&C::optimizer, &OptimizerConfig::sgd, &SgdOptions::skip_nonfinite>(),
     kAny,
     "Skips a step whose gradients are not all finite numbers; needs mesh.pp "
     "1.",
     "true"},
    {"optimizer.schedule", Schedule<&LrSchedule::kind>(),
     OneOf(nn::LrScheduleNames),
     "How the learning rate goes with the steps, as in "
     "torch.optim.lr_scheduler: \"cosine\", \"linear\" and \"one_cycle\" take "
     "schedule_steps, \"step\" step_size, \"multi_step\" milestones.",
     "\"cosine\""},
    {"optimizer.schedule_steps", Schedule<&LrSchedule::steps>(),
     AtMost(kCountMax),
     "Steps, behind the warm-up, until \"cosine\" and \"linear\" are at "
     "min_factor and \"one_cycle\" at its end.",
     "10000"},
    {"optimizer.min_factor", Schedule<&LrSchedule::min_factor>(), kAny,
     "Part of the learning rate at the end of \"cosine\" and \"linear\".",
     "0.1"},
    {"optimizer.gamma", Schedule<&LrSchedule::gamma>(), kAny,
     "Factor at each turn of \"step\" and \"multi_step\", and at each step of "
     "\"exponential\".",
     "0.5"},
    {"optimizer.step_size", Schedule<&LrSchedule::step_size>(),
     AtMost(kCountMax), "Steps between two turns of \"step\".", "1000"},
    {"optimizer.milestones", Schedule<&LrSchedule::milestones>(), kFromZero,
     "Steps of the turns of \"multi_step\", ascending.", "[1000, 2000]"},
    {"optimizer.warmup_steps", Schedule<&LrSchedule::warmup_steps>(),
     AtMost(kCountMax),
     "Steps in which the learning rate rises evenly, before the schedule "
     "begins.",
     "500"},
    {"optimizer.warmup_start", Schedule<&LrSchedule::warmup_start>(), kAny,
     "Part of the learning rate that the warm-up begins with.", "0.01"},

    {"mesh.dp", kMeshDp, AtMost(kIntMax),
     "Replicas of the model, which share each global batch. --ranks=N sets it "
     "to N / mesh.pp.",
     "4"},
    {"mesh.pp", kMeshPp, AtMost(kIntMax),
     "Stages of the pipeline that a replica is cut into, one rank each.", "2"},
    {"mesh.cuts", Field<&C::job, &JobSpec::plan, &PlanOptions::cuts>(), kExtent,
     "Where stages begin: mesh.pp - 1 layers of the model, ascending, each by "
     "its number, counted from 0, or by its name, as parameters have it "
     "(\"7\", or \"features.4\" inside another Sequential).",
     "[3, \"7\"]"},

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
     "Lets a step begin on layers whose gradients are exchanged while those of "
     "other layers are on their way, first layers first. The results are the "
     "same. It changes nothing where gradients are reduced by the compute "
     "thread, nor with optimizer.skip_nonfinite.",
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
    {"comm.timeout_s", Field<&C::job, &JobSpec::timeout>(), KeyRule{0.001, 1e9},
     "Seconds without progress after which the run fails.", "60"},
    {"comm.transport", Field<&C::network, &NetworkConfig::transport>(),
     OneOf([] {
       return Names{"auto", "shm", "tcp", "mpi"};
     }),
     "How ranks of several processes exchange tensors: through shared memory, "
     "by TCP, or by the MPI of the mpirun that starts them; \"auto\" shares "
     "memory on one host and takes TCP between hosts. The results are the "
     "same.",
     "\"tcp\""},
    {"comm.encrypt", Field<&C::network, &NetworkConfig::encrypt>(), kAny,
     "Encrypts tensors that go by TCP, too. What processes say to each other "
     "beside them always is.",
     "true"},
    {"comm.liveness_s", Field<&C::network, &NetworkConfig::liveness_timeout>(),
     KeyRule{0.1, 1e6},
     "Seconds without a sign of life after which another process is taken for "
     "dead.",
     "30"},
    {"comm.join_s", Field<&C::network, &NetworkConfig::join_timeout>(),
     KeyRule{0.1, 1e6}, "Seconds until all processes must have come together.",
     "60"},

    {"checkpoint.dir",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::dir>(), kAny,
     "Folder for checkpoints; empty means none are written.",
     "\"checkpoints/mnist\""},
    {"checkpoint.every",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::every>(),
     kFromZero,
     "Steps between checkpoints; 0 means none by steps. There is one at the "
     "end in any case.",
     "500"},
    {"checkpoint.every_minutes", kSaveMinutes, KeyRule{0, 1e6},
     "Minutes since the last checkpoint, or the start, after which the next "
     "one is written, whatever checkpoint.every says: what a crash can cost. 0 "
     "means none by time.",
     "10"},
    {"checkpoint.keep",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::keep>(),
     KeyRule{0, 1e6}, "Newest checkpoints that are kept; 0 means all.", "5"},
    {"checkpoint.resume",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::resume>(), kAny,
     "Go on from the newest checkpoint in checkpoint.dir; from step 0 where "
     "there is none. --resume sets it.",
     "true"},
    {"checkpoint.allow_unexpected",
     Field<&C::job, &JobSpec::checkpoint,
           &CheckpointOptions::allow_unexpected>(),
     kAny,
     "Go on from a checkpoint that has tensors which neither model nor "
     "optimizer has; they are left out of those that this run writes. "
     "Otherwise that is an error, as in PyTorch's strict load_state_dict().",
     "true"},
    {"checkpoint.allow_missing",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::allow_missing>(),
     kAny,
     "Go on from a checkpoint that lacks tensors of the model or the "
     "optimizer; they begin with initial values. Otherwise that is an error.",
     "true"},
    {"checkpoint.replace", Field<&C::replace_checkpoints>(), kAny,
     "Start anew although checkpoint.dir has checkpoints; they are removed "
     "when the first one of this run is complete. Otherwise a run that would "
     "mix with them is refused.",
     "true"},

    {"log.every", Field<&C::log, &LogConfig::every>(), kFromOne,
     "Steps between lines of the log file and, away from a terminal, of the "
     "output.",
     "10"},
    {"log.file", Field<&C::log, &LogConfig::file>(), kAny,
     "File for metrics, one JSON object a line; empty means none.",
     "\"runs/mnist.jsonl\""},
    {"log.progress", Field<&C::log, &LogConfig::progress>(), OneOf([] {
       return Names{"auto", "on", "off"};
     }),
     "A progress bar: \"auto\" shows it on a terminal only; \"off\" prints "
     "lines instead.",
     "\"off\""},

    {"trace.file", Field<&C::trace, &TraceConfig::file>(), kAny,
     "File for the timeline; empty means none. --trace=FILE sets it.",
     "\"trace.json\""},
    {"trace.first_step",
     Field<&C::trace, &TraceConfig::options,
           &ChromeTrace::Options::first_step>(),
     kFromOne,
     "First step that is traced, counted from 1 at the start of the run, also "
     "of a resumed one.",
     "100"},
    {"trace.steps",
     Field<&C::trace, &TraceConfig::options, &ChromeTrace::Options::steps>(),
     KeyRule{1, 1000}, "Steps that are traced.", "5"},
};

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
  if (rule.unit != KeyUnit::kPlain) return "size";
  constexpr absl::string_view kTypes[] = {
      "text",          "integer",          "number",
      "true or false", "list of integers", "list of integers and texts"};
  return kTypes[static_cast<int>(field.type)];
}

absl::Span<const ConfigKey> ConfigKeys() { return kKeys; }
absl::Span<const ConfigSection> ConfigSections() { return kSections; }

const ConfigKey* FindKey(absl::string_view name) {
  for (const ConfigKey& key : kKeys) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

}  // namespace troupe::tools
