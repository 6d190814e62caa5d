// A plain network from a list of texts, one for each layer, as a configuration
// file has them: a Sequential without C++.
//
//   absl::StatusOr<std::unique_ptr<Sequential>> cnn = MakeLayers(
//       {"conv 32 3 pad=1", "relu", "maxpool 2", "flatten", "linear 10"},
//       /*sample=*/{{28, 28, 1}, DType::kF32}, /*options=*/{});
//
// A layer is a name, then numbers, then options such as stride=2. How many
// channels or features come in follows from the layer before. LayerUsage()
// lists what there is. "stash 1" keeps what "popadd 1" or "popconcat 1" takes
// further on (nn/modules/skip.h). Layers are called "0", "1", ..., as PyTorch's
// Sequential has them.

#ifndef NN_MODELS_LAYER_LIST_H_
#define NN_MODELS_LAYER_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/models/models.h"
#include "nn/modules/module.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {

// `sample` is one sample, without the axis of the batch: (H, W, C) or (K).
//   kInvalidArgument: a text is no layer, or a layer does not fit on the one
//     before; names the layer by number and text.
absl::StatusOr<std::unique_ptr<Sequential>> MakeLayers(
    absl::Span<const std::string> layers, const TensorSpec& sample,
    const ModelOptions& options);

// "conv OUT KERNEL [stride=1] [pad=0]" and so on, a line for each kind.
std::vector<std::string> LayerUsage();

}  // namespace troupe::nn

#endif  // NN_MODELS_LAYER_LIST_H_
