// Access from a configuration key to the field that it sets, anywhere in a
// TrainerConfig and of any integer, list or duration type.
//
//   using C = TrainerConfig;
//   KeyField steps = Field<&C::job, &actors::JobSpec::steps>();
//   steps.type;                                 // KeyType::kInteger
//   std::get<std::int64_t>(steps.get(config));  // 0
//   TROUPE_RETURN_IF_ERROR(steps.set(std::int64_t{10}, config));
//   steps.name();                               // "JobSpec.steps"
//
// A field of another type needs a specialisation of FieldAs.

#ifndef TOOLS_TRAINER_CONFIG_CONFIG_FIELDS_H_
#define TOOLS_TRAINER_CONFIG_CONFIG_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "actors/hooks/hooks.h"
#include "actors/spec/bucket_reduction.h"
#include "base/field_error.h"
#include "nn/optim/lr_schedule.h"
#include "nn/tensor/device.h"
#include "nn/tensor/shape.h"
#include "pipeline/partition.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/loss_scale.h"

namespace troupe::tools {

// A list in which each entry is either an integer or a text.
using MixedList = std::vector<std::variant<std::int64_t, std::string>>;

// A value in one of the types of TOML.
using KeyValue = std::variant<std::string, std::int64_t, double, bool,
                              std::vector<std::int64_t>, MixedList,
                              std::vector<double>, std::vector<std::string>>;

// The alternatives of KeyValue, in their order.
enum class KeyType {
  kText,
  kInteger,
  kNumber,
  kBool,
  kList,
  kMixedList,
  kNumberList,
  kTextList,
};

struct KeyField {
  KeyType type;
  KeyValue (*get)(const TrainerConfig&);
  // `value` holds the alternative of `type`. Errors name the expected values.
  absl::Status (*set)(const KeyValue& value, TrainerConfig&);
  // Returns the name of the field in errors of lower layers
  // (base/field_error.h).
  std::string (*name)();
};

// Converts a field of type T to an alternative of KeyValue, and back.
template <typename T, typename = void>
struct FieldAs;

template <typename T>
struct SameFieldAs {
  using Value = T;
  static Value Get(const T& field) { return field; }
  static absl::Status Set(const Value& value, T& field) {
    field = value;
    return absl::OkStatus();
  }
};
template <>
struct FieldAs<std::string> : SameFieldAs<std::string> {};
template <>
struct FieldAs<double> : SameFieldAs<double> {};
template <>
struct FieldAs<bool> : SameFieldAs<bool> {};

// The limits of a key keep its values within the type of its field.
template <typename T>
struct FieldAs<T, std::enable_if_t<std::is_integral_v<T>>> {
  using Value = std::int64_t;
  static Value Get(T field) { return static_cast<std::int64_t>(field); }
  static absl::Status Set(Value value, T& field) {
    field = static_cast<T>(value);
    return absl::OkStatus();
  }
};

template <typename T>
struct FieldAs<std::vector<T>> {
  using Value = std::vector<std::int64_t>;
  static Value Get(const std::vector<T>& field) {
    return Value(field.begin(), field.end());
  }
  static absl::Status Set(const Value& value, std::vector<T>& field) {
    field.assign(value.begin(), value.end());
    return absl::OkStatus();
  }
};

template <>
struct FieldAs<std::vector<double>> : SameFieldAs<std::vector<double>> {};
template <>
struct FieldAs<std::vector<std::string>>
    : SameFieldAs<std::vector<std::string>> {};

template <>
struct FieldAs<std::vector<pipeline::Cut>> {
  using Value = MixedList;
  static Value Get(const std::vector<pipeline::Cut>& field) {
    Value value;
    for (const pipeline::Cut& cut : field) {
      std::visit([&](const auto& at) { value.emplace_back(at); }, cut.at);
    }
    return value;
  }
  static absl::Status Set(const Value& value,
                          std::vector<pipeline::Cut>& field) {
    field.clear();
    for (const auto& entry : value) {
      const auto* number = std::get_if<std::int64_t>(&entry);
      field.push_back(number != nullptr
                          ? pipeline::Cut(static_cast<int>(*number))
                          : pipeline::Cut(std::get<std::string>(entry)));
    }
    return absl::OkStatus();
  }
};

template <>
struct FieldAs<nn::Shape> {
  using Value = std::vector<std::int64_t>;
  static Value Get(const nn::Shape& field) {
    return Value(field.dims().begin(), field.dims().end());
  }
  static absl::Status Set(const Value& value, nn::Shape& field) {
    if (!nn::Shape::Fits(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("must have at most ", nn::Shape::kMaxRank,
                       " numbers, and a product below 2^63"));
    }
    field = nn::Shape(value);
    return absl::OkStatus();
  }
};

template <>
struct FieldAs<absl::Duration> {
  using Value = double;  // seconds
  static Value Get(absl::Duration field) {
    return absl::ToDoubleSeconds(field);
  }
  static absl::Status Set(Value value, absl::Duration& field) {
    field = absl::Seconds(value);
    return absl::OkStatus();
  }
};

template <>
struct FieldAs<nn::Device> {
  using Value = std::string;
  static Value Get(const nn::Device& field) { return field.ToString(); }
  static absl::Status Set(const Value& value, nn::Device& field) {
    absl::StatusOr<nn::Device> device = nn::Device::Parse(value);
    if (device.ok()) field = *device;
    return device.status();
  }
};

template <>
struct FieldAs<nn::DType> {
  using Value = std::string;
  static Value Get(nn::DType field) { return Value(nn::DTypeName(field)); }
  static absl::Status Set(const Value& value, nn::DType& field) {
    absl::StatusOr<nn::DType> dtype = nn::ParseDType(value);
    if (dtype.ok()) field = *dtype;
    return dtype.status();
  }
};

template <>
struct FieldAs<nn::LrSchedule::Kind> {
  using Value = std::string;
  static Value Get(nn::LrSchedule::Kind field) {
    return Value(nn::LrScheduleName(field));
  }
  static absl::Status Set(const Value& value, nn::LrSchedule::Kind& field) {
    absl::StatusOr<nn::LrSchedule::Kind> kind = nn::ParseLrSchedule(value);
    if (kind.ok()) field = *kind;
    return kind.status();
  }
};

// An unset value is "auto".
template <>
struct FieldAs<std::optional<nn::DType>> {
  using Value = std::string;
  static Value Get(const std::optional<nn::DType>& field) {
    return field ? Value(nn::DTypeName(*field)) : "auto";
  }
  static absl::Status Set(const Value& value, std::optional<nn::DType>& field) {
    if (value == "auto") {
      field.reset();
      return absl::OkStatus();
    }
    return FieldAs<nn::DType>::Set(value, field.emplace());
  }
};

template <>
struct FieldAs<actors::CommunicationHook> {
  using Value = std::string;
  static Value Get(const actors::CommunicationHook& field) {
    return field.name.empty() ? actors::kNoHook : field.name;
  }
  static absl::Status Set(const Value& value,
                          actors::CommunicationHook& field) {
    absl::StatusOr<actors::CommunicationHook> hook = actors::HookNamed(value);
    if (hook.ok()) field = *std::move(hook);
    return hook.status();
  }
};

template <>
struct FieldAs<LossScaleText> {
  using Value = std::string;
  static Value Get(const LossScaleText& field) { return field.text; }
  static absl::Status Set(const Value& value, LossScaleText& field) {
    const absl::Status status = CheckLossScale(value);
    if (status.ok()) field.text = value;
    return status;
  }
};

template <typename Value>
constexpr KeyType KeyTypeOf() {
  return std::is_same_v<Value, std::string>           ? KeyType::kText
         : std::is_same_v<Value, std::int64_t>        ? KeyType::kInteger
         : std::is_same_v<Value, double>              ? KeyType::kNumber
         : std::is_same_v<Value, bool>                ? KeyType::kBool
         : std::is_same_v<Value, MixedList>           ? KeyType::kMixedList
         : std::is_same_v<Value, std::vector<double>> ? KeyType::kNumberList
         : std::is_same_v<Value, std::vector<std::string>> ? KeyType::kTextList
                                                           : KeyType::kList;
}

namespace internal {

template <auto kFirst, auto... kRest, typename Struct>
auto& FieldAt(Struct& from) {
  if constexpr (sizeof...(kRest) == 0) {
    return from.*kFirst;
  } else {
    return FieldAt<kRest...>(from.*kFirst);
  }
}

template <auto kFirst, auto... kRest>
std::string LastName() {
  if constexpr (sizeof...(kRest) == 0) {
    return base::FieldName<kFirst>();
  } else {
    return LastName<kRest...>();
  }
}

}  // namespace internal

// Returns the field at the end of a path of members that begins in
// TrainerConfig.
template <auto... kPath>
constexpr KeyField Field() {
  using T = std::decay_t<decltype(internal::FieldAt<kPath...>(
      std::declval<TrainerConfig&>()))>;
  using As = FieldAs<T>;
  using Value = typename As::Value;
  return {
      KeyTypeOf<Value>(),
      [](const TrainerConfig& config) {
        return KeyValue(As::Get(internal::FieldAt<kPath...>(config)));
      },
      [](const KeyValue& value, TrainerConfig& config) {
        return As::Set(std::get<Value>(value),
                       internal::FieldAt<kPath...>(config));
      },
      [] { return internal::LastName<kPath...>(); },
  };
}

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_CONFIG_FIELDS_H_
