// Reads the metrics of a run folder from its JSON lines
// (tools/trainer/run/json_log.h).
//
//   TROUPE_ASSIGN_OR_RETURN(const RunMetrics metrics, ReadMetrics(text));
//   for (const MetricRow& row : metrics.train) Plot(row.step, row.loss);
//
// Rows are sorted by step. A resumed run may leave two rows of one step; the
// later one is kept. A last line without a newline is skipped, as the run may
// have died while writing it; objects of another "kind" are skipped too. Errors
// (kInvalidArgument) name the line.

#ifndef TOOLS_REPORT_METRICS_READER_H_
#define TOOLS_REPORT_METRICS_READER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::tools {

inline constexpr std::int64_t kMetricsBytesMax = std::int64_t{256} << 20;

// Metrics after a step; one that the file lacks or has as null is none.
struct MetricRow {
  std::int64_t step = 0;
  std::optional<double> loss, accuracy, samples_per_s, lr, grad_norm,
      peak_bytes;
};

// A metric of a row, and its name in the file.
struct MetricField {
  const char* name;
  std::optional<double> MetricRow::*field;
};
inline constexpr MetricField kMetricFields[] = {
    {"loss", &MetricRow::loss},
    {"accuracy", &MetricRow::accuracy},
    {"samples_per_s", &MetricRow::samples_per_s},
    {"lr", &MetricRow::lr},
    {"grad_norm", &MetricRow::grad_norm},
    {"peak_bytes", &MetricRow::peak_bytes},
};

struct RunMetrics {
  std::vector<MetricRow> train;       // ascending by step
  std::vector<MetricRow> evaluation;  // loss and accuracy
};

absl::StatusOr<RunMetrics> ReadMetrics(absl::string_view text);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_METRICS_READER_H_
