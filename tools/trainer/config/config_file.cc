// The only file that includes toml++.

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/config_keys.h"
#include "tools/trainer/config/data_keys.h"
#include "tools/trainer/config/optimizer_kinds.h"
#include "tools/trainer/config/pipeline_options.h"
#include "tools/trainer/config/precision.h"
#include "tools/trainer/deepspeed/deepspeed_config.h"

#define TOML_EXCEPTIONS 0
#include "toml++/toml.h"

namespace troupe::tools {
namespace {

constexpr std::int64_t kFileBytesMax = 1 << 20;

// Section that may be a text in place of a table: mesh = "auto".
constexpr char kMeshSection[] = "mesh";

// Keys that need checkpoint.dir (CheckConfig()).
constexpr const char* kCheckpointKeys[] = {
    "checkpoint.resume", "checkpoint.every", "checkpoint.keep_best",
    "checkpoint.replace"};

absl::Status At(absl::string_view place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

// Returns the key, or the most helpful error.
absl::StatusOr<const ConfigKey*> Lookup(const std::string& name,
                                        const std::string& place) {
  const ConfigKey* key = FindKey(name);
  if (key != nullptr) return key;
  const std::string advice = KeyAdvice(name);
  if (!advice.empty()) return At(place, advice);
  const std::string nearest = NearestKey(name);
  return At(place,
            absl::StrCat("unknown key ", name, "; ",
                         nearest.empty()
                             ? "run \"trainer train --help\" for a list"
                             : absl::StrCat("did you mean ", nearest, "?")));
}

// A list of numbers, one of which is no integer.
std::optional<KeyValue> NumberListOf(const toml::array& array) {
  std::vector<double> numbers;
  for (const toml::node& item : array) {
    const std::optional<double> number = item.value<double>();
    if (!item.is_number() || !number) return std::nullopt;
    numbers.push_back(*number);
  }
  return KeyValue(std::move(numbers));
}

// A list of integers, of integers and texts, or of numbers.
std::optional<KeyValue> ListOf(const toml::array& array) {
  std::vector<std::int64_t> integers;
  MixedList mixed;
  for (const toml::node& item : array) {
    if (const auto* v = item.as_integer()) {
      integers.push_back(v->get());
      mixed.emplace_back(v->get());
    } else if (const auto* v = item.as_string()) {
      mixed.emplace_back(v->get());
    } else {
      return NumberListOf(array);
    }
  }
  if (integers.size() == mixed.size()) return KeyValue(std::move(integers));
  return KeyValue(std::move(mixed));
}

// Returns the text of a value in the file; empty if it has several lines.
absl::string_view Written(absl::string_view toml, const toml::node& node) {
  const toml::source_region& region = node.source();
  if (region.begin.line != region.end.line) return "";
  const std::vector<absl::string_view> lines = absl::StrSplit(toml, '\n');
  if (region.begin.line > lines.size()) return "";
  const absl::string_view line = lines[region.begin.line - 1];
  if (region.begin.column > line.size()) return "";
  return absl::StripAsciiWhitespace(line.substr(
      region.begin.column - 1, region.end.column - region.begin.column));
}

// Returns none for a type that no key takes: dates, tables, other lists.
std::optional<KeyValue> ValueOf(const toml::node& node) {
  if (const auto* v = node.as_string()) return KeyValue(v->get());
  if (const auto* v = node.as_integer()) return KeyValue(v->get());
  if (const auto* v = node.as_floating_point()) return KeyValue(v->get());
  if (const auto* v = node.as_boolean()) return KeyValue(v->get());
  const toml::array* array = node.as_array();
  return array == nullptr ? std::nullopt : ListOf(*array);
}

absl::Status ReadKey(const std::string& name, const toml::node& node,
                     absl::string_view written, const std::string& place,
                     LoadedConfig& loaded) {
  TROUPE_ASSIGN_OR_RETURN(const ConfigKey* key, Lookup(name, place));
  const std::optional<KeyValue> value = ValueOf(node);
  if (!value) {
    return At(place, absl::StrCat(name, " takes a value of the type ",
                                  key->type(), ", such as ", key->example));
  }
  const absl::Status status = SetValue(*key, *value, loaded.config, written);
  if (!status.ok()) return At(place, status.message());
  loaded.origins[name] = place;
  return absl::OkStatus();
}

absl::Status UnknownSection(const std::string& name, bool is_section,
                            const std::string& place) {
  if (!is_section) {
    // The key is outside any section.
    if (!KeyAdvice(name).empty()) return Lookup(name, place).status();
    const std::string key = NearestKey(name);
    return At(
        place,
        absl::StrCat("key ", name, " stands in no section; ",
                     key.empty() ? "run \"trainer train --help\" for a list"
                                 : absl::StrCat("did you mean ", key, "?")));
  }
  const std::string nearest = NearestSection(name);
  std::vector<absl::string_view> known;
  for (const ConfigSection& s : ConfigSections()) known.push_back(s.name);
  return At(place,
            absl::StrCat("unknown section [", name, "]; ",
                         nearest.empty()
                             ? "there are [" + absl::StrJoin(known, "] [") + "]"
                             : absl::StrCat("did you mean [", nearest, "]?")));
}

absl::Status Apply(const Setting& setting, LoadedConfig& loaded);

absl::Status ReadTables(const toml::table& root, absl::string_view toml,
                        LoadedConfig& loaded) {
  auto place = [&](const toml::key& key) {
    return absl::StrCat(loaded.file, ":", key.source().begin.line);
  };
  std::set<std::string> known;
  for (const ConfigSection& s : ConfigSections()) known.insert(s.name);
  for (auto&& [section, node] : root) {
    const std::string name(section.str());
    if (name == kMeshSection && node.is_string()) {
      const Setting setting = {name, node.as_string()->get(), place(section)};
      TROUPE_RETURN_IF_ERROR(Apply(setting, loaded));
      continue;
    }
    const toml::table* table = node.as_table();
    if (table == nullptr || known.count(name) == 0) {
      return UnknownSection(name, table != nullptr, place(section));
    }
    for (auto&& [key, value] : *table) {
      TROUPE_RETURN_IF_ERROR(
          ReadKey(absl::StrCat(name, ".", std::string(key.str())), value,
                  Written(toml, value), place(key), loaded));
    }
  }
  return absl::OkStatus();
}

bool IsSetByFile(const LoadedConfig& loaded, const std::string& key) {
  const auto found = loaded.origins.find(key);
  return found != loaded.origins.end() &&
         absl::StartsWith(found->second, absl::StrCat(loaded.file, ":"));
}

// Makes an empty checkpoint.dir on the command line override what the file says
// of checkpoints, which needs a folder.
absl::Status DropCheckpoints(LoadedConfig& loaded) {
  const std::string dir = "checkpoint.dir";
  if (!loaded.config.job.checkpoint.dir.empty() || !loaded.IsSet(dir) ||
      IsSetByFile(loaded, dir)) {
    return absl::OkStatus();
  }
  const TrainerConfig defaults;
  for (const char* name : kCheckpointKeys) {
    if (!IsSetByFile(loaded, name)) continue;
    const ConfigKey& key = *FindKey(name);
    TROUPE_RETURN_IF_ERROR(
        key.field.set(key.field.get(defaults), loaded.config));
    loaded.origins.erase(name);
  }
  return absl::OkStatus();
}

// Makes a length on the command line (steps or epochs) override the other one
// of the file.
void ReplaceOther(const Setting& setting, LoadedConfig& loaded) {
  actors::JobSpec& job = loaded.config.job;
  const bool is_steps = setting.key == "train.steps" && job.steps > 0;
  const bool is_epochs = setting.key == "train.epochs" && job.epochs > 0;
  if (!is_steps && !is_epochs) return;
  const std::string other = is_steps ? "train.epochs" : "train.steps";
  if (!IsSetByFile(loaded, other)) return;
  (is_steps ? job.epochs : job.steps) = 0;
  loaded.origins.erase(other);
}

// Applies --ranks=N: sets mesh.dp to N / (mesh.pp * mesh.tp).
absl::Status ApplyRanks(const Setting& setting, LoadedConfig& loaded) {
  std::int64_t ranks = 0;
  const pipeline::Mesh& mesh = loaded.config.job.plan.mesh;
  const std::int64_t each = std::int64_t{mesh.pp()} * mesh.tp();
  if (!absl::SimpleAtoi(setting.value, &ranks) || ranks < 1) {
    return At(setting.origin, absl::StrCat("\"", setting.value,
                                           "\" is not a number of ranks; "
                                           "write --ranks=2, say"));
  }
  if (ranks % each != 0) {
    const std::string tp =
        mesh.tp() == 1 ? "" : absl::StrCat(" on mesh.tp = ", mesh.tp());
    return At(setting.origin,
              absl::StrCat(ranks,
                           " ranks do not make whole replicas of "
                           "mesh.pp = ",
                           mesh.pp(), " stages", tp, "; use ",
                           (ranks / each + 1) * each));
  }
  Setting dp = setting;
  dp.key = "mesh.dp";
  dp.value = absl::StrCat(ranks / each);
  return Apply(dp, loaded);
}

// Applies mesh = "auto".
absl::Status ApplyMesh(const Setting& setting, LoadedConfig& loaded) {
  if (setting.value != "auto") {
    return At(setting.origin,
              absl::StrCat("mesh = \"", setting.value,
                           "\", must be \"auto\", or a section [mesh]"));
  }
  return Apply({"mesh.auto", "true", setting.origin}, loaded);
}

absl::Status Apply(const Setting& setting, LoadedConfig& loaded) {
  if (setting.key == kRanksSetting) return ApplyRanks(setting, loaded);
  if (setting.key == kMeshSection) return ApplyMesh(setting, loaded);
  TROUPE_ASSIGN_OR_RETURN(const ConfigKey* key,
                          Lookup(setting.key, setting.origin));
  const absl::Status status = SetFromText(*key, setting.value, loaded.config);
  if (!status.ok()) return At(setting.origin, status.message());
  loaded.origins[setting.key] = setting.origin;
  ReplaceOther(setting, loaded);
  return absl::OkStatus();
}

// Returns the last file of --deepspeed; null if there is none.
const Setting* DeepSpeedFile(absl::Span<const Setting> settings) {
  const Setting* file = nullptr;
  for (const Setting& setting : settings) {
    if (setting.key == kDeepSpeedSetting) file = &setting;
  }
  return file;
}

// Applies the settings of --deepspeed=FILE, and notes what is ignored.
absl::StatusOr<DeepSpeedConfig> ApplyDeepSpeed(
    absl::Span<const Setting> settings, base::FileSystem* files,
    LoadedConfig& loaded) {
  const Setting* const file = DeepSpeedFile(settings);
  if (file == nullptr || files == nullptr) return DeepSpeedConfig();
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          files->ReadToEnd(file->value, kDeepSpeedBytesMax));
  absl::StatusOr<DeepSpeedConfig> config = ParseDeepSpeedConfig(text);
  if (!config.ok()) return At(file->value, config.status().message());
  for (const DeepSpeedSetting& taken : config->settings) {
    TROUPE_RETURN_IF_ERROR(Apply(
        {taken.key, taken.value, absl::StrCat(file->value, ": ", taken.source)},
        loaded));
  }
  if (!config->ignored.empty()) {
    loaded.notes.push_back(absl::StrCat(
        file->value, ": not taken: ", absl::StrJoin(config->ignored, ", ")));
  }
  return config;
}

// Applies the batch sizes of --deepspeed=FILE, which depend on mesh.dp. Sizes
// on the command line take their place.
absl::Status ApplyBatches(const DeepSpeedConfig& deepspeed,
                          absl::Span<const Setting> settings,
                          LoadedConfig& loaded) {
  DeepSpeedBatches batches = deepspeed.batches;
  if (!batches.any()) return absl::OkStatus();
  const std::string global = "train.global_batch_size";
  const std::string micro = "train.micro_batch_size";
  const auto is_given = [&](const std::string& key) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const Setting& s) { return s.key == key; });
  };
  const bool gives_global = is_given(global), gives_micro = is_given(micro);
  const std::string& file = DeepSpeedFile(settings)->value;
  if (!gives_global && !gives_micro) {
    const absl::StatusOr<DeepSpeedBatches> complete =
        CompleteBatches(batches, loaded.config.job.plan.mesh.dp());
    if (!complete.ok()) return At(file, complete.status().message());
    batches = *complete;
  }
  if (!gives_global && batches.train > 0) {
    TROUPE_RETURN_IF_ERROR(Apply({global, absl::StrCat(batches.train),
                                  absl::StrCat(file, ": train_batch_size")},
                                 loaded));
  }
  if (gives_micro || batches.micro == 0) return absl::OkStatus();
  return Apply({micro, absl::StrCat(batches.micro),
                absl::StrCat(file, ": train_micro_batch_size_per_gpu")},
               loaded);
}

}  // namespace

absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view text,
                                         const std::string& file,
                                         absl::Span<const Setting> settings,
                                         base::FileSystem* files) {
  LoadedConfig loaded;
  loaded.file = file;
  const toml::parse_result parsed =
      toml::parse(std::string_view(text.data(), text.size()), file);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return At(absl::StrCat(file, ":", error.source().begin.line),
              absl::StrCat("not TOML: ", std::string(error.description())));
  }
  TROUPE_RETURN_IF_ERROR(ReadTables(parsed.table(), text, loaded));
  loaded.settings.assign(settings.begin(), settings.end());
  TROUPE_ASSIGN_OR_RETURN(const DeepSpeedConfig deepspeed,
                          ApplyDeepSpeed(settings, files, loaded));
  for (const Setting& setting : settings) {
    if (setting.key == kDeepSpeedSetting) continue;
    TROUPE_RETURN_IF_ERROR(Apply(setting, loaded));
  }
  TROUPE_RETURN_IF_ERROR(ApplyBatches(deepspeed, settings, loaded));
  TROUPE_RETURN_IF_ERROR(DropCheckpoints(loaded));
  FillOptimizerDefaults(loaded);
  FillPrecision(loaded.config);
  FillPadding(loaded.config);
  if (files != nullptr) TROUPE_RETURN_IF_ERROR(ReadGrid(*files, loaded));
  TROUPE_RETURN_IF_ERROR(CheckConfig(loaded));
  return loaded;
}

absl::StatusOr<LoadedConfig> LoadConfig(base::FileSystem& files,
                                        const std::string& path,
                                        absl::Span<const Setting> settings) {
  if (path.empty()) return ParseConfig("", path, settings, &files);
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          files.ReadToEnd(path, kFileBytesMax));
  return ParseConfig(text, path, settings, &files);
}

}  // namespace troupe::tools
