// The trainer's configuration as plain data: one struct per section of the
// file, one field per key. What a key means, and its limits, stand in the table
// of config_keys.cc, from which parser, help and docs/configuration.md come;
// its default is the value here.
//
//   TROUPE_ASSIGN_OR_RETURN(LoadedConfig loaded,
//                           LoadConfig(files, "glyphs.toml", settings));
//   loaded.config.train.global_batch_size;
//   loaded.Where("train.global_batch_size");      // "glyphs.toml:12"

#ifndef TOOLS_TRAINER_CONFIG_H_
#define TOOLS_TRAINER_CONFIG_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/file_system.h"

namespace troupe::tools {

struct ModelConfig {
  std::string kind = "lenet";
  std::vector<std::int64_t> widths = {512, 512};  // hidden layers of "mlp"
  bool bias = true;
};

struct DataConfig {
  std::string kind = "glyphs";
  std::string path;
  std::int64_t train_count = 0;  // 0: all
  std::int64_t test_count = 0;
  std::int64_t seed = 0;
  bool normalize = true;
  bool augment = false;
  std::vector<std::int64_t> input_shape = {10};
  std::int64_t num_classes = 10;
  std::int64_t target_dim = 1;
  std::int64_t prefetch = 4;  // steps
};

struct TrainConfig {
  std::int64_t steps = 0;  // one of these two is above 0
  std::int64_t epochs = 0;
  std::int64_t global_batch_size = 64;
  std::int64_t micro_batch_size = 0;  // 0: global_batch_size / mesh.dp
  std::int64_t seed = 0;
  std::int64_t eval_every = 0;  // steps; 0: at each epoch's end
  bool stop_on_nan = true;
  std::string device = "cpu:0";
  std::int64_t threads_per_rank = 1;
};

struct OptimizerConfig {
  std::string kind = "sgd";
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

struct MeshConfig {
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::vector<std::int64_t> cuts;
};

// No size that anyone can write.
inline constexpr std::int64_t kAutoBytes =
    std::numeric_limits<std::int64_t>::min();

struct CommConfig {
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  std::int64_t inline_bytes = kAutoBytes;
  bool fuse_updates = true;
  double timeout_s = 300;
};

struct CheckpointConfig {
  std::string dir;         // empty: no checkpoints
  std::int64_t every = 0;  // steps; 0: at the end
  std::int64_t keep = 3;
  bool resume = false;
  bool replace = false;
};

struct LogConfig {
  std::int64_t every = 100;  // steps
  std::string file;
  std::string progress = "auto";
};

struct TraceConfig {
  std::string file;
  std::int64_t first_step = 10;
  std::int64_t steps = 2;
};

struct TrainerConfig {
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  OptimizerConfig optimizer;
  MeshConfig mesh;
  CommConfig comm;
  CheckpointConfig checkpoint;
  LogConfig log;
  TraceConfig trace;
};

// No key of the file: sets mesh.dp to the value / mesh.pp. Comes last.
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
  std::string file;
  // For each key that was set: "glyphs.toml:12" or "--set train.steps".
  std::map<std::string, std::string> origins;
  std::vector<Setting> settings;  // of the command line, as given

  bool IsSet(const std::string& key) const { return origins.count(key) > 0; }
  // Where a message about `key` points; the file itself for a default.
  const std::string& Where(const std::string& key) const {
    const auto found = origins.find(key);
    return found == origins.end() ? file : found->second;
  }
};

// Reads `path`, applies `settings` in order and checks the whole. Every error
// is one line that begins with the place, "glyphs.toml:12: " or
// "--set train.steps: ", and says what to write instead.
absl::StatusOr<LoadedConfig> LoadConfig(base::FileSystem& files,
                                        const std::string& path,
                                        absl::Span<const Setting> settings);

// The same for a text that is there already.
absl::StatusOr<LoadedConfig> ParseConfig(absl::string_view toml,
                                         const std::string& file,
                                         absl::Span<const Setting> settings);

// What no key can say alone: sizes that must divide each other, cuts that must
// fit the mesh and the model. Part of the two above.
absl::Status CheckConfig(const LoadedConfig& loaded);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_H_
