// The trainer's configuration as plain data: the options structs of data set,
// optimizer and job, and a few options of the trainer's own. A key's name,
// field, meaning and limits are one entry of the table in config_keys.cc. Its
// default is the value of the field in a default-constructed TrainerConfig.
//
//   TROUPE_ASSIGN_OR_RETURN(LoadedConfig loaded,
//                           LoadConfig(files, "glyphs.toml", settings));
//   loaded.config.job.plan.global_batch_size;
//   loaded.Where("train.global_batch_size");      // "glyphs.toml:12"

#ifndef TOOLS_TRAINER_CONFIG_CONFIG_H_
#define TOOLS_TRAINER_CONFIG_CONFIG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "actors/spec/job_spec.h"
#include "actors/tracing/trace.h"
#include "base/files/file_system.h"
#include "data/registry.h"
#include "nn/kernels/loss_scale.h"
#include "tools/trainer/config/loss_kinds.h"
#include "tools/trainer/config/model_kinds.h"
#include "tools/trainer/config/optimizer_kinds.h"

namespace troupe::tools {

// "auto", "dynamic" or a number (loss_scale.h).
struct LossScaleText {
  std::string text = "auto";
};

struct LossScaleConfig {
  LossScaleText scale;
  double init = nn::kFirstLossScale;  // scale of the first step if dynamic
  nn::LossScaleRule rule;
};

struct LogConfig {
  std::int64_t every = 100;  // steps
  std::string run_dir;       // folder for trainer report; empty: none
  std::string file;          // empty: none
  std::string tensorboard;   // folder; empty: none
  std::string progress = "auto";
  std::string model_table = "auto";
};

struct MetricsConfig {
  std::string prometheus;  // "host:port"; empty: none
  bool prometheus_expose = false;
};

struct TraceConfig {
  std::string file;  // empty: none
  actors::ChromeTrace::Options options;
};

// Values of PipelineConfig::schedule that are not names of schedules.
inline constexpr char kAutoSchedule[] = "auto";
inline constexpr char kSearchSchedule[] = "search";

// Values of PipelineConfig::zero_accumulate.
inline constexpr char kZeroSharded[] = "sharded";
inline constexpr char kZeroLocal[] = "local";

// The pipeline of a replica (pipeline_options.h).
struct PipelineConfig {
  bool auto_mesh = false;  // the job chooses its mesh (JobSpec::open_mesh)
  double bandwidth = 0;    // bytes a second between ranks; 0: measured
  std::string schedule = kAutoSchedule;
  std::string schedule_file;  // empty: by name
  std::string grid;           // contents of the file
  std::string balance = "flops";
  bool strict_order = false;
  std::string zero_accumulate = kZeroSharded;
  std::int64_t activation_limit = 0;  // bytes; 0: none
  std::int64_t memory_limit = 0;      // bytes; 0: none
};

// Communication between the processes of a job.
struct NetworkConfig {
  std::string transport = "auto";
  bool encrypt = false;
  absl::Duration liveness_timeout = absl::Seconds(10);
  absl::Duration join_timeout = absl::Minutes(5);
};

// Values of TrainerConfig::kernel_cache that are not folders.
inline constexpr char kAutoKernelCache[] = "auto";
inline constexpr char kNoKernelCache[] = "off";

// The value of TrainerConfig::precision that leaves the choice to the job.
inline constexpr char kAutoPrecision[] = "auto";

struct TrainerConfig {
  ModelConfig model;
  data::DatasetOptions data;
  LossConfig loss;
  OptimizerConfig optimizer;
  std::string precision = "f32";  // a dtype or kAutoPrecision (precision.h)
  LossScaleConfig loss_scale;
  // Has numbers and names only. BuildSpec() adds model, loss, optimizer and
  // data.
  actors::JobSpec job;
  PipelineConfig pipeline;
  // Whether this run's checkpoints replace those of an earlier run in the same
  // folder.
  bool replace_checkpoints = false;
  NetworkConfig network;
  // A folder, kAutoKernelCache or kNoKernelCache. train_command.cc replaces the
  // latter two by the default folder and by an empty string.
  std::string kernel_cache = kAutoKernelCache;
  LogConfig log;
  MetricsConfig metrics;
  TraceConfig trace;
};

// Key of the setting that --ranks makes. It is no key of the file: it sets
// mesh.dp to its value / (mesh.pp * mesh.tp), after all other settings.
inline constexpr char kRanksSetting[] = "ranks";

// Key of the setting that --deepspeed makes: the path of a configuration of
// DeepSpeed (tools/trainer/deepspeed). Its settings precede all others.
inline constexpr char kDeepSpeedSetting[] = "deepspeed";

// One assignment of the command line: "--set train.steps=10" is
// {"train.steps", "10", "--set train.steps"}, "--ranks=2" is
// {kRanksSetting, "2", "--ranks"}.
struct Setting {
  std::string key;
  std::string value;
  std::string origin;
};

struct LoadedConfig {
  TrainerConfig config;
  std::string file;  // empty: command line only
  // Place of each key that was set: "glyphs.toml:12" or "--set train.steps".
  std::map<std::string, std::string> origins;
  std::vector<Setting> settings;  // settings of the command line, as given
  // Lines for the user: what was not taken of a file.
  std::vector<std::string> notes;

  bool IsSet(const std::string& key) const { return origins.count(key) > 0; }
  // Returns the place that a message about `key` names: where it was set, or
  // Whole() for a default.
  std::string Where(const std::string& key) const {
    const auto found = origins.find(key);
    return found == origins.end() ? Whole() : found->second;
  }
  // Returns the place that a message about no key names: "glyphs.toml" or
  // "command line".
  std::string Whole() const { return file.empty() ? "command line" : file; }
};

// Reads `path`, a file or a pipe (empty: neither), applies `settings` in order
// and checks the whole. Every error is one line that begins with the place,
// "glyphs.toml:12: " or "--set train.steps: ", and says what to write instead.
absl::StatusOr<LoadedConfig> LoadConfig(base::FileSystem& files,
                                        const std::string& path,
                                        absl::Span<const Setting> settings);

// The same for a text that was read already. `files` has the other files that
// the text names; null: they are not read.
absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view toml,
                                         const std::string& file,
                                         absl::Span<const Setting> settings,
                                         base::FileSystem* files = nullptr);

// Checks several keys together: sizes that must divide each other, cuts that
// must fit the mesh and the model. LoadConfig() and ParseConfig() call it.
absl::Status CheckConfig(const LoadedConfig& loaded);

// The part of CheckConfig() that needs the shapes and types of samples. If the
// configuration does not determine them (data::KnownSampleSpec()), the caller
// that opens the data must call it.
absl::Status CheckSamples(const LoadedConfig& loaded,
                          const data::SampleSpec& sample);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_CONFIG_H_
