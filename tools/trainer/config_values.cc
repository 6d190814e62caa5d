#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/trainer/config_keys.h"

namespace troupe::tools {
namespace {

using List = std::vector<std::int64_t>;

struct Suffix {
  const char* text;
  std::int64_t bytes;
};
// Longest first: "MiB" ends in "B".
constexpr Suffix kSuffixes[] = {
    {"GiB", std::int64_t{1} << 30},
    {"MiB", std::int64_t{1} << 20},
    {"KiB", std::int64_t{1} << 10},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"kB", 1'000},
    {"B", 1},
};

// The shortest text that reads back as `value`.
std::string FormatDouble(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&quoted, "\\u00", absl::Hex(c, absl::kZeroPad2));
      continue;
    }
    quoted += c;
  }
  return quoted + "\"";
}

std::string FormatBytes(std::int64_t bytes) {
  if (bytes == kAutoBytes) return "\"auto\"";
  for (const Suffix& s : kSuffixes) {
    if (s.text[1] == 'i' && bytes >= s.bytes && bytes % s.bytes == 0) {
      return absl::StrCat("\"", bytes / s.bytes, s.text, "\"");
    }
  }
  return absl::StrCat(bytes);
}

std::string Shown(const KeyValue& value) {
  struct Visitor {
    std::string operator()(const std::string& v) const { return Quoted(v); }
    std::string operator()(std::int64_t v) const { return absl::StrCat(v); }
    std::string operator()(double v) const { return FormatDouble(v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const List& v) const {
      return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
    }
  };
  return std::visit(Visitor{}, value);
}

absl::Status Wrong(const ConfigKey& key, absl::string_view shown,
                   absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      key.name, " = ", shown, ": ", wanted, ", such as ", key.example));
}

absl::string_view Wanted(const ConfigKey& key) {
  if (key.rule.unit == KeyUnit::kBytesOrAuto) {
    return "must be \"auto\" or a size in bytes";
  }
  if (key.rule.unit == KeyUnit::kBytes) return "must be a size in bytes";
  constexpr absl::string_view kWanted[] = {
      "must be a text", "must be a whole number", "must be a number",
      "must be true or false", "must be a list of whole numbers"};
  return kWanted[key.field.index()];
}

absl::Status CheckRange(const ConfigKey& key, double value,
                        absl::string_view shown) {
  // Written so that NaN is outside.
  if (!(value >= key.rule.min)) {
    return Wrong(key, shown, absl::StrCat("must be at least ", key.rule.min));
  }
  if (!(value <= key.rule.max)) {
    return Wrong(key, shown, absl::StrCat("must be at most ", key.rule.max));
  }
  return absl::OkStatus();
}

// "25MiB", "auto" where the unit has it, or plain digits.
bool ParseBytes(const ConfigKey& key, absl::string_view text,
                std::int64_t& bytes) {
  if (text == "auto" && key.rule.unit == KeyUnit::kBytesOrAuto) {
    bytes = kAutoBytes;
    return true;
  }
  std::int64_t unit = 1;
  for (const Suffix& s : kSuffixes) {
    if (absl::ConsumeSuffix(&text, s.text)) {
      unit = s.bytes;
      break;
    }
  }
  text = absl::StripAsciiWhitespace(text);
  return absl::SimpleAtoi(text, &bytes) && bytes >= 0 &&
         !__builtin_mul_overflow(bytes, unit, &bytes);
}

// How each type of field takes a value; false where the types do not go
// together.
struct Converter {
  const ConfigKey& key;
  const KeyValue& value;

  bool To(std::string& field) const { return Same(field); }
  bool To(bool& field) const { return Same(field); }
  bool To(List& field) const { return Same(field); }
  bool To(std::int64_t& field) const {
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && key.rule.unit != KeyUnit::kPlain) {
      return ParseBytes(key, *text, field);
    }
    return Same(field);
  }
  bool To(double& field) const {
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (integer == nullptr) return Same(field);
    field = static_cast<double>(*integer);
    return true;
  }

  template <typename T>
  bool Same(T& field) const {
    const T* same = std::get_if<T>(&value);
    if (same != nullptr) field = *same;
    return same != nullptr;
  }
};

absl::Status CheckRule(const ConfigKey& key, const std::string& value) {
  const absl::string_view choices = key.rule.choices;
  if (choices.empty()) return absl::OkStatus();
  const std::vector<std::string> known = absl::StrSplit(choices, '|');
  for (const std::string& choice : known) {
    if (value == choice) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key.name, " = ", Quoted(value), ": must be one of \"",
                   absl::StrJoin(known, "\", \""), "\""));
}
absl::Status CheckRule(const ConfigKey&, bool) { return absl::OkStatus(); }
absl::Status CheckRule(const ConfigKey& key, double value) {
  return CheckRange(key, value, FormatDouble(value));
}
absl::Status CheckRule(const ConfigKey& key, std::int64_t value) {
  if (value == kAutoBytes && key.rule.unit == KeyUnit::kBytesOrAuto) {
    return absl::OkStatus();
  }
  return CheckRange(key, static_cast<double>(value), absl::StrCat(value));
}
absl::Status CheckRule(const ConfigKey& key, const List& values) {
  for (std::int64_t v : values) {
    const absl::Status status =
        CheckRange(key, static_cast<double>(v), Shown(values));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool ParseList(absl::string_view text, List& list) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "[") && !absl::ConsumeSuffix(&text, "]")) {
    return false;
  }
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return true;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(part, &value)) return false;
    list.push_back(value);
  }
  return true;
}

}  // namespace

absl::Status SetValue(const ConfigKey& key, const KeyValue& value,
                      TrainerConfig& config) {
  return std::visit(
      [&](auto field_of) {
        auto parsed = field_of(config);
        if (!Converter{key, value}.To(parsed)) {
          return Wrong(key, Shown(value), Wanted(key));
        }
        absl::Status status = CheckRule(key, parsed);
        if (status.ok()) field_of(config) = std::move(parsed);
        return status;
      },
      key.field);
}

absl::Status SetFromText(const ConfigKey& key, absl::string_view text,
                         TrainerConfig& config) {
  const absl::string_view inner =
      text.size() >= 2 && text.front() == '"' && text.back() == '"'
          ? text.substr(1, text.size() - 2)
          : text;
  KeyValue value = std::string(inner);
  std::int64_t integer = 0;
  double number = 0;
  List list;
  if (std::holds_alternative<std::string& (*)(TrainerConfig&)>(key.field)) {
    return SetValue(key, value, config);
  }
  if (text == "true" || text == "false") {
    value = text == "true";
  } else if (absl::SimpleAtoi(text, &integer)) {
    value = integer;
  } else if (absl::SimpleAtod(text, &number)) {
    value = number;
  }
  // One number is a list of one.
  const bool wants_list =
      std::holds_alternative<List& (*)(TrainerConfig&)>(key.field);
  if (wants_list && ParseList(text, list)) value = list;
  return SetValue(key, value, config);
}

std::string FormatValue(const ConfigKey& key, const TrainerConfig& config) {
  return std::visit(
      [&](auto field_of) {
        // Fields are reached through a pointer that may also write.
        const auto& value = field_of(const_cast<TrainerConfig&>(config));
        if constexpr (std::is_same_v<decltype(value), const std::int64_t&>) {
          if (key.rule.unit != KeyUnit::kPlain) return FormatBytes(value);
        }
        return Shown(KeyValue(value));
      },
      key.field);
}

}  // namespace troupe::tools
