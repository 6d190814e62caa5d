#include "actors/setup/settings.h"

#include <cstddef>
#include <memory>
#include <set>
#include <typeinfo>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/field_error.h"
#include "base/type_name.h"
#include "nn/modules/dropout.h"

namespace troupe::actors {
namespace {

constexpr char kModulePrefix[] = "module ";
// Prefix of the keys that describe the model.
constexpr char kModelPrefix[] = "model.";

bool IsOfModules(absl::string_view key) {
  return absl::StartsWith(key, kModulePrefix);
}

// "nn::ReLU"
std::string KindOf(const nn::Module& module) {
  const std::string name = base::TypeName(typeid(module));
  return std::string(absl::StripPrefix(name, "troupe::"));
}

// Adds the modules below `module`, whose path is `path`. A path without a name
// has the number of the child.
void AddModules(const nn::Module& module, const std::string& path,
                Settings& settings) {
  if (dynamic_cast<const nn::Dropout*>(&module) != nullptr) return;
  settings[absl::StrCat(kModulePrefix, path.empty() ? "(root)" : path)] =
      KindOf(module);
  std::size_t number = 0;
  for (const auto& child : module.children()) {
    const std::string name =
        child->name().empty() ? absl::StrCat("#", number) : child->name();
    ++number;
    AddModules(*child, path.empty() ? name : absl::StrCat(path, ".", name),
               settings);
  }
}

Settings ModulesOf(const nn::ModelFactory& factory) {
  Settings settings;
  const std::unique_ptr<nn::Module> model = factory();
  if (model != nullptr) AddModules(*model, "", settings);
  return settings;
}

struct Change {
  std::string key, then, now;

  std::string ToString() const {
    return absl::StrCat(key, ": ", then, ", ", now);
  }
};

std::vector<Change> ChangesOf(const Settings& then, const Settings& now) {
  std::vector<Change> changes;
  if (then.empty()) return changes;
  Settings both = then;
  both.insert(now.begin(), now.end());
  for (const auto& [key, unused] : both) {
    const auto old = then.find(key);
    const auto present = now.find(key);
    const bool in_both = old != then.end() && present != now.end();
    if (!in_both && !IsOfModules(key)) continue;
    if (in_both && old->second == present->second) continue;
    changes.push_back({key, old == then.end() ? "none" : old->second,
                       present == now.end() ? "none" : present->second});
  }
  return changes;
}

std::string Refusal(const Checkpoint& checkpoint, const Change& change) {
  return absl::StrCat(checkpoint.path(), " was written by a run whose ",
                      change.key, " was ", change.then, "; this job's is ",
                      change.now);
}

// Returns whether a change of the key changes what the tensors mean.
bool IsFixed(const std::string& key, const std::set<std::string>& fixed) {
  return IsOfModules(key) || fixed.count(key) > 0;
}

}  // namespace

Settings SettingsOf(const JobSpec& spec) {
  Settings settings = ModulesOf(spec.model);
  settings.insert(spec.settings.begin(), spec.settings.end());
  return settings;
}

absl::StatusOr<std::vector<std::string>> CompareSettings(
    const JobSpec& spec, const Checkpoint& checkpoint) {
  using Options = CheckpointOptions;
  const Options& options = spec.checkpoint;
  const bool allowed = options.allow_changed || options.allow_missing ||
                       options.allow_unexpected;
  std::vector<std::string> lines;
  for (const Change& change :
       ChangesOf(checkpoint.state().settings, SettingsOf(spec))) {
    if (!allowed && IsFixed(change.key, spec.fixed_settings)) {
      return base::FieldError<&Options::allow_changed>(absl::StrCat(
          Refusal(checkpoint, change), "; go on with the same one, or set ",
          base::FieldName<&Options::allow_changed>(),
          " = true to train these tensors as another model"));
    }
    lines.push_back(change.ToString());
  }
  return lines;
}

absl::Status CheckSameModel(const JobSpec& spec, const Checkpoint& checkpoint) {
  for (const Change& change :
       ChangesOf(checkpoint.state().settings, SettingsOf(spec))) {
    const bool of_model =
        IsOfModules(change.key) || absl::StartsWith(change.key, kModelPrefix);
    if (!of_model || !IsFixed(change.key, spec.fixed_settings)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        Refusal(checkpoint, change), "; take the model that it was saved of"));
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
