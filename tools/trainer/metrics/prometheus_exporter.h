// A server of the run's metrics for Prometheus, which fetches them by HTTP in
// its text format
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
//   TROUPE_ASSIGN_OR_RETURN(
//       std::unique_ptr<PrometheusExporter> exporter,
//       PrometheusExporter::Start({"127.0.0.1", 9400}, files));
//   TROUPE_RETURN_IF_ERROR(exporter->OnStep(entry));
//   // curl http://127.0.0.1:9400/metrics
//
// It answers with:
//
//     troupe_step, troupe_steps, troupe_epoch       where the run stands
//     troupe_train_loss, troupe_train_accuracy      of the last step
//     troupe_learning_rate, troupe_samples_per_second
//     troupe_step_seconds                           histogram
//     troupe_eval_step, troupe_eval_loss, troupe_eval_accuracy
//     troupe_checkpoint_step                        of the last one
//     troupe_checkpoint_bytes_total                 in all that were written
//     troupe_ranks                                  of the job
//     troupe_peak_tensor_bytes                      of any rank, so far
//     process_resident_memory_bytes                 of process 0
//
// It speaks plain HTTP without a password: anyone who reaches the address can
// read the metrics, and nothing else. A request is limited to kRequestBytesMax
// bytes and to kRequestTime; one that is not HTTP is answered with 400.
//
// Threads: the server has two of its own. They access nothing but the metrics.

#ifndef TOOLS_TRAINER_METRICS_PROMETHEUS_EXPORTER_H_
#define TOOLS_TRAINER_METRICS_PROMETHEUS_EXPORTER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/file_system.h"
#include "base/host_port.h"
#include "tools/trainer/metrics/metric_sink.h"

namespace troupe::tools {

class PrometheusExporter : public MetricSink {
 public:
  static constexpr int kRequestBytesMax = 8192;
  static constexpr absl::Duration kRequestTime = absl::Seconds(5);

  // Listens at `address`, whose host is a number or a name. `files` must
  // outlive the exporter, which reads the sizes of checkpoints from it.
  //   kNotFound: no such host.
  //   kUnavailable: the port is taken, or the address is another machine's.
  static absl::StatusOr<std::unique_ptr<PrometheusExporter>> Start(
      const base::HostPort& address, base::FileSystem& files);
  ~PrometheusExporter() override;

  absl::Status OnStart(const StartEntry& entry) override;
  absl::Status OnStep(const StepEntry& entry) override;
  absl::Status OnEvaluation(const EvaluationEntry& entry) override;
  absl::Status OnCheckpoint(const CheckpointEntry& entry) override;

 private:
  struct Metrics;

  PrometheusExporter(std::unique_ptr<Metrics> metrics, base::FileSystem& files);

  const std::unique_ptr<Metrics> metrics_;
  base::FileSystem& files_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_METRICS_PROMETHEUS_EXPORTER_H_
