// The table of configuration keys. A key is one entry, and all that is said of
// it comes from there: parser, checks, suggestions, --help, --print-config and
// docs/configuration.md.
//
//   for (const ConfigKey& key : ConfigKeys()) {
//     std::cout << key.name << " = " << FormatValue(key, config) << "\n";
//   }
//   const ConfigKey* key = FindKey("train.steps");
//   TROUPE_RETURN_IF_ERROR(SetValue(*key, std::int64_t{100}, config));
//
// An entry holds the key's name, the field that it sets, its limits, its
// meaning and an example. It holds no default: that is the field's own. To add
// a key, add an entry (tools/README.md).

#ifndef TOOLS_TRAINER_CONFIG_CONFIG_KEYS_H_
#define TOOLS_TRAINER_CONFIG_CONFIG_KEYS_H_

#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_fields.h"

namespace troupe::tools {

enum class KeyUnit {
  kPlain,
  kBytes,         // "25MiB" may be written
  kBytesOrAuto,   // and "auto", which is any value below 0
  kNumberOrWord,  // a text, or a number in place of its text
};

// What a value may be; checked when it is set. Limits that a lower layer checks
// itself are not repeated here: its errors name the field, and so the key.
struct KeyRule {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  // The texts that are known; null where any text will do.
  std::vector<std::string> (*choices)() = nullptr;
  KeyUnit unit = KeyUnit::kPlain;
};

struct ConfigKey {
  const char* name;  // "section.key"
  KeyField field;
  KeyRule rule;
  const char* help;     // sentences
  const char* example;  // a value, as TOML
  // The names of other fields that get the same value later on, for the errors
  // of those who check it there. Null: none.
  std::vector<std::string> (*copied_to)() = nullptr;

  absl::string_view section() const;
  absl::string_view key() const;  // without the section
  // "text", "integer", "number", "true or false", "list of integers", "list of
  // integers and texts", "list of numbers", "list of texts", "size".
  absl::string_view type() const;
};

// All keys, in the order of the documentation. Those of a section stand
// together.
absl::Span<const ConfigKey> ConfigKeys();

// One line on each section, in the order of the keys.
struct ConfigSection {
  const char* name;
  const char* help;
};
absl::Span<const ConfigSection> ConfigSections();

// Returns null where no key has this name.
const ConfigKey* FindKey(absl::string_view name);

// The key of the table that `name`, "section.key", most likely means; empty
// where none is near.
std::string NearestKey(absl::string_view name);
std::string NearestSection(absl::string_view name);

// What to write instead of a key that other frameworks have and this one, on
// purpose, has not; empty for other names. `name` may lack its section.
std::string KeyAdvice(absl::string_view name);

// Puts a value of the file or the command line into the field. `written` is how
// a number stands there, "5.0", for messages; empty: as FormatValue() has it.
// Errors say what the value is and what is wanted, without the place. After an
// error the field is as it was.
absl::Status SetValue(const ConfigKey& key, const KeyValue& value,
                      TrainerConfig& config, absl::string_view written = "");
// The same from the text of the command line, where texts need no quotes and
// lists no brackets.
absl::Status SetFromText(const ConfigKey& key, absl::string_view text,
                         TrainerConfig& config);

// Whether the key has the value that it has in `defaults`, whoever set it.
bool IsDefault(const LoadedConfig& loaded, const LoadedConfig& defaults,
               absl::string_view key);

// The field's value as TOML: `"glyphs"`, `64`, `0.1`, `true`, `[120, 84]`,
// `"25MiB"`.
std::string FormatValue(const ConfigKey& key, const TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_CONFIG_KEYS_H_
