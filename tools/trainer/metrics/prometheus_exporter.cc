#include "tools/trainer/metrics/prometheus_exporter.h"

#include <unistd.h>

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "actors/cluster/host_address.h"
#include "base/check.h"
#include "prometheus/counter.h"
#include "prometheus/exposer.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace troupe::tools {
namespace {

// Upper ends of the histogram's buckets, in seconds: half a decade each.
const std::vector<double>& StepSecondsBuckets() {
  static const auto& buckets = *new std::vector<double>{
      1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 30, 100};
  return buckets;
}

// Memory of this process, read at each request.
class ProcessMemory : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::MetricFamily family;
    family.name = "process_resident_memory_bytes";
    family.help = "Memory of this process that is in RAM.";
    family.type = prometheus::MetricType::Gauge;
    prometheus::ClientMetric metric;
    metric.gauge.value = ResidentBytes();
    family.metric.push_back(std::move(metric));
    return {std::move(family)};
  }

 private:
  // Returns 0 if the system does not provide it.
  static double ResidentBytes() {
    base::PosixFileSystem files;
    const absl::StatusOr<std::string> text =
        files.ReadToEnd("/proc/self/statm", /*bytes_max=*/1000);
    if (!text.ok()) return 0;
    const std::vector<std::string> pages = absl::StrSplit(*text, ' ');
    double resident = 0;
    if (pages.size() < 2 || !absl::SimpleAtod(pages[1], &resident)) return 0;
    return resident * double(sysconf(_SC_PAGESIZE));
  }
};

// Returns the bytes of the files in `folder` that can be read; a run may have
// removed the folder.
std::int64_t BytesIn(base::FileSystem& files, const std::string& folder) {
  std::int64_t bytes = 0;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return 0;
  for (const std::string& name : *names) {
    const auto file = files.Open(base::JoinPath(folder, name));
    if (file.ok()) bytes += (*file)->size();
  }
  return bytes;
}

// Returns the server's options: no TLS, no files, and a time limit for slow
// clients.
std::vector<std::string> ServerOptions(const base::HostPort& address) {
  return {"listening_ports",
          address.ToString(),
          "num_threads",
          "2",
          "enable_keep_alive",
          "no",
          "max_request_size",
          absl::StrCat(PrometheusExporter::kRequestBytesMax),
          "request_timeout_ms",
          absl::StrCat(
              absl::ToInt64Milliseconds(PrometheusExporter::kRequestTime))};
}

}  // namespace

struct PrometheusExporter::Metrics {
  prometheus::Gauge& AddGauge(const char* name, const char* help) {
    return prometheus::BuildGauge()
        .Name(name)
        .Help(help)
        .Register(*registry)
        .Add({});
  }

  const std::shared_ptr<prometheus::Registry> registry =
      std::make_shared<prometheus::Registry>();
  const std::shared_ptr<ProcessMemory> memory =
      std::make_shared<ProcessMemory>();
  prometheus::Gauge& step = AddGauge("troupe_step", "Steps committed.");
  prometheus::Gauge& steps = AddGauge("troupe_steps", "Steps of the run.");
  prometheus::Gauge& epoch = AddGauge("troupe_epoch", "Epoch, from 1.");
  prometheus::Gauge& ranks = AddGauge("troupe_ranks", "Ranks of the job.");
  prometheus::Gauge& loss =
      AddGauge("troupe_train_loss", "Loss of the last step.");
  prometheus::Gauge& accuracy =
      AddGauge("troupe_train_accuracy", "Accuracy of the last step, 0 to 1.");
  prometheus::Gauge& lr =
      AddGauge("troupe_learning_rate", "Learning rate of the last step.");
  // Added only if gradients are clipped: a gauge of 0 would mean zero
  // gradients.
  prometheus::Gauge* grad_norm = nullptr;
  prometheus::Gauge& rate =
      AddGauge("troupe_samples_per_second", "Samples trained on, a second.");
  prometheus::Gauge& peak_bytes =
      AddGauge("troupe_peak_tensor_bytes",
               "Most bytes that the tensors of any one rank have held.");
  prometheus::Gauge& eval_step =
      AddGauge("troupe_eval_step", "Step of the last evaluation.");
  prometheus::Gauge& eval_loss =
      AddGauge("troupe_eval_loss", "Loss of the last evaluation.");
  prometheus::Gauge& eval_accuracy = AddGauge(
      "troupe_eval_accuracy", "Accuracy of the last evaluation, 0 to 1.");
  prometheus::Gauge& checkpoint_step =
      AddGauge("troupe_checkpoint_step", "Step of the last checkpoint.");
  prometheus::Counter& checkpoint_bytes =
      prometheus::BuildCounter()
          .Name("troupe_checkpoint_bytes_total")
          .Help("Bytes of the checkpoints that were written.")
          .Register(*registry)
          .Add({});
  prometheus::Histogram& step_seconds = prometheus::BuildHistogram()
                                            .Name("troupe_step_seconds")
                                            .Help("Seconds that a step took.")
                                            .Register(*registry)
                                            .Add({}, StepSecondsBuckets());
  // The last member, so that its threads end before the metrics are destroyed.
  std::unique_ptr<prometheus::Exposer> server;
};

PrometheusExporter::PrometheusExporter(std::unique_ptr<Metrics> metrics,
                                       base::FileSystem& files)
    : metrics_(std::move(metrics)), files_(files) {}

PrometheusExporter::~PrometheusExporter() = default;

absl::StatusOr<std::unique_ptr<PrometheusExporter>> PrometheusExporter::Start(
    const base::HostPort& address, base::FileSystem& files) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                          actors::AddressesOf(address.host));
  auto metrics = std::make_unique<Metrics>();
  try {
    metrics->server = std::make_unique<prometheus::Exposer>(
        ServerOptions({numbers.front(), address.port}));
  } catch (const std::exception&) {
    return absl::UnavailableError(absl::StrCat(
        "cannot serve metrics at ", address.ToString(),
        ": the port is taken, or no address of this machine; take another"));
  }
  metrics->server->RegisterCollectable(metrics->registry);
  metrics->server->RegisterCollectable(metrics->memory);
  return std::unique_ptr<PrometheusExporter>(
      new PrometheusExporter(std::move(metrics), files));
}

absl::Status PrometheusExporter::OnStart(const StartEntry& entry) {
  metrics_->step.Set(double(entry.first_step));
  metrics_->steps.Set(double(entry.steps));
  metrics_->ranks.Set(entry.ranks);
  return absl::OkStatus();
}

absl::Status PrometheusExporter::OnStep(const StepEntry& entry) {
  metrics_->step.Set(double(entry.step));
  metrics_->epoch.Set(double(entry.epoch));
  metrics_->loss.Set(entry.loss);
  if (entry.accuracy) metrics_->accuracy.Set(*entry.accuracy);
  metrics_->lr.Set(entry.lr);
  if (entry.grad_norm) {
    if (metrics_->grad_norm == nullptr) {
      metrics_->grad_norm = &metrics_->AddGauge(
          "troupe_gradient_norm",
          "Norm of all gradients of the last step, before clipping.");
    }
    metrics_->grad_norm->Set(*entry.grad_norm);
  }
  metrics_->rate.Set(entry.samples_per_s);
  metrics_->peak_bytes.Set(double(entry.peak_bytes));
  metrics_->step_seconds.Observe(entry.seconds);
  return absl::OkStatus();
}

absl::Status PrometheusExporter::OnEvaluation(const EvaluationEntry& entry) {
  metrics_->eval_step.Set(double(entry.step));
  metrics_->eval_loss.Set(entry.loss);
  if (entry.accuracy) metrics_->eval_accuracy.Set(*entry.accuracy);
  return absl::OkStatus();
}

absl::Status PrometheusExporter::OnCheckpoint(const CheckpointEntry& entry) {
  metrics_->checkpoint_step.Set(double(entry.step));
  metrics_->checkpoint_bytes.Increment(double(BytesIn(files_, entry.path)));
  return absl::OkStatus();
}

}  // namespace troupe::tools
