#include "tools/report/step_json.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipeline/table/action_rules.h"
#include "tools/report/critical_path.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::json;

// Rounds to hundredths of a microsecond, which keeps the JSON short.
double Rounded(double micros) { return std::round(micros * 100) / 100; }

using pipeline::ActionRole;

std::string WordOf(pipeline::ActionKind kind) {
  return std::string(pipeline::RuleOf(kind).word);
}

std::string WordOf(const Bar& bar) {
  return bar.is_graph ? "graph" : WordOf(bar.kind);
}

const char* ColorOf(const pipeline::ActionRule& rule) {
  switch (rule.role) {
    case ActionRole::kCompute:
      if (rule.Has(pipeline::kOfForward)) return "forward";
      if (!rule.Has(pipeline::kBeginsBackward)) return "weights";
      return rule.Has(pipeline::kEndsBackward) ? "backward" : "inputs";
    case ActionRole::kReceive:
    case ActionRole::kSend:
      return "transfer";
    case ActionRole::kCollective:
      return "comm";
    case ActionRole::kUpdate:
      return "update";
  }
  return "";
}

const char* CountedBy(pipeline::ActionScope scope) {
  switch (scope) {
    case pipeline::ActionScope::kStep:
      return "step";
    case pipeline::ActionScope::kMicroBatch:
      return "micro-batch";
    case pipeline::ActionScope::kBucket:
      return "bucket";
  }
  return "";
}

Json BarJson(const Bar& bar, double origin) {
  return {WordOf(bar), bar.chunk, bar.index, Rounded(bar.begin - origin),
          Rounded(bar.end - origin)};
}

Json RankJson(const RankTimeline& rank, const RunTimeline& run, double origin) {
  Json compute = Json::array(), comm = Json::array(), spans = Json::array();
  Json others = Json::array();
  std::vector<double> totals(kSpanKinds, 0.0);
  for (const Bar& bar : rank.compute) compute.push_back(BarJson(bar, origin));
  for (const Bar& bar : rank.others) {
    Json row = BarJson(bar, origin);
    row.push_back(bar.step);
    others.push_back(std::move(row));
  }
  for (const Bar& bar : rank.comm) {
    Json row = BarJson(bar, origin);
    row.push_back(Rounded(run.LastLaunch(bar) - origin));
    comm.push_back(std::move(row));
  }
  for (const Span& span : rank.spans) {
    const int kind = static_cast<int>(span.kind);
    totals[kind] += span.end - span.begin;
    if (kind < static_cast<int>(SpanKind::kExposed)) continue;
    spans.push_back(
        {kind, Rounded(span.begin - origin), Rounded(span.end - origin)});
  }
  for (double& total : totals) total = Rounded(total);
  return {{"compute", std::move(compute)},
          {"comm", std::move(comm)},
          {"others", std::move(others)},
          {"spans", std::move(spans)},
          {"totals", totals},
          {"memory", Json::array()}};
}

Json SimulatedJson(const pipeline::SimulatedAction& at) {
  return {WordOf(at.action.kind), at.action.chunk, at.action.index,
          Rounded(at.begin), Rounded(at.end)};
}

}  // namespace

Json StepJson(const StepTimeline& step, const RunTimeline& run,
              const RunShape& shape) {
  Json ranks = Json::array(), path = Json::array();
  for (const RankTimeline& rank : step.ranks) {
    ranks.push_back(RankJson(rank, run, step.begin));
  }
  for (const PathPart& part : CriticalPath(step, run, shape)) {
    path.push_back({part.bar.rank, WordOf(part.bar), part.bar.chunk,
                    part.bar.index, Rounded(part.begin - step.begin),
                    Rounded(part.end - step.begin), Rounded(part.handover)});
  }
  return {{"step", step.step},
          {"length", Rounded(step.length())},
          {"ranks", std::move(ranks)},
          {"path", std::move(path)}};
}

void AddMemory(const RunTrace& trace, const StepTimeline& step, Json* json) {
  Json& ranks = (*json)["ranks"];
  // Bytes that each rank held when the step began; -1 if unknown.
  std::vector<std::int64_t> before(step.ranks.size(), -1);
  const auto add = [&](int rank, double at, std::int64_t bytes) {
    ranks[rank]["memory"].push_back({Rounded(at - step.begin), bytes});
  };
  std::vector<const MemorySample*> within;
  for (const MemorySample& sample : trace.memory) {
    if (sample.at < step.begin) before[sample.rank] = sample.bytes;
    if (sample.at >= step.begin && sample.at <= step.end) {
      within.push_back(&sample);
    }
  }
  for (std::size_t r = 0; r < before.size(); ++r) {
    if (before[r] >= 0) add(static_cast<int>(r), step.begin, before[r]);
  }
  for (const MemorySample* sample : within) {
    add(sample->rank, sample->at, sample->bytes);
  }
}

Json PlannedJson(const PlannedStep& planned) {
  const pipeline::SimulatedStep& step = planned.simulated;
  Json ranks = Json::array(), names = Json::array(), path = Json::array();
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    Json bars = Json::array();
    for (const pipeline::SimulatedAction& at : step.ranks[r].actions) {
      bars.push_back(SimulatedJson(at));
    }
    ranks.push_back(std::move(bars));
    names.push_back(absl::StrCat("pp ", r));
  }
  for (const pipeline::SimulatedAction& at : step.critical_path) {
    Json row = SimulatedJson(at);
    row.insert(row.begin(), at.rank);
    path.push_back(std::move(row));
  }
  return {{"name", planned.costs},     {"length", Rounded(step.seconds)},
          {"idle", step.bubble},       {"rank_names", std::move(names)},
          {"ranks", std::move(ranks)}, {"path", std::move(path)}};
}

Json ActionWords() {
  Json words = Json::object();
  for (const pipeline::ActionRule& rule : pipeline::ActionRules()) {
    words[std::string(rule.word)] = {std::string(rule.does), ColorOf(rule),
                                     CountedBy(rule.scope)};
  }
  return words;
}

Json SpanKindNames() {
  static const char* const kNames[kSpanKinds] = {"forward",
                                                 "backward",
                                                 "update",
                                                 "transfer",
                                                 "recorded step",
                                                 "exposed communication",
                                                 "waiting for an activation",
                                                 "waiting for a gradient",
                                                 "waiting for other ranks",
                                                 "waiting for data",
                                                 "done, others are not",
                                                 "between actions"};
  return kNames;
}

}  // namespace troupe::tools
