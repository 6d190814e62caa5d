// The trainer's configuration as plain data: the options of what it sets up
// (data set, optimizer, job), and a few of the trainer's own. A key's name,
// field, meaning and limits are one entry of the table in config_keys.cc; its
// default is the field's in a TrainerConfig that nobody has touched.
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
#include "base/file_system.h"
#include "data/registry.h"
#include "nn/kernels/loss_scale.h"
#include "nn/models/models.h"
#include "nn/optim/optimizer_options.h"

namespace troupe::tools {

struct ModelConfig {
  std::string kind = "lenet";
  std::vector<std::int64_t> widths = {512, 512};  // hidden layers of "mlp"
  std::vector<std::string> layers;  // texts of nn/models/layer_list.h
  std::int64_t num_classes = 0;     // 0: as many as the data has
  std::int64_t vocab_size = 0;      // 0: as many tokens as the data has
  // Of GPT-2 and ViT; 0: what the kind has, or the data.
  int depth = 0;
  std::int64_t heads = 0, width = 0, context = 0, patch_size = 0;
  double dropout = -1;            // below 0: what the kind has
  double attention_dropout = -1;  // below 0: as `dropout`
  bool tie_head = true;           // of GPT-2
  std::string stem = "auto";      // of ResNet
  bool zero_init_residual = false;
  bool sync_batch_norm = false;  // over all replicas
  nn::ModelOptions options;
  std::vector<std::string> freeze;  // patterns of nn/modules/freeze.h
  // What backward runs again (nn/modules/recompute.h); a budget of 0 is none.
  std::vector<std::string> recompute;
  int recompute_every = 0;
  std::int64_t recompute_budget_bytes = 0;

  // What messages call the model.
  std::string Name() const { return layers.empty() ? kind : "layers"; }
};

// The options of all optimizers; a kind takes some of them, and has defaults of
// its own (optimizer_kinds.h).
struct OptimizerConfig {
  std::string kind = "sgd";
  double lr = 0.01;
  double weight_decay = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool amsgrad = false;
  double trust_coefficient = 0.001;
  // Parameters without weight decay: by pattern, and those of fewer than two
  // axes.
  std::vector<std::string> no_decay;
  bool no_decay_1d = false;
  std::string lr_scaling = "none";
  nn::OptimizerOptions common;
};

// The options of all losses; a kind takes some of them (loss_kinds.h).
struct LossConfig {
  std::string kind = "auto";
  std::string reduction = "mean";  // or "sum"
  double label_smoothing = 0;
  std::int64_t ignore_index = -100;
  std::vector<double> class_weights;  // empty: all 1
  double delta = 1;
  double beta = 1;
  double pos_weight = 1;
};

// "auto", "dynamic" or a number (loss_scale.h).
struct LossScaleText {
  std::string text = "auto";
};

struct LossScaleConfig {
  LossScaleText scale;
  double init = nn::kFirstLossScale;  // of the first step, where it is dynamic
  nn::LossScaleRule rule;
};

struct LogConfig {
  std::int64_t every = 100;  // steps
  std::string run_dir;       // what trainer report reads; empty: none
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

// The values of PipelineConfig::schedule that are no name of a schedule.
inline constexpr char kAutoSchedule[] = "auto";
inline constexpr char kSearchSchedule[] = "search";

// The pipeline of a replica (pipeline_options.h).
struct PipelineConfig {
  std::string schedule = kAutoSchedule;
  std::string schedule_file;  // empty: by name
  std::string grid;           // what the file has
  std::string balance = "flops";
  bool strict_order = false;
  std::int64_t activation_limit = 0;  // bytes; 0: none
  std::int64_t memory_limit = 0;      // bytes; 0: none
};

// How the processes of a job speak to each other.
struct NetworkConfig {
  std::string transport = "auto";
  bool encrypt = false;
  absl::Duration liveness_timeout = absl::Seconds(10);
  absl::Duration join_timeout = absl::Minutes(5);
};

// Other values of TrainerConfig::kernel_cache than a folder.
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
  // Numbers and names only. BuildSpec() adds model, loss, optimizer and data.
  actors::JobSpec job;
  PipelineConfig pipeline;
  // Checkpoints of an earlier run in the same folder give way to this one's.
  bool replace_checkpoints = false;
  NetworkConfig network;
  // A folder, kAutoKernelCache or kNoKernelCache; main() makes a folder of it,
  // or nothing.
  std::string kernel_cache = kAutoKernelCache;
  LogConfig log;
  MetricsConfig metrics;
  TraceConfig trace;
};

// The setting of --ranks, which is no key of the file: it sets mesh.dp to its
// value / mesh.pp and comes last.
inline constexpr char kRanksSetting[] = "ranks";

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
  std::string file;  // empty: the command line has said it all
  // For each key that was set: "glyphs.toml:12" or "--set train.steps".
  std::map<std::string, std::string> origins;
  std::vector<Setting> settings;  // of the command line, as given

  bool IsSet(const std::string& key) const { return origins.count(key) > 0; }
  // Where a message about `key` points; for a default, at all that was said.
  std::string Where(const std::string& key) const {
    const auto found = origins.find(key);
    return found == origins.end() ? Whole() : found->second;
  }
  // Where a message about no key points: "glyphs.toml" or "command line".
  std::string Whole() const { return file.empty() ? "command line" : file; }
};

// Reads `path`, a file or a pipe (empty: neither), applies `settings` in order
// and checks the whole. Every error is one line that begins with the place,
// "glyphs.toml:12: " or "--set train.steps: ", and says what to write instead.
absl::StatusOr<LoadedConfig> LoadConfig(base::FileSystem& files,
                                        const std::string& path,
                                        absl::Span<const Setting> settings);

// The same for a text that is there already. `files`: where other files are
// that it names; null: none is read.
absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view toml,
                                         const std::string& file,
                                         absl::Span<const Setting> settings,
                                         base::FileSystem* files = nullptr);

// Checks what no key can say alone: sizes that must divide each other, cuts
// that must fit the mesh and the model. Part of the two above.
absl::Status CheckConfig(const LoadedConfig& loaded);

// The part of CheckConfig() that needs to know what samples look like. Where
// the configuration does not say that (data::KnownSampleSpec()), it is left to
// whoever has opened the files.
absl::Status CheckSamples(const LoadedConfig& loaded,
                          const data::SampleSpec& sample);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_CONFIG_H_
