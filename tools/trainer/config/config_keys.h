// The table of configuration keys. A key is one entry; parser, checks,
// suggestions, --help, --print-config and docs/configuration.md all use it.
//
//   for (const ConfigKey& key : ConfigKeys()) {
//     std::cout << key.name << " = " << FormatValue(key, config) << "\n";
//   }
//   const ConfigKey* key = FindKey("train.steps");
//   TROUPE_RETURN_IF_ERROR(SetValue(*key, std::int64_t{100}, config));
//
// An entry holds the key's name, the field that it sets, its limits, its
// meaning and an example. Its default is that of the field itself. To add
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
  kPath,          // a path of a file or folder (path_text.h), or empty
};

// Limits on a value, checked when it is set. Limits that a lower layer checks
// are not repeated here: its errors name the field, and so the key.
struct KeyRule {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  // Returns the allowed texts; null: any text is allowed.
  std::vector<std::string> (*choices)() = nullptr;
  KeyUnit unit = KeyUnit::kPlain;
};

struct ConfigKey {
  const char* name;  // "section.key"
  KeyField field;
  KeyRule rule;
  const char* help;     // sentences
  const char* example;  // a value, as TOML
  // Returns the names of other fields that later get the same value, so that
  // errors of the layers that check those fields find this key. Null: none.
  std::vector<std::string> (*copied_to)() = nullptr;

  absl::string_view section() const;
  absl::string_view key() const;  // without the section
  // "text", "integer", "number", "true or false", "list of integers", "list of
  // integers and texts", "list of numbers", "list of texts", "size".
  absl::string_view type() const;
  // Returns the accepted values, for people to read: the texts, or the type and
  // the limits of the rule. `"mean", "sum"`, `integer, 1 to 1024`, `size`.
  std::string Values() const;
};

// All keys, in the order of the documentation. The keys of a section are
// contiguous.
absl::Span<const ConfigKey> ConfigKeys();

// One line on each section, in the order of the keys.
struct ConfigSection {
  const char* name;
  const char* help;
};
absl::Span<const ConfigSection> ConfigSections();

// Returns null if no key has this name.
const ConfigKey* FindKey(absl::string_view name);

// Returns the key of the table that `name`, "section.key", most likely means;
// empty if no key is similar.
std::string NearestKey(absl::string_view name);
std::string NearestSection(absl::string_view name);

// Returns what to write instead of a key that other frameworks have but this
// one deliberately lacks; empty for other names. `name` may lack its section.
std::string KeyAdvice(absl::string_view name);

// Sets the field to a value of the file or the command line. `written` is the
// text of a number there, "5.0", for messages; empty: as FormatValue() writes
// it. Errors name the value and the allowed ones, without the place. An error
// leaves the field unchanged.
absl::Status SetValue(const ConfigKey& key, const KeyValue& value,
                      TrainerConfig& config, absl::string_view written = "");
// The same from a text of the command line, where texts need no quotes and
// lists no brackets.
absl::Status SetFromText(const ConfigKey& key, absl::string_view text,
                         TrainerConfig& config);

// Whether the key has the same value as in `defaults`, whether set or not.
bool IsDefault(const LoadedConfig& loaded, const LoadedConfig& defaults,
               absl::string_view key);

// Returns the field's value as TOML: `"glyphs"`, `64`, `0.1`, `true`, `[120,
// 84]`, `"25MiB"`.
std::string FormatValue(const ConfigKey& key, const TrainerConfig& config);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_CONFIG_KEYS_H_
