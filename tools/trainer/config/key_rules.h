// Limits that several configuration keys share, as the table of keys
// (config_keys.cc) writes them.
//
//   constexpr KeyRule steps = kFromZero;
//   constexpr KeyRule threads = {1, 1024};
//   constexpr KeyRule kind = OneOf([] {
//     return std::vector<std::string>{"lenet", "mlp"};
//   });
//   constexpr KeyRule bucket = Bytes(1, KeyUnit::kBytes);

#ifndef TOOLS_TRAINER_CONFIG_KEY_RULES_H_
#define TOOLS_TRAINER_CONFIG_KEY_RULES_H_

#include <string>
#include <vector>

#include "base/field_error.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {

inline constexpr double kCountMax = 1e15;
inline constexpr double kEpochsMax = 1e9;
inline constexpr double kIntMax = 2147483647;
// Limit on one axis of samples and layers, and on a batch. Their products,
// which CheckConfig() limits too, fit 64 bits.
inline constexpr double kExtentMax = 1e8;
inline constexpr double kBytesMax = 1e12;

inline constexpr KeyRule kAny;
inline constexpr KeyRule kFromZero{0, kCountMax};
inline constexpr KeyRule kFromOne{1, kCountMax};
inline constexpr KeyRule kExtent{1, kExtentMax};
inline constexpr KeyRule kExtentOrNone{0, kExtentMax};

inline constexpr KeyRule kNumberOrWord = [] {
  KeyRule rule;
  rule.unit = KeyUnit::kNumberOrWord;
  return rule;
}();

inline constexpr KeyRule kPath = [] {
  KeyRule rule;
  rule.unit = KeyUnit::kPath;
  return rule;
}();

constexpr KeyRule AtMost(double max) {
  KeyRule rule;
  rule.max = max;
  return rule;
}

constexpr KeyRule OneOf(std::vector<std::string> (*choices)()) {
  KeyRule rule;
  rule.choices = choices;
  return rule;
}

constexpr KeyRule Bytes(double min, KeyUnit unit) {
  KeyRule rule;
  rule.min = min;
  rule.max = kBytesMax;
  rule.unit = unit;
  return rule;
}

// For ConfigKey::copied_to.
template <auto... kFields>
std::vector<std::string> CopiedTo() {
  return {base::FieldName<kFields>()...};
}

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_KEY_RULES_H_
