// What a run is, beside its plan: the file run.json of a run folder, as plain
// data.
//
//   RunFacts facts;
//   facts.model = "gpt_nano";
//   facts.parameters = 85'000;
//   const std::string text = FactsToJson(facts);
//   TROUPE_ASSIGN_OR_RETURN(const RunFacts read, FactsFromJson(text));
//
// FactsFromJson() takes a text that nobody vouches for; an error
// (kInvalidArgument) names the field, and the line where the text is no JSON.
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
// Limits of what FactsFromJson() takes.
inline constexpr std::size_t kFactTextMax = 1024;
inline constexpr std::size_t kFactStagesMax = 4096;

struct RunFacts {
  std::string version;   // of the trainer
  std::string model;     // as messages call it
  std::string data;      // kind
  std::string schedule;  // name, or the file that it came from
  std::string optimizer;
  std::string precision;
  std::string started;  // UTC, "2026-01-02T03:04:05Z"
  std::int64_t parameters = 0;
  std::int64_t first_step = 0;  // above 0 when resumed
  std::int64_t steps = 0;       // in all
  // Bytes that the tensors of the rank that needs most were expected to hold;
  // 0: nobody knew.
  double memory_expected = 0;
  // Of each stage, a micro-batch, by arithmetic: FLOPs and bytes. Empty: not
  // known.
  pipeline::StepCosts costs;
};

std::string FactsToJson(const RunFacts& facts);
absl::StatusOr<RunFacts> FactsFromJson(absl::string_view text);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_RUN_FACTS_H_
