// The section "model" of the configuration: its options, its keys, and the
// networks that model.kind names.
//
//   const auto sample = data::ClassificationSpec({28, 28, 1}, 10);
//   const auto model = MakeModelOfKind(config.model, sample, /*outputs=*/10);
//
// To add a network, add a row to kKinds in model_kinds.cc. An option that no
// other network has also needs a field here and a key there.

#ifndef TOOLS_TRAINER_CONFIG_MODEL_KINDS_H_
#define TOOLS_TRAINER_CONFIG_MODEL_KINDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/dataset.h"
#include "nn/models/models.h"
#include "nn/modules/sequential.h"

namespace troupe::tools {

struct ConfigKey;

struct ModelConfig {
  std::string kind = "lenet";
  std::vector<std::int64_t> widths = {512, 512};  // hidden layers of "mlp"
  std::vector<std::string> layers;  // texts of nn/models/layer_list.h
  std::int64_t num_classes = 0;     // 0: number of classes of the data
  std::int64_t vocab_size = 0;      // 0: number of tokens of the data
  // Sizes of GPT-2 and ViT. 0: the default of the kind, or the data's size.
  int depth = 0;
  std::int64_t heads = 0, width = 0, context = 0, patch_size = 0;
  double dropout = -1;            // below 0: the kind's default
  double attention_dropout = -1;  // below 0: same as `dropout`
  bool tie_head = true;           // GPT-2 only
  std::string stem = "auto";      // ResNet only
  bool zero_init_residual = false;
  bool sync_batch_norm = false;  // over all replicas
  nn::ModelOptions options;
  std::vector<std::string> freeze;  // patterns of nn/modules/freeze.h
  // Modules whose forward runs again in backward (nn/modules/recompute.h). A
  // budget of 0: none.
  std::vector<std::string> recompute;
  int recompute_every = 0;
  std::int64_t recompute_budget_bytes = 0;

  // Returns the name of the model in messages.
  std::string Name() const { return layers.empty() ? kind : "layers"; }
};

// The keys of the section, a part of the table of keys (config_keys.h).
absl::Span<const ConfigKey> ModelKeys();

// Makes the model `config.kind` for samples of `spec`. `outputs` is the number
// of classes, tokens or elements of a target.
//   kInvalidArgument: it does not take such samples, or its sizes do not fit
//     together.
absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeModelOfKind(
    const ModelConfig& config, const data::SampleSpec& spec,
    std::int64_t outputs);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_MODEL_KINDS_H_
