// Facts about a run that its plan lacks: the file run.json of a run folder, as
// plain data.
//
//   RunFacts facts;
//   facts.model = "gpt_nano";
//   facts.parameters = 85'000;
//   const std::string text = FactsToJson(facts);
//   TROUPE_ASSIGN_OR_RETURN(const RunFacts read, FactsFromJson(text));
//
// FactsFromJson() takes untrusted text. An error (kInvalidArgument) names the
// field, or the line if the text is not JSON.
//
// Threads: none, no state.

#ifndef TOOLS_REPORT_RUN_FACTS_H_
#define TOOLS_REPORT_RUN_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::tools {

// Names of the files in a run folder.
inline constexpr char kFactsFile[] = "run.json";
inline constexpr char kRunPlanFile[] = "plan.json";
inline constexpr char kRunMetricsFile[] = "metrics.jsonl";
inline constexpr char kRunTraceFile[] = "trace.json";

inline constexpr char kFactsFormat[] = "troupe run 1";
// Limits on the bytes of a string and on the stages in FactsFromJson().
inline constexpr std::size_t kFactTextMax = 1024;
inline constexpr std::size_t kFactStagesMax = 4096;

struct RunFacts {
  std::string version;   // version of the trainer
  std::string model;     // name of the model, as in log messages
  std::string data;      // kind of the data
  std::string schedule;  // name of the schedule, or of the file that had it
  std::string optimizer;
  std::string precision;
  std::string started;  // UTC, "2026-01-02T03:04:05Z"
  std::int64_t parameters = 0;
  std::int64_t first_step = 0;  // above 0 if the run was resumed
  std::int64_t steps = 0;       // total number of steps
  // Expected peak of tensor memory on the rank that needs most, in bytes;
  // 0 if unknown.
  double memory_expected = 0;
  // Estimated cost of each stage for one micro-batch: FLOPs, and bytes of
  // activations. Empty if unknown.
  pipeline::StepCosts costs;
};

std::string FactsToJson(const RunFacts& facts);
absl::StatusOr<RunFacts> FactsFromJson(absl::string_view text);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_RUN_FACTS_H_
