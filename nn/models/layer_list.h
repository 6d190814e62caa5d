// A plain network from a list of texts, one for each layer, as in a
// configuration file: a Sequential without C++.
//
//   absl::StatusOr<std::unique_ptr<Sequential>> cnn = MakeLayers(
//       {"conv 32 3 pad=1", "relu", "maxpool 2", "flatten", "linear 10"},
//       /*sample=*/{{28, 28, 1}, DType::kF32}, /*options=*/{});
//
// A layer is a name, then numbers, then options such as stride=2. The number of
// its input channels or features follows from the layer before. LayerUsage()
// lists the kinds of layers. "stash 1" keeps a tensor for "popadd 1" or
// "popconcat 1" further on (nn/modules/skip.h). Layers are named "0", "1", ...,
// as in PyTorch's Sequential.

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

// `sample` is the shape of one sample, without the batch axis: (H, W, C) or
// (K).
//   kInvalidArgument: a text is no layer, or a layer does not fit its input;
//     names the layer by number and text.
absl::StatusOr<std::unique_ptr<Sequential>> MakeLayers(
    absl::Span<const std::string> layers, const TensorSpec& sample,
    const ModelOptions& options);

// Returns "conv OUT KERNEL [stride=1] [pad=0]" and so on, a line for each kind.
std::vector<std::string> LayerUsage();

}  // namespace troupe::nn

#endif  // NN_MODELS_LAYER_LIST_H_
