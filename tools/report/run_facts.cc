#include "tools/report/run_facts.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tools/report/json_text.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct TextField {
  const char* name;
  std::string RunFacts::*field;
};

constexpr TextField kTexts[] = {
    {"version", &RunFacts::version},     {"model", &RunFacts::model},
    {"data", &RunFacts::data},           {"schedule", &RunFacts::schedule},
    {"optimizer", &RunFacts::optimizer}, {"precision", &RunFacts::precision},
    {"started", &RunFacts::started},
};

struct IntegerField {
  const char* name;
  std::int64_t RunFacts::*field;
};

constexpr IntegerField kIntegers[] = {
    {"parameters", &RunFacts::parameters},
    {"first_step", &RunFacts::first_step},
    {"steps", &RunFacts::steps},
};

absl::StatusOr<double> CostAt(const Json& stage, const char* field) {
  TROUPE_ASSIGN_OR_RETURN(const double value, NumberAt(stage, field));
  if (value >= 0) return value;
  return WrongPart(field, "is below 0");
}

absl::StatusOr<pipeline::StageCosts> StageFromJson(const Json& json) {
  if (!json.is_object()) {
    return WrongPart("costs", "has a stage that is no object");
  }
  pipeline::StageCosts stage;
  TROUPE_ASSIGN_OR_RETURN(stage.forward, CostAt(json, "forward"));
  TROUPE_ASSIGN_OR_RETURN(stage.inputs, CostAt(json, "inputs"));
  TROUPE_ASSIGN_OR_RETURN(stage.weights, CostAt(json, "weights"));
  TROUPE_ASSIGN_OR_RETURN(stage.activation, CostAt(json, "activation"));
  return stage;
}

}  // namespace

std::string FactsToJson(const RunFacts& facts) {
  Json json = {{"format", kFactsFormat}};
  for (const TextField& text : kTexts) json[text.name] = facts.*text.field;
  for (const IntegerField& integer : kIntegers) {
    json[integer.name] = facts.*integer.field;
  }
  json["memory_expected"] = facts.memory_expected;
  Json costs = Json::array();
  for (const pipeline::StageCosts& stage : facts.costs.stages) {
    costs.push_back({{"forward", stage.forward},
                     {"inputs", stage.inputs},
                     {"weights", stage.weights},
                     {"activation", stage.activation}});
  }
  json["costs"] = std::move(costs);
  return json.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<RunFacts> FactsFromJson(absl::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  if (!json.is_object()) {
    return WrongPart("line 1", "is no JSON object");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string format,
                          TextAt(json, "format", kFactTextMax));
  if (format != kFactsFormat) {
    return WrongPart("format", absl::StrCat("is not \"", kFactsFormat, "\""));
  }
  RunFacts facts;
  for (const TextField& field : kTexts) {
    TROUPE_ASSIGN_OR_RETURN(facts.*field.field,
                            TextAt(json, field.name, kFactTextMax));
  }
  for (const IntegerField& field : kIntegers) {
    TROUPE_ASSIGN_OR_RETURN(facts.*field.field,
                            IntegerAt(json, field.name, 0, kMost));
  }
  TROUPE_ASSIGN_OR_RETURN(facts.memory_expected,
                          CostAt(json, "memory_expected"));
  const auto costs = json.find("costs");
  if (costs == json.end() || !costs->is_array() ||
      costs->size() > kFactStagesMax) {
    return WrongPart("costs",
                     absl::StrCat("is no list of at most ", kFactStagesMax));
  }
  for (const Json& stage : *costs) {
    TROUPE_ASSIGN_OR_RETURN(const pipeline::StageCosts read,
                            StageFromJson(stage));
    facts.costs.stages.push_back(read);
  }
  return facts;
}

}  // namespace troupe::tools
