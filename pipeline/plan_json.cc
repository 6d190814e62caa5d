#include "pipeline/plan_json.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "pipeline/plan_fields.h"

namespace troupe::pipeline {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Writes each field that it visits into an object, by the field's type.
class Writer {
 public:
  template <class T>
  void operator()(const PlanField& field, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (field.is_flag && !value) return;
    }
    if constexpr (std::is_same_v<T, std::string>) {
      if (field.is_flag && value.empty()) return;
    }
    if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::int64_t>) {
      if (field.is_flag && value == field.absent) return;
    }
    json_[field.name] = JsonOf(value);
  }
  void Flat(const std::optional<nn::LossScaleRule>& value) {
    const nn::LossScaleRule constant = {/*growth_interval=*/0, /*min=*/0};
    const nn::LossScaleRule rule = value.value_or(constant);
    VisitFields(*this, rule);
  }

  OrderedJson Take() { return std::move(json_); }

 private:
  static OrderedJson JsonOf(bool value) { return value; }
  static OrderedJson JsonOf(int value) { return value; }
  static OrderedJson JsonOf(std::int64_t value) { return value; }
  static OrderedJson JsonOf(double value) { return value; }
  static OrderedJson JsonOf(const std::string& value) { return value; }
  static OrderedJson JsonOf(nn::DType value) {
    return std::string(nn::DTypeName(value));
  }
  static OrderedJson JsonOf(const std::optional<nn::DType>& value) {
    return value ? JsonOf(*value) : "";
  }
  static OrderedJson JsonOf(const nn::Device& value) {
    return value.ToString();
  }
  static OrderedJson JsonOf(Dispatch value) {
    return value == Dispatch::kStrict;
  }
  static OrderedJson JsonOf(const StepTable& value) { return value.ToString(); }
  static OrderedJson JsonOf(const Mesh& value) { return JsonOf(value.axes()); }
  static OrderedJson JsonOf(const nn::Shape& value) {
    return JsonOf(
        std::vector<std::int64_t>(value.dims().begin(), value.dims().end()));
  }
  static OrderedJson JsonOf(const ParametersOf<const StagePlan>& value) {
    const StagePlan& stage = value.stage;
    OrderedJson list = OrderedJson::array();
    for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
      list.push_back(JsonOf(ParameterEntry{
          stage.parameters[i], stage.parameter_elems[i],
          stage.parameter_dtypes[i],
          stage.IsSplit(static_cast<int>(i)) ? stage.split_elems[i] : 0,
          stage.IsPartial(static_cast<int>(i)),
          stage.FirstPart(static_cast<int>(i)),
          stage.LastPart(static_cast<int>(i))}));
    }
    return list;
  }
  static OrderedJson JsonOf(const nn::ChoicesByDevice& value) {
    OrderedJson list = OrderedJson::array();
    for (const auto& [device, choices] : value) {
      DeviceAlgorithms entry = {device, {}};
      for (const auto& [key, choice] : choices) {
        entry.choices.push_back(key + " " + choice);
      }
      list.push_back(JsonOf(entry));
    }
    return list;
  }
  template <class T>
  static OrderedJson JsonOf(const std::vector<T>& values) {
    OrderedJson list = OrderedJson::array();
    for (const T& value : values) list.push_back(JsonOf(value));
    return list;
  }
  // A struct that VisitFields() has an overload for.
  template <class T>
  static OrderedJson JsonOf(const T& value) {
    Writer fields;
    VisitFields(fields, value);
    return fields.Take();
  }

  OrderedJson json_ = OrderedJson::object();
};

}  // namespace

std::string PlanToJson(const Plan& plan) {
  Writer writer;
  writer(Named("format"), std::string(kPlanFormat));
  VisitFields(writer, plan);
  // Letters that are no UTF-8 are replaced; dump() would throw otherwise.
  return writer.Take().dump(/*indent=*/1, ' ', /*ensure_ascii=*/false,
                            OrderedJson::error_handler_t::replace) +
         "\n";
}

std::uint64_t PlanHash(const Plan& plan) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : PlanToJson(plan)) {
    hash = (hash ^ byte) * 0x100000001b3;
  }
  return hash;
}

}  // namespace troupe::pipeline
