#include "tools/trainer/config/run_keys.h"

#include "actors/spec/job_spec.h"
#include "actors/tracing/trace.h"
#include "base/field_error.h"
#include "tools/trainer/config/key_rules.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using actors::CheckpointOptions;
using actors::ChromeTrace;
using actors::JobSpec;
using Names = std::vector<std::string>;

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

constexpr ConfigKey kRunKeys[] = {
    {"checkpoint.dir",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::dir>(), kPath,
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
    {"checkpoint.keep_best",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::keep_best>(),
     kAny,
     "Keep the checkpoint of the best evaluation, too, whatever "
     "checkpoint.keep "
     "says; the link \"best\" in checkpoint.dir points to it. An evaluation "
     "that is the best so far makes a checkpoint.",
     "true"},
    {"checkpoint.best_metric",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::best_metric>(),
     OneOf([] {
       return Names{actors::kEvalLoss, actors::kEvalAccuracy};
     }),
     "Which evaluation is the best: that of the smallest loss or of the "
     "highest "
     "accuracy. train.early_stop_patience goes by it, too.",
     "\"eval_accuracy\""},
    {"checkpoint.compare_replicas",
     Field<&C::job, &JobSpec::checkpoint,
           &CheckpointOptions::compare_replicas>(),
     kAny,
     "Compare the replicas at each checkpoint, by hashes of their parameters "
     "and optimizer states, and end the run if they differ. Otherwise the "
     "checkpoint has what the first replica has.",
     "false"},
    {"checkpoint.in_place",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::in_place>(), kAny,
     "Let all ranks that have slices or pieces of tensors (zero.stage, "
     "mesh.tp) "
     "write them into the files in place. Otherwise, or if a process does not "
     "have checkpoint.dir, they send them to one rank of each stage, which "
     "needs memory for the whole tensors. The same files.",
     "false"},
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
    {"checkpoint.allow_changed",
     Field<&C::job, &JobSpec::checkpoint, &CheckpointOptions::allow_changed>(),
     kAny,
     "Go on from a checkpoint whose model has layers of another kind, or with "
     "another model.kind, model.layers, model.heads, model.stem, loss.kind or "
     "optimizer.kind. Otherwise that is an error, unless "
     "checkpoint.allow_missing or checkpoint.allow_unexpected is set.",
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
    {"log.run_dir", Field<&C::log, &LogConfig::run_dir>(), kPath,
     "Folder for all that trainer report makes a page of: what the run is, its "
     "plan, metrics, and the timeline of the steps that trace.first_step and "
     "trace.steps say; empty means none. A run that begins at step 0 replaces "
     "what another left there. --run-dir=DIR sets it.",
     "\"runs/mnist\""},
    {"log.file", Field<&C::log, &LogConfig::file>(), kPath,
     "File for metrics, one JSON object a line; empty means none.",
     "\"runs/mnist.jsonl\""},
    {"log.tensorboard", Field<&C::log, &LogConfig::tensorboard>(), kPath,
     "Folder for event files of TensorBoard, one for each run or resumed run; "
     "empty means none. Steps are log.every apart.",
     "\"runs/mnist\""},
    {"log.progress", Field<&C::log, &LogConfig::progress>(), OneOf([] {
       return Names{"auto", "on", "off"};
     }),
     "A progress bar: \"auto\" shows it on a terminal only, unless TERM is "
     "\"dumb\"; \"on\" in any output, also in a file and where TERM is "
     "\"dumb\"; \"off\" prints lines instead.",
     "\"off\""},
    {"log.model_table", Field<&C::log, &LogConfig::model_table>(), OneOf([] {
       return Names{"auto", "on", "off"};
     }),
     "A table of the model's outermost layers at the start; \"auto\" shows it "
     "on a terminal only. --summary prints all layers, and trains nothing.",
     "\"on\""},

    {"metrics.prometheus", Field<&C::metrics, &MetricsConfig::prometheus>(),
     kAny,
     "Address, host:port, where Prometheus may fetch the run's numbers while "
     "it goes on (http://host:port/metrics); empty means nowhere. Process 0 "
     "has them all.",
     "\"127.0.0.1:9400\""},
    {"metrics.prometheus_expose",
     Field<&C::metrics, &MetricsConfig::prometheus_expose>(), kAny,
     "Whether metrics.prometheus may be an address that other machines reach: "
     "whoever reaches it reads the numbers, unencrypted.",
     "true"},

    {"trace.file", Field<&C::trace, &TraceConfig::file>(), kPath,
     "File for the timeline; empty means none. --trace=FILE sets it.",
     "\"trace.json\""},
    {"trace.first_step",
     Field<&C::trace, &TraceConfig::options,
           &ChromeTrace::Options::first_step>(),
     kFromOne,
     "First step that is traced, counted from 1 at the start of the run, also "
     "of a resumed one. A run that is shorter, where this is not set, traces "
     "its last steps.",
     "100"},
    {"trace.steps",
     Field<&C::trace, &TraceConfig::options, &ChromeTrace::Options::steps>(),
     KeyRule{1, 1000}, "Steps that are traced.", "20"},
};

}  // namespace

absl::Span<const ConfigKey> RunKeys() { return kRunKeys; }

}  // namespace troupe::tools
