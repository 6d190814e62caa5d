// PlanFromJson: a text that nobody vouches for becomes a plan, or an error that
// names the field.

#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "nn/kernels/choice_cache.h"
#include "pipeline/plan_json.h"

namespace troupe::pipeline {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr int kIntMax = std::numeric_limits<int>::max();

absl::Status Wrong(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", path, " ", what));
}

// Brackets within each other cost memory before anything is looked at.
absl::Status CheckDepth(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      if (++depth <= kPlanDepthMax) continue;
      return Wrong("the text", absl::StrCat("has more than ", kPlanDepthMax,
                                            " brackets within each other"));
    } else if (!quoted && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return absl::OkStatus();
}

// An integer of [min, max].
template <typename Int>
absl::Status ReadInt(const Json& json, const std::string& path,
                     std::int64_t min, std::int64_t max, Int& value) {
  const bool small =
      json.is_number_integer() &&
      !(json.is_number_unsigned() &&
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(kInt64Max));
  const std::int64_t read = small ? json.get<std::int64_t>() : 0;
  if (!small || read < min || read > max) {
    return Wrong(path, absl::StrCat("is no integer from ", min, " to ", max));
  }
  value = static_cast<Int>(read);
  return absl::OkStatus();
}

absl::Status ReadText(const Json& json, const std::string& path,
                      std::size_t size_max, std::string& value) {
  if (!json.is_string()) return Wrong(path, "is no text");
  value = json.get<std::string>();
  if (value.size() <= size_max) return absl::OkStatus();
  return Wrong(path, absl::StrCat("has more than ", size_max, " letters"));
}

// What wrote a text.
enum class Version { kThis, kThisOrEarlier };

// Takes the fields of an object one by one. The first error stays.
class Object {
 public:
  Object(const Json& json, std::string path, Version version = Version::kThis)
      : json_(json), path_(std::move(path)), version_(version) {
    if (!json.is_object()) Fail("", "is no object");
  }

  // Whether to read a field that the first version did not have; false where
  // an earlier one wrote none.
  bool HasLater(const char* name) const {
    return version_ == Version::kThis || json_.contains(name);
  }

  template <typename Int>
  void Integer(const char* name, std::int64_t min, std::int64_t max,
               Int& value) {
    const Json* field = Field(name);
    if (field != nullptr) {
      Keep(ReadInt(*field, PathOf(name), min, max, value));
    }
  }
  void Number(const char* name, double& value) {
    const Json* field = Field(name);
    if (field == nullptr) return;
    if (!field->is_number()) return Fail(name, "is no number");
    value = field->get<double>();
  }
  void Bool(const char* name, bool& value) {
    const Json* field = Field(name);
    if (field == nullptr) return;
    if (!field->is_boolean()) return Fail(name, "is neither true nor false");
    value = field->get<bool>();
  }
  void Text(const char* name, std::size_t size_max, std::string& value) {
    const Json* field = Field(name);
    if (field == nullptr) return;
    Keep(ReadText(*field, PathOf(name), size_max, value));
  }
  // Calls `read` with each entry and its path.
  template <typename Read>
  void List(const char* name, std::size_t size_max, Read read) {
    const Json* field = Field(name);
    if (field == nullptr) return;
    if (!field->is_array()) return Fail(name, "is no list");
    if (field->size() > size_max) {
      return Fail(name, absl::StrCat("has more than ", size_max, " entries"));
    }
    for (std::size_t i = 0; i < field->size() && status_.ok(); ++i) {
      Keep(read((*field)[i], absl::StrCat(PathOf(name), "[", i, "]")));
    }
  }
  void Integers(const char* name, std::int64_t min, std::vector<int>& values) {
    List(name, kPlanBytesMax, [&](const Json& json, const std::string& path) {
      return ReadInt(json, path, min, kIntMax, values.emplace_back());
    });
  }
  void Texts(const char* name, std::size_t count_max, std::size_t size_max,
             std::vector<std::string>& values) {
    List(name, count_max, [&](const Json& json, const std::string& path) {
      return ReadText(json, path, size_max, values.emplace_back());
    });
  }
  void Shape(const char* name, nn::Shape& shape) {
    std::vector<std::int64_t> dims;
    List(name, nn::Shape::kMaxRank,
         [&](const Json& json, const std::string& path) {
           return ReadInt(json, path, 0, kInt64Max, dims.emplace_back());
         });
    if (!status_.ok()) return;
    if (!nn::Shape::Fits(dims)) return Fail(name, "is larger than shapes are");
    shape = nn::Shape(absl::Span<const std::int64_t>(dims));
  }
  void Table(const char* name, const ReductionOptions& options,
             StepTable& table) {
    std::string text;
    Text(name, kPlanBytesMax, text);
    if (!status_.ok()) return;
    absl::StatusOr<StepTable> parsed = ParseTable(text, options);
    if (!parsed.ok()) {
      return Keep(
          Wrong(absl::StrCat(PathOf(name), ":"), parsed.status().message()));
    }
    table = *std::move(parsed);
  }

  void Fail(absl::string_view name, absl::string_view what) {
    Keep(Wrong(
        name.empty() ? (path_.empty() ? "the text" : path_) : PathOf(name),
        what));
  }
  void Keep(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  // The first error, a field that is not known, or ok.
  absl::Status Finish() {
    if (!status_.ok()) return status_;
    for (const auto& [key, value] : json_.items()) {
      if (taken_.count(key) > 0) continue;
      Fail("", absl::StrCat("has the unknown field \"",
                            absl::CHexEscape(key.substr(0, 80)), "\""));
    }
    return status_;
  }

 private:
  std::string PathOf(absl::string_view name) const {
    return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
  }
  // Null after an error.
  const Json* Field(const char* name) {
    taken_.insert(name);
    if (!status_.ok()) return nullptr;
    const auto found = json_.find(name);
    if (found != json_.end()) return &*found;
    Fail(name, "is missing");
    return nullptr;
  }

  const Json& json_;
  const std::string path_;
  const Version version_;
  absl::Status status_;
  std::set<std::string> taken_;
};

// A text that `parse` understands.
template <typename T, typename Parse>
void ReadName(Object& object, const char* name, Parse parse, T& value) {
  std::string text;
  object.Text(name, kPlanNameMax, text);
  const absl::StatusOr<T> parsed = parse(text);
  if (!parsed.ok()) {
    const std::string what = absl::CHexEscape(parsed.status().message());
    return object.Fail(name, absl::StrCat("is wrong: ", what.substr(0, 200)));
  }
  value = *parsed;
}

void ReadSpec(Object& object, nn::TensorSpec& spec) {
  object.Shape("shape", spec.shape);
  ReadName(object, "dtype", nn::ParseDType, spec.dtype);
}

// What comes beside a stage's input; the first version knew of no such thing.
void ReadMoreInputs(Object& object, StagePlan& stage) {
  if (object.HasLater("more_inputs")) {
    object.List("more_inputs", kStageTensorsMax,
                [&](const Json& entry, const std::string& at) {
                  Object input(entry, at);
                  ReadSpec(input, stage.more_inputs.emplace_back());
                  return input.Finish();
                });
  }
  if (object.HasLater("skips")) {
    object.List("skips", kStageTensorsMax,
                [&](const Json& entry, const std::string& at) {
                  Object skip(entry, at);
                  SkipPlan& read = stage.skips.emplace_back();
                  skip.Text("name", kPlanNameMax, read.name);
                  ReadSpec(skip, read.spec);
                  return skip.Finish();
                });
  }
}

absl::Status ReadStage(const Json& json, const std::string& path,
                       Version version, StagePlan& stage) {
  Object object(json, path, version);
  object.Integer("pp", 0, kMeshRanksMax, stage.place.pp);
  object.Integer("chunk", 0, kChunksMax - 1, stage.place.chunk);
  object.Shape("input", stage.input);
  ReadName(object, "input_dtype", nn::ParseDType, stage.input_dtype);
  ReadMoreInputs(object, stage);
  object.Shape("output", stage.output);
  ReadName(object, "output_dtype", nn::ParseDType, stage.output_dtype);
  object.Number("flops", stage.flops);
  if (object.HasLater("layer_axes")) {
    object.Texts("layer_axes", kMeshAxesMax, kAxisNameMax, stage.layer_axes);
  }
  object.List("parameters", kPlanBytesMax,
              [&](const Json& entry, const std::string& at) {
                Object parameter(entry, at);
                parameter.Text("name", kPlanNameMax,
                               stage.parameters.emplace_back());
                parameter.Integer("elems", 0, kInt64Max,
                                  stage.parameter_elems.emplace_back());
                ReadName(parameter, "dtype", nn::ParseDType,
                         stage.parameter_dtypes.emplace_back());
                return parameter.Finish();
              });
  object.List("buckets", kActionIndexMax,
              [&](const Json& entry, const std::string& at) {
                if (!entry.is_array()) return Wrong(at, "is no list");
                std::vector<int>& bucket = stage.buckets.emplace_back();
                for (std::size_t i = 0; i < entry.size(); ++i) {
                  TROUPE_RETURN_IF_ERROR(
                      ReadInt(entry[i], absl::StrCat(at, "[", i, "]"), 0,
                              kIntMax, bucket.emplace_back()));
                }
                return absl::OkStatus();
              });
  object.Integers("frozen", 0, stage.frozen);
  return object.Finish();
}

absl::Status ReadMesh(Object& object, Mesh& mesh) {
  std::vector<Axis> axes;
  object.List("mesh", kMeshAxesMax,
              [&](const Json& entry, const std::string& at) {
                Object axis(entry, at);
                axes.emplace_back();
                axis.Text("name", kAxisNameMax, axes.back().name);
                axis.Integer("size", 1, kMeshRanksMax, axes.back().size);
                return axis.Finish();
              });
  TROUPE_ASSIGN_OR_RETURN(mesh, Mesh::Create(std::move(axes)));
  return absl::OkStatus();
}

// One kind of device, and its choices as "key choice".
absl::Status ReadAlgorithms(const Json& entry, const std::string& at,
                            nn::ChoicesByDevice& algorithms) {
  using Cache = nn::ChoiceCache;
  Object fields(entry, at);
  std::string device;
  fields.Text("device", Cache::kContextBytesMax, device);
  std::vector<std::string> lines;
  fields.Texts("choices", Cache::kEntriesMax,
               Cache::kKeyBytesMax + 1 + Cache::kChoiceBytesMax, lines);
  TROUPE_RETURN_IF_ERROR(fields.Finish());
  const auto [chosen, is_new] = algorithms.try_emplace(device);
  if (!is_new) return Wrong(at, "is of the device of another entry");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> words =
        absl::StrSplit(lines[i], absl::MaxSplits(' ', 1));
    if (!chosen->second.insert(words).second) {
      return Wrong(absl::StrCat(at, ".choices[", i, "]"),
                   "is of the key of another one");
    }
  }
  return absl::OkStatus();
}

// An empty text is that of an unset one.
absl::StatusOr<std::optional<nn::DType>> ParseOptionalDType(
    const std::string& text) {
  if (text.empty()) return std::optional<nn::DType>();
  TROUPE_ASSIGN_OR_RETURN(const nn::DType dtype, nn::ParseDType(text));
  return std::optional<nn::DType>(dtype);
}

// An interval of 0 is that of a scale that never changes.
void ReadDynamicLossScale(Object& object, Plan& plan) {
  nn::LossScaleRule rule;
  rule.growth_interval = 0;
  if (object.HasLater("loss_scale_growth_interval")) {
    object.Integer("loss_scale_growth_interval", 0, kInt64Max,
                   rule.growth_interval);
  }
  if (object.HasLater("loss_scale_min")) {
    object.Number("loss_scale_min", rule.min);
  }
  if (rule.growth_interval > 0) plan.dynamic_loss_scale = rule;
}

// What the first version did not have.
void ReadLater(Object& object, Plan& plan) {
  if (object.HasLater("reduction_dtype")) {
    ReadName(object, "reduction_dtype", ParseOptionalDType,
             plan.reduction_dtype);
  }
  if (object.HasLater("data_dtype")) {
    ReadName(object, "data_dtype", nn::ParseDType, plan.data_dtype);
  } else if (nn::IsFloating(plan.dtype)) {
    plan.data_dtype = plan.dtype;
  }
  if (object.HasLater("loss_scale")) {
    object.Number("loss_scale", plan.loss_scale);
  }
  ReadDynamicLossScale(object, plan);
  if (object.HasLater("cross_step")) {
    object.Bool("cross_step", plan.cross_step);
  }
  bool strict_order = false;
  if (object.HasLater("strict_order")) {
    object.Bool("strict_order", strict_order);
  }
  plan.dispatch = strict_order ? Dispatch::kStrict : Dispatch::kArrival;
  if (object.HasLater("algorithms")) {
    object.List("algorithms", kPlanAlgorithmDevicesMax,
                [&](const Json& entry, const std::string& at) {
                  return ReadAlgorithms(entry, at, plan.algorithms);
                });
  }
}

absl::Status ReadPlan(const Json& json, Version version, Plan& plan) {
  Object object(json, "", version);
  std::string format;
  object.Text("format", kPlanNameMax, format);
  if (format != kPlanFormat) {
    object.Fail("format", absl::StrCat("is not \"", kPlanFormat, "\""));
  }
  object.Keep(ReadMesh(object, plan.mesh));
  object.Texts("cuts", kPlanStagesMax, kPlanNameMax, plan.cuts);
  object.Integer("global_batch_size", 1, kInt64Max, plan.global_batch_size);
  object.Integer("micro_batch_size", 1, kInt64Max, plan.micro_batch_size);
  object.Integer("micro_batches", 1, kActionIndexMax, plan.micro_batches);
  object.Integer("threads_per_rank", 1, kIntMax, plan.threads_per_rank);
  object.Integer("inline_bytes", -1, kInt64Max, plan.inline_bytes);
  object.Bool("fuse_updates", plan.fuse_updates);
  object.Bool("update_needs_all_buckets", plan.update_needs_all_buckets);
  ReadName(object, "dtype", nn::ParseDType, plan.dtype);
  ReadName(object, "grad_dtype", ParseOptionalDType, plan.grad_dtype);
  ReadLater(object, plan);
  ReadName(object, "device", nn::Device::Parse, plan.device);
  object.Text("kernels", kPlanNameMax, plan.kernels);
  object.Text("reduction_order", kPlanNameMax, plan.reduction_order);
  object.List(
      "stages", kPlanStagesMax, [&](const Json& entry, const std::string& at) {
        return ReadStage(entry, at, version, plan.stages.emplace_back());
      });
  ReductionOptions options;
  options.update_needs_all_buckets = plan.update_needs_all_buckets;
  object.List("ranks", kPlanStagesMax,
              [&](const Json& entry, const std::string& at) {
                RankPlan& rank = plan.ranks.emplace_back();
                Object fields(entry, at);
                fields.Table("train", options, rank.train);
                fields.Table("evaluate", options, rank.evaluate);
                fields.Bool("reduce_inline", rank.reduce_inline);
                return fields.Finish();
              });
  return object.Finish();
}

absl::StatusOr<Plan> Parse(absl::string_view text, Version version) {
  if (text.size() > kPlanBytesMax) {
    return Wrong("the text",
                 absl::StrCat("has more than ", kPlanBytesMax, " bytes"));
  }
  TROUPE_RETURN_IF_ERROR(CheckDepth(text));
  const Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  if (json.is_discarded()) return Wrong("the text", "is not valid JSON");
  Plan plan;
  TROUPE_RETURN_IF_ERROR(ReadPlan(json, version, plan));
  TROUPE_RETURN_IF_ERROR(plan.Check());
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanFromJson(absl::string_view text) {
  return Parse(text, Version::kThis);
}

absl::StatusOr<Plan> PlanFromEarlierJson(absl::string_view text) {
  return Parse(text, Version::kThisOrEarlier);
}

}  // namespace troupe::pipeline
