// PlanFromJson: turns a text from any source into a plan, or an error that
// names the field.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "pipeline/plan_fields.h"
#include "pipeline/plan_json.h"
#include "pipeline/plan_object.h"

namespace troupe::pipeline {
namespace {

using Json = nlohmann::json;

// An empty text stands for an unset dtype.
absl::StatusOr<std::optional<nn::DType>> ParseOptionalDType(
    const std::string& text) {
  if (text.empty()) return std::optional<nn::DType>();
  TROUPE_ASSIGN_OR_RETURN(const nn::DType dtype, nn::ParseDType(text));
  return std::optional<nn::DType>(dtype);
}

// Reads a value by its type. `path` names it in errors; `field` has its limits.
class Reader {
 public:
  // `plan`: the one that is read, in the order of VisitFields().
  Reader(PlanVersion version, const Plan& plan)
      : version_(version), plan_(plan) {}

  absl::Status ReadPlan(const Json& json, Plan& plan) const {
    PlanObject object(json, "", version_);
    std::string format;
    const Fields fields(*this, object);
    fields(Named("format"), format);
    if (format != kPlanFormat) {
      object.Keep(
          PlanError("format", absl::StrCat("is not \"", kPlanFormat, "\"")));
    }
    VisitFields(fields, plan);
    if (!object.HasLater("data_dtype") && nn::IsFloating(plan.dtype)) {
      plan.data_dtype = plan.dtype;
    }
    return object.Finish();
  }

 private:
  using Path = const std::string&;
  using Field = const PlanField&;

  // Visitor that reads each field of an object.
  class Fields {
   public:
    Fields(const Reader& reader, PlanObject& object)
        : reader_(reader), object_(object) {}

    template <class T>
    void operator()(const PlanField& field, T& value) const {
      if (field.is_later && !object_.HasLater(field.name)) return;
      if (field.is_flag && !object_.Has(field.name)) return;
      const Json* const json = object_.Take(field.name);
      if (json == nullptr) return;
      object_.Keep(
          reader_.Read(*json, object_.PathOf(field.name), field, value));
    }
    void Flat(std::optional<nn::LossScaleRule>& value) const {
      nn::LossScaleRule rule;
      rule.growth_interval = 0;
      VisitFields(*this, rule);
      if (rule.growth_interval > 0) value = rule;
    }

   private:
    const Reader& reader_;
    PlanObject& object_;
  };

  template <class Int>
  absl::Status ReadInt(const Json& json, Path path, Field field,
                       Int& value) const {
    constexpr std::int64_t kLargest = std::numeric_limits<Int>::max();
    constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
    const std::int64_t max = std::min(field.max, kLargest);
    const bool small =
        json.is_number_integer() &&
        !(json.is_number_unsigned() &&
          json.get<std::uint64_t>() > static_cast<std::uint64_t>(kInt64Max));
    const std::int64_t read = small ? json.get<std::int64_t>() : 0;
    if (!small || read < field.min || read > max) {
      return PlanError(
          path, absl::StrCat("is no integer from ", field.min, " to ", max));
    }
    value = static_cast<Int>(read);
    return absl::OkStatus();
  }

  // Reads a text that `parse` understands.
  template <class T, class Parse>
  absl::Status ReadParsed(const Json& json, Path path, Field field, Parse parse,
                          T& value) const {
    std::string text;
    TROUPE_RETURN_IF_ERROR(Read(json, path, field, text));
    const absl::StatusOr<T> parsed = parse(text);
    if (parsed.ok()) {
      value = *parsed;
      return absl::OkStatus();
    }
    const std::string what = absl::CHexEscape(parsed.status().message());
    return PlanError(path, absl::StrCat("is wrong: ", what.substr(0, 200)));
  }

  absl::Status Read(const Json& json, Path path, Field field,
                    int& value) const {
    return ReadInt(json, path, field, value);
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    std::int64_t& value) const {
    return ReadInt(json, path, field, value);
  }
  absl::Status Read(const Json& json, Path path, Field, double& value) const {
    if (!json.is_number()) return PlanError(path, "is no number");
    value = json.get<double>();
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field, bool& value) const {
    if (!json.is_boolean()) {
      return PlanError(path, "is neither true nor false");
    }
    value = json.get<bool>();
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    std::string& value) const {
    if (!json.is_string()) return PlanError(path, "is no text");
    value = json.get<std::string>();
    if (value.size() <= field.letters_max) return absl::OkStatus();
    return PlanError(
        path, absl::StrCat("has more than ", field.letters_max, " letters"));
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    nn::DType& value) const {
    return ReadParsed(json, path, field, nn::ParseDType, value);
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    std::optional<nn::DType>& value) const {
    return ReadParsed(json, path, field, ParseOptionalDType, value);
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    nn::Device& value) const {
    return ReadParsed(json, path, field, nn::Device::Parse, value);
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    Dispatch& value) const {
    bool strict = false;
    TROUPE_RETURN_IF_ERROR(Read(json, path, field, strict));
    value = strict ? Dispatch::kStrict : Dispatch::kArrival;
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    nn::Shape& value) const {
    std::vector<std::int64_t> dims;
    TROUPE_RETURN_IF_ERROR(
        Read(json, path, field.Entries(nn::Shape::kMaxRank), dims));
    if (!nn::Shape::Fits(dims)) {
      return PlanError(path, "is larger than shapes are");
    }
    value = nn::Shape(absl::Span<const std::int64_t>(dims));
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    StepTable& value) const {
    std::string text;
    TROUPE_RETURN_IF_ERROR(Read(json, path, field, text));
    ReductionOptions options;
    options.update_needs_all_buckets = plan_.update_needs_all_buckets;
    options.each_micro_batch = plan_.ReducesEachMicroBatch();
    absl::StatusOr<StepTable> table = ParseTable(text, options);
    if (!table.ok()) {
      return PlanError(absl::StrCat(path, ":"), table.status().message());
    }
    value = *std::move(table);
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    Mesh& value) const {
    std::vector<Axis> axes;
    TROUPE_RETURN_IF_ERROR(Read(json, path, field, axes));
    TROUPE_ASSIGN_OR_RETURN(value, Mesh::Create(std::move(axes)));
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    const ParametersOf<StagePlan>& value) const {
    std::vector<ParameterEntry> entries;
    TROUPE_RETURN_IF_ERROR(Read(json, path, field, entries));
    for (ParameterEntry& entry : entries) {
      value.stage.parameters.push_back(std::move(entry.name));
      value.stage.parameter_elems.push_back(entry.elems);
      value.stage.parameter_dtypes.push_back(entry.dtype);
      const std::size_t i = value.stage.parameters.size() - 1;
      if (entry.split_elems != 0) {
        value.stage.split_elems.resize(entries.size());
        value.stage.split_elems[i] = entry.split_elems;
      }
      if (entry.partial_grad) {
        value.stage.partial_grads.resize(entries.size());
        value.stage.partial_grads[i] = true;
      }
      if (entry.last_part == 0) continue;
      value.stage.first_parts.resize(entries.size());
      value.stage.last_parts.resize(entries.size());
      value.stage.first_parts[i] = entry.first_part;
      value.stage.last_parts[i] = entry.last_part;
    }
    return absl::OkStatus();
  }
  absl::Status Read(const Json& json, Path path, Field field,
                    nn::ChoicesByDevice& value) const {
    std::vector<DeviceAlgorithms> entries;
    TROUPE_RETURN_IF_ERROR(Read(json, path, field, entries));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string at = absl::StrCat(path, "[", i, "]");
      const auto [chosen, is_new] = value.try_emplace(entries[i].device);
      if (!is_new) return PlanError(at, "is of the device of another entry");
      const std::vector<std::string>& lines = entries[i].choices;
      for (std::size_t k = 0; k < lines.size(); ++k) {
        const std::pair<std::string, std::string> words =
            absl::StrSplit(lines[k], absl::MaxSplits(' ', 1));
        if (chosen->second.insert(words).second) continue;
        return PlanError(absl::StrCat(at, ".choices[", k, "]"),
                         "is of the key of another one");
      }
    }
    return absl::OkStatus();
  }
  template <class T>
  absl::Status Read(const Json& json, Path path, Field field,
                    std::vector<T>& values) const {
    if (!json.is_array()) return PlanError(path, "is no list");
    if (json.size() > field.entries_max) {
      return PlanError(
          path, absl::StrCat("has more than ", field.entries_max, " entries"));
    }
    const PlanField entry = field.Entries(kPlanBytesMax);
    for (std::size_t i = 0; i < json.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(Read(json[i], absl::StrCat(path, "[", i, "]"),
                                  entry, values.emplace_back()));
    }
    return absl::OkStatus();
  }
  // Reads a struct that VisitFields() has an overload for.
  template <class T>
  absl::Status Read(const Json& json, Path path, Field, T& value) const {
    PlanObject object(json, path, version_);
    VisitFields(Fields(*this, object), value);
    return object.Finish();
  }

  const PlanVersion version_;
  const Plan& plan_;
};

absl::StatusOr<Plan> Parse(absl::string_view text, PlanVersion version) {
  if (text.size() > kPlanBytesMax) {
    return PlanError("the text",
                     absl::StrCat("has more than ", kPlanBytesMax, " bytes"));
  }
  TROUPE_RETURN_IF_ERROR(CheckPlanDepth(text));
  const Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  if (json.is_discarded()) return PlanError("the text", "is not valid JSON");
  Plan plan;
  TROUPE_RETURN_IF_ERROR(Reader(version, plan).ReadPlan(json, plan));
  TROUPE_RETURN_IF_ERROR(plan.Check());
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanFromJson(absl::string_view text) {
  return Parse(text, PlanVersion::kThis);
}

absl::StatusOr<Plan> PlanFromEarlierJson(absl::string_view text) {
  return Parse(text, PlanVersion::kThisOrEarlier);
}

}  // namespace troupe::pipeline
