#include "tools/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "nlohmann/json.hpp"
#include "tools/report/planned_step.h"
#include "tools/report/run_shape.h"
#include "tools/report/step_json.h"
#include "tools/report/step_timeline.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::json;

// Returns the columns of at most kPagePointsMax of the rows, evenly spaced; the
// last row is always included.
Json CurvesJson(const std::vector<MetricRow>& rows) {
  const std::size_t stride =
      (rows.size() + kPagePointsMax - 1) / kPagePointsMax;
  std::vector<const MetricRow*> shown;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_due = (rows.size() - 1 - i) % stride == 0;
    if (is_due) shown.push_back(&rows[i]);
  }
  Json json = {{"step", Json::array()}};
  for (const MetricRow* row : shown) json["step"].push_back(row->step);
  for (const MetricField& curve : kMetricFields) {
    Json values = Json::array();
    bool any = false;
    for (const MetricRow* row : shown) {
      const std::optional<double>& value = row->*curve.field;
      any = any || value.has_value();
      values.push_back(value ? Json(*value) : Json());
    }
    if (any) json[curve.name] = std::move(values);
  }
  return json;
}

std::optional<double> MedianOf(const std::vector<MetricRow>& rows,
                               std::optional<double> MetricRow::*field) {
  std::vector<double> values;
  for (const MetricRow& row : rows) {
    if (row.*field) values.push_back(*(row.*field));
  }
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string Share(double share) {
  return absl::StrFormat("%.1f %%", 100 * share);
}

std::string Milliseconds(double ms) {
  return absl::StrFormat(ms < 10 ? "%.3g ms" : "%.1f ms", ms);
}

class PageBuilder {
 public:
  explicit PageBuilder(const RunRecord& run)
      : run_(run), shape_(run.plan), timeline_(run.trace, shape_) {}

  absl::StatusOr<Json> Build() {
    page_["title"] = absl::StrCat(run_.facts.model, " on ", run_.facts.data);
    page_["notes"] = run_.notes;
    page_["words"] = ActionWords();
    page_["span_kinds"] = SpanKindNames();
    AddRankNames();
    AddSteps();
    page_["plans"] = Json::array();
    if (!run_.trace.bars.empty()) TROUPE_RETURN_IF_ERROR(AddPlans());
    page_["metrics"] = {{"train", CurvesJson(run_.metrics.train)},
                        {"evaluation", CurvesJson(run_.metrics.evaluation)}};
    AddFacts();
    return std::move(page_);
  }

 private:
  void AddRankNames() {
    Json names = Json::array();
    const pipeline::Mesh& mesh = run_.plan.mesh;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      std::string name = absl::StrCat("rank ", rank);
      if (mesh.dp() > 1 && mesh.pp() > 1) {
        absl::StrAppend(&name, " (dp ", mesh.CoordsOf(rank).dp, " pp ",
                        mesh.CoordsOf(rank).pp, ")");
      }
      names.push_back(std::move(name));
    }
    page_["rank_names"] = std::move(names);
  }

  void AddSteps() {
    Json steps = Json::array();
    std::size_t bars = 0;
    for (const std::int64_t number : timeline_.steps()) {
      const StepTimeline step = timeline_.Step(number);
      for (const RankTimeline& rank : step.ranks) {
        bars += rank.compute.size() + rank.comm.size();
      }
      if (bars > kPageBarsMax && !steps.empty()) {
        page_["notes"].push_back(
            absl::StrCat("Steps from ", number, " on are left out: together ",
                         "they have more than ", kPageBarsMax, " bars."));
        break;
      }
      Json json = StepJson(step, timeline_, shape_);
      AddMemory(run_.trace, step, &json);
      steps.push_back(std::move(json));
      AddTotals(step);
    }
    page_["steps"] = std::move(steps);
  }

  // Adds to the totals in the heading, over all steps that are shown.
  void AddTotals(const StepTimeline& step) {
    ++shown_;
    exposed_ += step.Share(SpanKind::kExposed);
    for (int kind = static_cast<int>(SpanKind::kExposed); kind < kSpanKinds;
         ++kind) {
      idle_ += step.Share(static_cast<SpanKind>(kind));
    }
    lengths_ += step.length();
  }

  absl::Status AddPlans() {
    TROUPE_ASSIGN_OR_RETURN(
        const std::vector<PlannedStep> planned,
        PlanSteps(run_.plan, run_.facts.costs, run_.trace, shape_));
    for (const PlannedStep& each : planned) {
      page_["plans"].push_back(PlannedJson(each));
    }
    return absl::OkStatus();
  }

  void AddFacts() {
    const RunFacts& facts = run_.facts;
    const pipeline::Plan& plan = run_.plan;
    const int ranks = plan.mesh.size();
    Add("model", absl::StrCat(facts.model, ", ", FormatCount(facts.parameters),
                              " parameters, ", facts.precision));
    Add("mesh", absl::StrCat(ranks, ranks == 1 ? " rank (" : " ranks (",
                             plan.mesh.ToString(), ")"));
    if (plan.stages.size() > 1) Add("schedule", facts.schedule);
    Add("step", absl::StrCat(FormatCount(plan.global_batch_size), " samples, ",
                             plan.micro_batches,
                             plan.micro_batches == 1 ? " micro-batch of "
                                                     : " micro-batches of ",
                             plan.micro_batch_size));
    Add("optimizer", facts.optimizer);
    Add("kernels", plan.kernels);
    Add("started", absl::StrCat(facts.started, ", Troupe ", facts.version));
    AddTiles();
  }

  void AddTiles() {
    tiles_ = Json::array();
    if (shown_ > 0) {
      AddTile("step time", Milliseconds(lengths_ / shown_ / 1000),
              absl::StrCat("mean of ", shown_,
                           shown_ == 1 ? " recorded step" : " recorded steps"));
      AddTile("idle", Share(idle_ / shown_),
              "of the ranks' time: waiting and exposed communication");
      AddTile("exposed communication", Share(exposed_ / shown_),
              "of the ranks' time");
    }
    if (const auto rate =
            MedianOf(run_.metrics.train, &MetricRow::samples_per_s)) {
      AddTile("samples/s", FormatCount(std::llround(std::max(*rate, 0.0))),
              "median over the run");
    }
    double peak = 0;
    for (const MetricRow& row : run_.metrics.train) {
      peak = std::max(peak, row.peak_bytes.value_or(0));
    }
    if (peak > 0) {
      AddTile("peak memory",
              base::FormatBytes(static_cast<std::uint64_t>(peak)),
              run_.facts.memory_expected > 0
                  ? absl::StrCat("of a rank; expected ",
                                 base::FormatBytes(static_cast<std::uint64_t>(
                                     run_.facts.memory_expected)))
                  : "of a rank");
    }
    if (!run_.metrics.train.empty()) {
      const MetricRow& last = run_.metrics.train.back();
      if (last.loss) {
        AddTile("loss", FormatLoss(*last.loss),
                absl::StrCat("after step ", FormatCount(last.step), " of ",
                             FormatCount(run_.facts.steps)));
      }
    }
    page_["tiles"] = tiles_;
  }

  void Add(const char* name, const std::string& value) {
    page_["facts"].push_back({name, value});
  }
  void AddTile(const char* name, const std::string& value,
               const std::string& what) {
    tiles_.push_back({name, value, what});
  }

  const RunRecord& run_;
  const RunShape shape_;
  const RunTimeline timeline_;
  Json page_, tiles_;
  int shown_ = 0;  // number of steps shown
  // Sums over the steps shown.
  double idle_ = 0, exposed_ = 0, lengths_ = 0;
};

}  // namespace

absl::StatusOr<std::string> ReportData(const RunRecord& run) {
  TROUPE_ASSIGN_OR_RETURN(const Json page, PageBuilder(run).Build());
  const std::string text = page.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                                     Json::error_handler_t::replace);
  return absl::StrReplaceAll(
      text, {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

}  // namespace troupe::tools
