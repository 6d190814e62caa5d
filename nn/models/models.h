// Ready-made models, as Sequentials so that they can be cut into stages.
//
//   std::unique_ptr<Sequential> model = MakeMlp({784, 512, 512, 10}, {});
//   std::unique_ptr<Sequential> cnn = *MakeLeNet({28, 28, 1}, 10, {});

#ifndef NN_MODELS_MODELS_H_
#define NN_MODELS_MODELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {

struct ModelOptions {
  bool bias = true;
  DType dtype = DType::kF32;
};

// Makes linear layers of these widths with ReLU between them; images are
// flattened first. At least two widths.
std::unique_ptr<Sequential> MakeMlp(const std::vector<std::int64_t>& widths,
                                    const ModelOptions& options);

// Makes the convolutional network of PyTorch's tutorials, after LeNet-5 (LeCun
// et al. 1998): conv 6@5x5, pool, conv 16@5x5, pool, 120, 84, classes. `image`
// is (H, W, C).
//   kInvalidArgument: the image is smaller than 16x16.
absl::StatusOr<std::unique_ptr<Sequential>> MakeLeNet(
    const Shape& image, std::int64_t num_classes, const ModelOptions& options);

// Makes one linear layer on the flattened input: the baseline a network must
// beat.
std::unique_ptr<Sequential> MakeLinearModel(std::int64_t features,
                                            std::int64_t outputs,
                                            const ModelOptions& options);

}  // namespace troupe::nn

#endif  // NN_MODELS_MODELS_H_
