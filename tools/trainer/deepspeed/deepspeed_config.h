// Reads a configuration of DeepSpeed (ds_config.json) for what it has in common
// with the trainer's, as settings of the trainer's keys.
//
//   TROUPE_ASSIGN_OR_RETURN(const DeepSpeedConfig config,
//                           ParseDeepSpeedConfig(text));
//   config.settings[0].key, config.settings[0].value;  // "zero.stage", "1"
//   config.ignored;                    // {"zero_optimization.overlap_comm"}
//   TROUPE_ASSIGN_OR_RETURN(const DeepSpeedBatches sizes,
//                           CompleteBatches(config.batches, /*dp=*/4));
//
// Taken are batch sizes, gradient_clipping, bf16, fp16, optimizer, scheduler,
// steps_per_print, and zero_optimization's stage and
// stage3_prefetch_bucket_size; docs/deepspeed.md has the table. A value "auto",
// which Hugging Face's programs fill in, is one that is not given. What would
// change results but cannot be taken is an error; keys that only concern speed
// or memory are ignored, and named.
//
// The text is not trusted: sizes and types are checked. Pure functions.
// Source of names and defaults: DeepSpeed 0.15, runtime/config.py,
// runtime/constants.py and runtime/lr_schedules.py.

#ifndef TOOLS_TRAINER_DEEPSPEED_DEEPSPEED_CONFIG_H_
#define TOOLS_TRAINER_DEEPSPEED_DEEPSPEED_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::tools {

// Limit on the size of a file.
inline constexpr std::int64_t kDeepSpeedBytesMax = 1 << 20;

// One value of the file, as a setting of the trainer's.
struct DeepSpeedSetting {
  std::string key;     // "optimizer.lr"
  std::string value;   // as the command line has it: "0.001"
  std::string source;  // "optimizer.params.lr"
};

// Numbers of samples; 0: not given.
struct DeepSpeedBatches {
  std::int64_t train = 0;         // train_batch_size
  std::int64_t micro = 0;         // train_micro_batch_size_per_gpu
  std::int64_t accumulation = 0;  // gradient_accumulation_steps

  bool any() const { return train > 0 || micro > 0 || accumulation > 0; }
};

struct DeepSpeedConfig {
  std::vector<DeepSpeedSetting> settings;
  DeepSpeedBatches batches;
  // Keys that are ignored, "zero_optimization.overlap_comm", in order.
  std::vector<std::string> ignored;
};

//   kInvalidArgument: names the key, and what to write in its place.
absl::StatusOr<DeepSpeedConfig> ParseDeepSpeedConfig(absl::string_view json);

// Returns the sizes with those that are not given, by DeepSpeed's rule: train =
// micro * accumulation * dp, and an accumulation of 1 if that is not given
// either. All are 0 if none was given.
//   kInvalidArgument: they do not agree, or only the accumulation is given.
absl::StatusOr<DeepSpeedBatches> CompleteBatches(
    const DeepSpeedBatches& batches, int dp);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DEEPSPEED_DEEPSPEED_CONFIG_H_
