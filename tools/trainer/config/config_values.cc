#include <charconv>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/terminal/path_text.h"

namespace troupe::tools {
namespace {

using List = std::vector<std::int64_t>;
using NumberList = std::vector<double>;
using TextList = std::vector<std::string>;

// Value that "auto" sets for keys where a value below 0 means "auto".
constexpr std::int64_t kAutoBytes = -1;

struct Suffix {
  const char* text;
  std::int64_t bytes;
};
// Suffixes, the longest first, since "MiB" ends in "B".
constexpr Suffix kSuffixes[] = {
    {"GiB", std::int64_t{1} << 30},
    {"MiB", std::int64_t{1} << 20},
    {"KiB", std::int64_t{1} << 10},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"kB", 1'000},
    {"B", 1},
};

// Returns the shortest text that reads back as `value`.
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
  if (bytes < 0) return "\"auto\"";
  for (const Suffix& s : kSuffixes) {
    if (s.text[1] == 'i' && bytes >= s.bytes && bytes % s.bytes == 0) {
      return absl::StrCat("\"", bytes / s.bytes, s.text, "\"");
    }
  }
  return absl::StrCat(bytes);
}

// Formats a value, or an entry of a list.
struct ValueText {
  std::string operator()(const std::string& v) const { return Quoted(v); }
  std::string operator()(std::int64_t v) const { return absl::StrCat(v); }
  std::string operator()(double v) const { return FormatDouble(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const MixedList& v) const {
    std::vector<std::string> shown;
    for (const auto& entry : v) shown.push_back(std::visit(*this, entry));
    return absl::StrCat("[", absl::StrJoin(shown, ", "), "]");
  }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    std::vector<std::string> shown;
    for (const T& entry : v) shown.push_back((*this)(entry));
    return absl::StrCat("[", absl::StrJoin(shown, ", "), "]");
  }
};

// Converts a text that is a number to that number.
KeyValue AsNumber(const KeyValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  double number = 0;
  const bool is_number = text != nullptr && absl::SimpleAtod(*text, &number);
  return is_number ? KeyValue(number) : value;
}

std::string Shown(const KeyValue& value) {
  return std::visit(ValueText{}, value);
}

absl::Status Wrong(const ConfigKey& key, absl::string_view shown,
                   absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(
      key.name, " = ", shown, ": ", wanted, ", such as ", key.example));
}

absl::string_view Wanted(const ConfigKey& key, const KeyValue& value) {
  if (key.rule.unit == KeyUnit::kBytesOrAuto) {
    return "must be \"auto\" or a size in bytes";
  }
  if (key.rule.unit == KeyUnit::kBytes) return "must be a size in bytes";
  if (key.rule.unit == KeyUnit::kNumberOrWord) {
    return "must be a number or a text";
  }
  const bool is_number = std::holds_alternative<double>(value);
  if (key.field.type == KeyType::kInteger && is_number) {
    return "must be a whole number, without fraction or exponent";
  }
  constexpr absl::string_view kWanted[] = {
      "must be a text",
      "must be a whole number",
      "must be a number",
      "must be true or false",
      "must be a list of whole numbers",
      "must be a list of whole numbers and texts",
      "must be a list of numbers",
      "must be a list of texts"};
  return kWanted[static_cast<int>(key.field.type)];
}

// Parses "25MiB", or plain digits.
bool ParseBytes(absl::string_view text, std::int64_t& bytes) {
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

bool HasBytes(const ConfigKey& key) {
  return key.rule.unit == KeyUnit::kBytes ||
         key.rule.unit == KeyUnit::kBytesOrAuto;
}

// Converts `value` to the type of the key: an integer may be a number, a text a
// size, and a mixed list a list of numbers. Returns false if the types are
// incompatible.
bool Convert(const ConfigKey& key, KeyValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && HasBytes(key)) {
    std::int64_t bytes = 0;
    if (!ParseBytes(*text, bytes)) return false;
    value = bytes;
  }
  const bool is_number = std::holds_alternative<std::int64_t>(value) ||
                         std::holds_alternative<double>(value);
  if (is_number && key.rule.unit == KeyUnit::kNumberOrWord) {
    value = Shown(value);
  }
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer != nullptr && key.field.type == KeyType::kNumber) {
    value = static_cast<double>(*integer);
  }
  const auto* list = std::get_if<List>(&value);
  if (list != nullptr && key.field.type == KeyType::kMixedList) {
    value = MixedList(list->begin(), list->end());
  }
  if (list != nullptr && key.field.type == KeyType::kNumberList) {
    value = NumberList(list->begin(), list->end());
  } else if (list != nullptr && list->empty() &&
             key.field.type == KeyType::kTextList) {
    value = TextList();
  }
  const auto* mixed = std::get_if<MixedList>(&value);
  if (mixed != nullptr && key.field.type == KeyType::kTextList) {
    TextList texts;
    for (const auto& entry : *mixed) {
      if (const auto* each = std::get_if<std::string>(&entry)) {
        texts.push_back(*each);
      }
    }
    if (texts.size() == mixed->size()) value = std::move(texts);
  }
  return value.index() == static_cast<std::size_t>(key.field.type);
}

// Returns the error of a value of the right type; empty if it is valid.
struct RuleOf {
  const KeyRule& rule;

  std::string operator()(const std::string& value) const {
    if (rule.unit == KeyUnit::kPath) return WrongPath(value);
    if (rule.choices == nullptr) return "";
    const std::vector<std::string> known = rule.choices();
    if (absl::c_linear_search(known, value)) return "";
    return absl::StrCat("must be one of \"", absl::StrJoin(known, "\", \""),
                        "\"");
  }
  std::string operator()(bool) const { return ""; }
  std::string operator()(double value) const {
    // A NaN is outside any finite limit.
    if (!std::isinf(rule.min) && !(value >= rule.min)) {
      return absl::StrCat("must be at least ", rule.min);
    }
    if (!std::isinf(rule.max) && !(value <= rule.max)) {
      return absl::StrCat("must be at most ", rule.max);
    }
    return "";
  }
  std::string operator()(std::int64_t value) const {
    return (*this)(static_cast<double>(value));
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    for (const T& value : values) {
      const std::string wrong = (*this)(value);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  std::string operator()(const MixedList& values) const {
    for (const auto& value : values) {
      const std::string wrong = std::visit(*this, value);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
};

// Returns `text` without the quotes around it, if any.
absl::string_view Unquoted(absl::string_view text) {
  const bool quoted =
      text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Splits a list, in brackets or not. Returns false if one bracket is missing.
bool SplitList(absl::string_view text, std::vector<absl::string_view>& parts) {
  text = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "[") && !absl::ConsumeSuffix(&text, "]")) {
    return false;
  }
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return true;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    parts.push_back(absl::StripAsciiWhitespace(part));
  }
  return true;
}

bool ParseList(absl::string_view text, List& list) {
  std::vector<absl::string_view> parts;
  if (!SplitList(text, parts)) return false;
  for (absl::string_view part : parts) {
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(part, &value)) return false;
    list.push_back(value);
  }
  return true;
}

bool ParseNumberList(absl::string_view text, NumberList& list) {
  std::vector<absl::string_view> parts;
  if (!SplitList(text, parts)) return false;
  for (absl::string_view part : parts) {
    double value = 0;
    if (!absl::SimpleAtod(part, &value)) return false;
    list.push_back(value);
  }
  return true;
}

bool ParseTextList(absl::string_view text, TextList& list) {
  std::vector<absl::string_view> parts;
  if (!SplitList(text, parts)) return false;
  for (absl::string_view part : parts) {
    if (part.empty()) return false;
    list.emplace_back(std::string(Unquoted(part)));
  }
  return true;
}

// Parses a mixed list: an entry in quotes, or that is no integer, is a text.
bool ParseMixedList(absl::string_view text, MixedList& list) {
  std::vector<absl::string_view> parts;
  if (!SplitList(text, parts)) return false;
  for (absl::string_view part : parts) {
    std::int64_t value = 0;
    if (part.empty()) return false;
    if (absl::SimpleAtoi(part, &value)) {
      list.emplace_back(value);
    } else {
      list.emplace_back(std::string(Unquoted(part)));
    }
  }
  return true;
}

}  // namespace

absl::Status SetValue(const ConfigKey& key, const KeyValue& value,
                      TrainerConfig& config, absl::string_view written) {
  const auto* text = std::get_if<std::string>(&value);
  const bool has_auto = key.rule.unit == KeyUnit::kBytesOrAuto;
  if (has_auto && text != nullptr && *text == "auto") {
    return key.field.set(kAutoBytes, config);
  }
  const bool is_number = std::holds_alternative<std::int64_t>(value) ||
                         std::holds_alternative<double>(value);
  const std::string shown =
      is_number && !written.empty() ? std::string(written) : Shown(value);
  KeyValue converted = value;
  if (!Convert(key, converted)) return Wrong(key, shown, Wanted(key, value));
  const std::string wrong = std::visit(RuleOf{key.rule}, converted);
  if (!wrong.empty()) {
    if (key.rule.choices == nullptr) return Wrong(key, shown, wrong);
    return absl::InvalidArgumentError(
        absl::StrCat(key.name, " = ", shown, ": ", wrong));
  }
  const absl::Status status = key.field.set(converted, config);
  if (status.ok()) return status;
  return Wrong(key, shown, status.message());
}

absl::Status SetFromText(const ConfigKey& key, absl::string_view text,
                         TrainerConfig& config) {
  KeyValue value = std::string(Unquoted(text));
  std::int64_t integer = 0;
  double number = 0;
  List list;
  MixedList mixed;
  NumberList numbers;
  TextList texts;
  if (key.field.type == KeyType::kText) return SetValue(key, value, config);
  if (text == "true" || text == "false") {
    value = text == "true";
  } else if (absl::SimpleAtoi(text, &integer)) {
    value = integer;
  } else if (absl::SimpleAtod(text, &number)) {
    value = number;
  }
  // A single number becomes a list of one.
  if (key.field.type == KeyType::kList && ParseList(text, list)) value = list;
  if (key.field.type == KeyType::kMixedList && ParseMixedList(text, mixed)) {
    value = mixed;
  }
  if (key.field.type == KeyType::kNumberList &&
      ParseNumberList(text, numbers)) {
    value = numbers;
  }
  if (key.field.type == KeyType::kTextList && ParseTextList(text, texts)) {
    value = texts;
  }
  return SetValue(key, value, config, text);
}

bool IsDefault(const LoadedConfig& loaded, const LoadedConfig& defaults,
               absl::string_view name) {
  const ConfigKey& key = *FindKey(name);
  return FormatValue(key, loaded.config) == FormatValue(key, defaults.config);
}

std::string FormatValue(const ConfigKey& key, const TrainerConfig& config) {
  const KeyValue value = key.field.get(config);
  if (key.rule.unit == KeyUnit::kNumberOrWord) return Shown(AsNumber(value));
  if (!HasBytes(key)) return Shown(value);
  return FormatBytes(std::get<std::int64_t>(value));
}

}  // namespace troupe::tools
