#include "tools/trainer/commands/training_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/claim.h"
#include "actors/checkpoint/layout.h"
#include "actors/cluster/host_address.h"
#include "actors/job.h"
#include "actors/tracing/trace.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/host_port.h"
#include "nn/kernels/kernel_choices.h"
#include "pipeline/balance.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/model_builder.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/metrics/prometheus_exporter.h"
#include "tools/trainer/metrics/tensorboard_log.h"
#include "tools/trainer/run/json_log.h"
#include "tools/trainer/run/run_folder.h"
#include "tools/trainer/run/run_observer.h"
#include "tools/trainer/run/run_totals.h"
#include "tools/trainer/run/spec_builder.h"
#include "tools/trainer/terminal/stop_signals.h"
#include "tools/trainer/terminal/summary.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools {
namespace {

// Stops a job that may not have started yet or may have ended.
class Stopper {
 public:
  // Prevents further parts of the run, calls `announce` if given, and then asks
  // the job to stop. So the lines that `announce` prints are true, and precede
  // those of the job's end.
  void Stop(const std::function<void()>& announce = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!given_up_->HasBeenNotified()) given_up_->Notify();
    if (announce) announce();
    if (job_ != nullptr) job_->RequestStop();
  }
  // Notified by the first Stop().
  std::shared_ptr<absl::Notification> given_up() const { return given_up_; }
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return given_up_->HasBeenNotified();
  }
  void Attach(actors::Job* job) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    job_ = job;
    if (job_ != nullptr && given_up_->HasBeenNotified()) job_->RequestStop();
  }

 private:
  mutable absl::Mutex mutex_;
  actors::Job* job_ ABSL_GUARDED_BY(mutex_) = nullptr;
  const std::shared_ptr<absl::Notification> given_up_ =
      std::make_shared<absl::Notification>();
};

// Returns the checkpoints that this run replaces. Checkpoints of an earlier run
// that it may neither replace nor go on from are an error.
absl::StatusOr<std::vector<std::string>> FindReplaced(
    const LoadedConfig& loaded, base::FileSystem& files) {
  const actors::CheckpointOptions& config = loaded.config.job.checkpoint;
  std::vector<std::string> old;
  if (config.dir.empty() || config.resume) return old;
  TROUPE_ASSIGN_OR_RETURN(old, actors::ListCheckpoints(files, config.dir));
  if (old.empty() || loaded.config.replace_checkpoints) return old;
  return absl::InvalidArgumentError(absl::StrCat(
      loaded.Where("checkpoint.dir"),
      ": checkpoint.dir has checkpoints of an earlier run, the last is ",
      old.back(),
      "; add --resume to go on from it, --set checkpoint.replace=true to "
      "replace them, or use another folder"));
}

// One run. Its members are made in their order.
class Run {
 public:
  Run(const LoadedConfig& loaded, const StartWords& start,
      base::FileSystem& files, Display& display)
      : loaded_(loaded), start_(start), files_(files), display_(display) {}

  // OpenData(), Prepare() and Start() are called in this order. They do all
  // that can fail before the first step.
  absl::Status OpenData() {
    std::vector<std::string> notes = loaded_.notes;
    TROUPE_ASSIGN_OR_RETURN(
        const data::DataSplits splits,
        tools::OpenData(loaded_, files_, [&](const std::string& line) {
          notes.push_back(line);
        }));
    TROUPE_ASSIGN_OR_RETURN(spec_, BuildSpec(loaded_, splits, files_));
    spec_.kernel_choices = MakeKernelChoices();
    if (spec_.cluster) spec_.cluster->give_up = stopper_.given_up();
    if (decides()) {
      for (const std::string& note : notes) display_.Print(note);
    }
    if (spec_.test == nullptr && decides()) {
      display_.Print(absl::StrCat("no test samples in ",
                                  loaded_.config.data.path,
                                  ": nothing is evaluated"));
    }
    return absl::OkStatus();
  }

  absl::Status Prepare() {
    const TrainerConfig& config = loaded_.config;
    if (!config.trace.file.empty() || !config.log.run_dir.empty()) {
      trace_.emplace(TraceOptions());
      spec_.trace = &*trace_;
    }
    // Only process 0 writes files and shows the run.
    if (!decides()) return absl::OkStatus();
    spec_.note = [this](const std::string& line) { display_.Print(line); };
    // The claim comes first, so that a run that fails here leaves the log and
    // timeline of another run alone.
    if (!config.job.checkpoint.dir.empty()) {
      TROUPE_ASSIGN_OR_RETURN(
          spec_.checkpoint.claim,
          actors::ClaimCheckpoints(files_, config.job.checkpoint.dir));
    }
    TROUPE_ASSIGN_OR_RETURN(std::vector<std::string> old,
                            FindReplaced(loaded_, files_));
    if (!config.trace.file.empty()) {
      // Writes an empty file first, so that a path that cannot be written fails
      // here.
      TROUPE_RETURN_IF_ERROR(
          base::WriteWholeFile(files_, config.trace.file, ""));
    }
    observer_ = std::make_unique<RunObserver>(
        config, spec_.train->spec().is_classification(), display_, absl::Now);
    TROUPE_RETURN_IF_ERROR(OpenSinks());
    if (display_.shows_tables()) {
      TROUPE_ASSIGN_OR_RETURN(const nn::ModelSummary summary,
                              SummaryOf(config, spec_.train->spec()));
      std::string table = summary.Table(/*depth=*/1);
      table.pop_back();  // Print() ends the last line
      display_.Print(table);
    }
    observer_->OnFailure([this] { stopper_.Stop(); });
    // Removes earlier checkpoints only after a new one was written.
    observer_->OnFirstCheckpoint([this, old](const std::string& written) {
      for (const std::string& path : old) {
        if (path == written || !files_.Exists(path)) continue;
        TROUPE_RETURN_IF_ERROR(actors::RemoveCheckpoint(files_, path));
      }
      return old.empty() ? absl::OkStatus()
                         : actors::DropStaleBest(
                               files_, loaded_.config.job.checkpoint.dir);
    });
    return absl::OkStatus();
  }

  absl::Status Start() {
    absl::StatusOr<std::unique_ptr<actors::Job>> job =
        actors::Job::Start(spec_, observer_.get());
    if (!job.ok()) return AtKeys(loaded_, job.status());
    job_ = *std::move(job);
    return absl::OkStatus();
  }

  absl::Status Finish() {
    stopper_.Attach(job_.get());
    const absl::StatusOr<actors::JobResult> result = job_->Wait();
    stopper_.Attach(nullptr);
    display_.End();
    TROUPE_RETURN_IF_ERROR(AtKeys(loaded_, result.status()));
    stopped_ = result->stopped;
    if (!decides()) return absl::OkStatus();
    TROUPE_RETURN_IF_ERROR(observer_->status());
    if (!loaded_.config.trace.file.empty()) {
      TROUPE_RETURN_IF_ERROR(
          trace_->WriteFile(files_, loaded_.config.trace.file));
    }
    if (folder_ != nullptr) TROUPE_RETURN_IF_ERROR(folder_->End(*trace_));
    PrintSummary(*result);
    return absl::OkStatus();
  }

  Stopper& stopper() { return stopper_; }
  bool started() const { return job_ != nullptr; }
  // Whether this is the job's only process, or process 0.
  bool decides() const {
    const auto& cluster = loaded_.config.job.cluster;
    return !cluster || cluster->process == 0;
  }
  // Whether the job ended before all of its steps were done. Valid after
  // Finish().
  bool stopped() const { return stopped_; }

 private:
  // Opens the sinks of the run's metrics other than the display.
  absl::Status OpenSinks() {
    const LogConfig& log = loaded_.config.log;
    if (!log.file.empty()) {
      TROUPE_ASSIGN_OR_RETURN(JsonLog json, JsonLog::Open(files_, log.file));
      AddSink(std::make_unique<JsonLog>(std::move(json)), log.every);
    }
    if (!log.tensorboard.empty()) {
      TROUPE_ASSIGN_OR_RETURN(
          TensorBoardLog events,
          TensorBoardLog::Open(files_, log.tensorboard,
                               {absl::Now(), actors::HostName(), getpid()}));
      AddSink(std::make_unique<TensorBoardLog>(std::move(events)), log.every);
    }
    TROUPE_RETURN_IF_ERROR(OpenFolder());
    const std::string& prometheus = loaded_.config.metrics.prometheus;
    if (prometheus.empty()) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const base::HostPort address,
                            base::ParseHostPort(prometheus));
    absl::StatusOr<std::unique_ptr<PrometheusExporter>> exporter =
        PrometheusExporter::Start(address, files_);
    if (!exporter.ok()) {
      return base::WithMessage(exporter.status(),
                               absl::StrCat(loaded_.Where("metrics.prometheus"),
                                            ": ", exporter.status().message()));
    }
    AddSink(*std::move(exporter), /*every=*/1);
    display_.Print(absl::StrCat("metrics: http://", prometheus, "/metrics"));
    return absl::OkStatus();
  }

  absl::Status OpenFolder() {
    const std::string& dir = loaded_.config.log.run_dir;
    if (dir.empty()) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RunFolder> folder,
                            RunFolder::Open(files_, dir));
    folder_ = folder.get();
    observer_->OnPlanned([this](const actors::JobInfo& info) -> absl::Status {
      TROUPE_ASSIGN_OR_RETURN(const RunFacts facts, FactsOf(info));
      return folder_->Begin(facts, info.plan);
    });
    AddSink(std::move(folder), /*every=*/1);
    return absl::OkStatus();
  }

  absl::StatusOr<RunFacts> FactsOf(const actors::JobInfo& info) const {
    const TrainerConfig& config = loaded_.config;
    const pipeline::Plan& plan = info.plan;
    RunFacts facts;
    facts.version = Version();
    facts.model = config.model.Name();
    facts.data = config.data.kind;
    facts.schedule = plan.mesh_is_chosen ? plan.schedule_name
                     : config.pipeline.schedule_file.empty()
                         ? ScheduleName(config)
                         : config.pipeline.schedule_file;
    facts.optimizer = config.optimizer.kind;
    const auto& dtypes = plan.stages[0].parameter_dtypes;
    facts.precision =
        std::string(nn::DTypeName(dtypes.empty() ? plan.dtype : dtypes[0]));
    facts.started = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(),
                                     absl::UTCTimeZone());
    facts.parameters = plan.parameter_elems();
    facts.first_step = info.first_step;
    facts.steps = info.steps;
    facts.memory_expected = info.memory.total();
    TROUPE_ASSIGN_OR_RETURN(
        facts.costs,
        pipeline::EstimateCosts(
            spec_.model, plan.cuts,
            {plan.stages[0].input, plan.stages[0].input_dtype}, plan.device,
            pipeline::PlacesOf(plan.mesh, /*rank=*/0, plan.sequence_parallel,
                               plan.depth_blocks)));
    return facts;
  }

  // Returns the trace options. A run that would end before its first traced
  // step traces its last steps instead.
  actors::ChromeTrace::Options TraceOptions() const {
    actors::ChromeTrace::Options options = loaded_.config.trace.options;
    if (loaded_.IsSet("trace.first_step") || spec_.checkpoint.resume) {
      return options;
    }
    const std::int64_t size = spec_.plan.global_batch_size;
    const std::int64_t rest =
        !spec_.drop_last && spec_.train->size() % size != 0;
    const std::int64_t steps =
        spec_.steps > 0 ? spec_.steps
                        : spec_.epochs * (spec_.train->size() / size + rest);
    options.first_step = std::max<std::int64_t>(
        1, std::min(options.first_step, steps - options.steps + 1));
    return options;
  }

  void AddSink(std::unique_ptr<MetricSink> sink, std::int64_t every) {
    observer_->AddSink(sink.get(), every);
    sinks_.push_back(std::move(sink));
  }

  std::shared_ptr<nn::KernelChoices> MakeKernelChoices() {
    nn::KernelChoices::Options options;
    options.files = &files_;
    options.folder = loaded_.config.kernel_cache;
    options.warn = [this](const std::string& words) {
      display_.Print(absl::StrCat("warning: ", words));
    };
    return std::make_shared<nn::KernelChoices>(std::move(options));
  }

  // Adds the best evaluation if the run kept track of it.
  void AddBest(const actors::JobResult& result, Summary& summary) const {
    const actors::JobSpec& job = loaded_.config.job;
    if (!job.checkpoint.keep_best && job.early_stop_patience == 0) return;
    if (result.best.step > 0) summary.best = observer_->ResultOf(result.best);
    if (job.checkpoint.keep_best) {
      summary.files.best_checkpoint =
          base::JoinPath(job.checkpoint.dir, actors::kBestName);
    }
  }

  void PrintSummary(const actors::JobResult& result) {
    Summary summary;
    const RunTotals& totals = observer_->totals();
    summary.first_step = totals.first_step();
    summary.steps = result.steps;
    summary.samples = totals.samples();
    summary.seconds = result.seconds;
    summary.peak_bytes = totals.peak_bytes();
    summary.stopped = result.stopped;
    summary.converged = result.converged;
    summary.skipped_steps = totals.skipped_steps();
    summary.loss_scale = totals.loss_scale();
    if (result.evaluation.count > 0) {
      summary.evaluation = observer_->ResultOf(result.evaluation);
    }
    AddBest(result, summary);
    for (const std::string& path :
         {loaded_.config.log.file, loaded_.config.log.tensorboard}) {
      if (!path.empty()) summary.files.metrics.push_back(path);
    }
    summary.files.has_folder = !loaded_.config.job.checkpoint.dir.empty();
    summary.files.checkpoint = result.checkpoint;
    summary.files.resumed_from = totals.resumed_from();
    summary.files.trace = loaded_.config.trace.file;
    summary.files.trace_empty = trace_ && trace_->IsEmpty();
    summary.files.run_dir = loaded_.config.log.run_dir;
    const actors::JobSpec& job = loaded_.config.job;
    const std::string more =
        job.epochs > 0
            ? absl::StrCat(
                  "train.epochs=",
                  2 * std::max(job.epochs, totals.EpochOf(result.steps)))
            : absl::StrCat("train.steps=",
                           2 * std::max(job.steps, result.steps));
    summary.next.again = FormatCommand(start_, loaded_.file, loaded_.settings);
    summary.next.kept = FormatCommand(start_, loaded_.file, loaded_.settings,
                                      "checkpoint.dir=checkpoints");
    summary.next.where = start_.where;
    summary.next.longer =
        FormatCommand(start_, loaded_.file, loaded_.settings, more);
    if (!result.converged.empty()) {
      summary.next.longer =
          FormatCommand(start_, loaded_.file, loaded_.settings,
                        absl::StrCat("train.early_stop_patience=",
                                     2 * job.early_stop_patience));
    }
    std::string text = FormatSummary(summary);
    text.pop_back();  // Print() ends the last line
    display_.Print(text);
  }

  const LoadedConfig& loaded_;
  const StartWords& start_;
  base::FileSystem& files_;
  Display& display_;
  actors::JobSpec spec_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  RunFolder* folder_ = nullptr;  // one of sinks_; null: no run folder
  std::optional<actors::ChromeTrace> trace_;
  Stopper stopper_;
  bool stopped_ = false;
  std::unique_ptr<RunObserver> observer_;
  std::unique_ptr<actors::Job> job_;
};

}  // namespace

TrainOutcome Train(const LoadedConfig& loaded, const StartWords& start,
                   base::FileSystem& files, Display& display,
                   const std::function<void()>& stop_waiting) {
  auto owned = std::make_unique<Run>(loaded, start, files, display);
  // Pointer for the thread of the signals. It stays valid when `owned` releases
  // the run.
  Run* const run = owned.get();
  std::atomic<int> first_signal{0};
  const auto signals = StopSignals::Start([&](int signal) {
    first_signal = signal;
    // A line that waits for a reader holds the display.
    stop_waiting();
    run->stopper().Stop([&] {
      if (!run->decides()) return;
      display.Print(absl::StrCat("stopping after this step; Ctrl-C ",
                                 signal == SIGINT ? "again " : "",
                                 "exits at once"));
    });
  });
  TrainOutcome outcome;
  outcome.status = signals.status();
  if (!outcome.status.ok()) return outcome;
  for (auto part : {&Run::OpenData, &Run::Prepare, &Run::Start}) {
    if (!run->stopper().stopped()) outcome.status = (run->*part)();
    // A stop may cancel a part that waits for other processes.
    if (run->stopper().stopped() &&
        (outcome.status.ok() || absl::IsCancelled(outcome.status)) &&
        !run->started()) {
      display.Print("stopped before the first step");
      outcome.status = absl::OkStatus();
      outcome.stopped_by = first_signal;
      return outcome;
    }
    if (outcome.status.ok()) continue;
    outcome.config_error = absl::IsInvalidArgument(outcome.status);
    return outcome;
  }
  outcome.status = run->Finish();
  if (run->stopped()) {
    // A job may be stopped in any of its processes.
    outcome.stopped_by = first_signal != 0 ? first_signal.load() : SIGTERM;
  }
  // A strand of a failed job may be stuck in a call that never returns (a read
  // of a dead disk, say). The run is leaked so that nothing waits for it, and
  // TrainerMain() ends the process.
  if (!outcome.status.ok()) static_cast<void>(owned.release());
  return outcome;
}

}  // namespace troupe::tools
