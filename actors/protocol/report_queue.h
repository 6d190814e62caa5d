// Queue of the reports that a job's observer has not received yet. It keeps
// their order, and merges consecutive steps into one report.
//
//   ReportQueue queue;
//   queue.AddSteps(reports);
//   queue.Add(evaluation);
//   if (queue.full()) HoldGrants();           // until reports are delivered
//   std::vector<Report> batch = queue.Take();
//
// The queue drops nothing: its owner must stop granting steps when it is full.
//
// Threads: one at a time; not synchronised.

#ifndef ACTORS_PROTOCOL_REPORT_QUEUE_H_
#define ACTORS_PROTOCOL_REPORT_QUEUE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/setup/job_report.h"

namespace troupe::actors {

struct CheckpointReport {
  std::int64_t step = 0;
  std::string path;
};

// One call of the observer.
using Report =
    std::variant<std::vector<StepReport>, EvaluationReport, CheckpointReport>;

class ReportQueue {
 public:
  // Number of steps at which the queue is full.
  static constexpr std::size_t kStepsMax = 1 << 16;

  void AddSteps(std::vector<StepReport> steps) {
    if (steps.empty()) return;
    steps_ += steps.size();
    auto* last = reports_.empty()
                     ? nullptr
                     : std::get_if<std::vector<StepReport>>(&reports_.back());
    if (last == nullptr) {
      reports_.emplace_back(std::move(steps));
    } else {
      last->insert(last->end(), steps.begin(), steps.end());
    }
  }
  void Add(Report report) { reports_.push_back(std::move(report)); }

  bool empty() const { return reports_.empty(); }
  bool full() const { return steps_ >= kStepsMax; }
  std::vector<Report> Take() {
    steps_ = 0;
    return std::exchange(reports_, {});
  }

 private:
  std::vector<Report> reports_;
  std::size_t steps_ = 0;  // number of steps in reports_
};

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_REPORT_QUEUE_H_
