// The table of configuration keys: the one place that parser, --help,
// --print-config and docs/configuration.md are made from.
//
//   for (const ConfigKey& key : ConfigKeys()) {
//     key.name;                         // "train.global_batch_size"
//     FormatValue(key, config);         // "64", as TOML
//   }
//   const ConfigKey* key = FindKey("train.steps");
//   absl::Status s = SetInteger(*key, 100, config);

#ifndef TOOLS_TRAINER_CONFIG_KEYS_H_
#define TOOLS_TRAINER_CONFIG_KEYS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/trainer/config.h"

namespace troupe::tools {

// The field that a key sets; its type is the key's type.
using KeyField =
    std::variant<std::string& (*)(TrainerConfig&),
                 std::int64_t& (*)(TrainerConfig&), double& (*)(TrainerConfig&),
                 bool& (*)(TrainerConfig&),
                 std::vector<std::int64_t>& (*)(TrainerConfig&)>;

enum class KeyUnit {
  kPlain,
  kBytes,        // "25MiB" may be written
  kBytesOrAuto,  // and "auto"
};

// What a value may be; checked when it is set.
struct KeyRule {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  const char* choices = "";  // "lenet|mlp|linear"; of texts
  KeyUnit unit = KeyUnit::kPlain;
};

struct ConfigKey {
  const char* name;  // "section.key"
  KeyField field;
  KeyRule rule;
  const char* help;     // sentences
  const char* example;  // a value, as TOML

  absl::string_view section() const;
  absl::string_view key() const;  // without the section
  // "text", "integer", "number", "true or false", "list of integers", "size".
  absl::string_view type() const;
};

// In the order of the documentation; keys of a section stand together.
absl::Span<const ConfigKey> ConfigKeys();

// One line on each section, in the order of the keys.
struct ConfigSection {
  const char* name;
  const char* help;
};
absl::Span<const ConfigSection> ConfigSections();

// Null where there is none.
const ConfigKey* FindKey(absl::string_view name);

// The key of the table that `name`, "section.key", most likely means; empty
// where none is near.
std::string NearestKey(absl::string_view name);
std::string NearestSection(absl::string_view name);

// A value of the file or the command line, by its TOML type, into the field.
// Errors say what the value is and what is wanted, without the place.
using KeyValue = std::variant<std::string, std::int64_t, double, bool,
                              std::vector<std::int64_t>>;
absl::Status SetValue(const ConfigKey& key, const KeyValue& value,
                      TrainerConfig& config);
// From the text of the command line: texts need no quotes, lists no brackets.
absl::Status SetFromText(const ConfigKey& key, absl::string_view text,
                         TrainerConfig& config);

// The field's value as TOML: `"glyphs"`, `64`, `0.1`, `true`, `[120, 84]`,
// `"25MiB"`.
std::string FormatValue(const ConfigKey& key, const TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_KEYS_H_
