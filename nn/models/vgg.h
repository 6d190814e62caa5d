// VGG networks for images (Simonyan and Zisserman 2015, arXiv:1409.1556), with
// the names, layouts and initial values of torchvision's: its weights load
// without conversion.
//
//   VggOptions options;
//   options.num_classes = 10;
//   options.batch_norm = true;
//   std::unique_ptr<Sequential> model = *MakeVgg(11, options);
//
// Images are (N, H, W, C), 32x32 or larger. Children: features (convolutions
// 3x3 and poolings, "features.0.weight"), avgpool (to 7x7), flatten, classifier
// (three linear layers, "classifier.6.weight").

#ifndef NN_MODELS_VGG_H_
#define NN_MODELS_VGG_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {

struct VggOptions {
  std::int64_t in_channels = 3;
  std::int64_t num_classes = 1000;
  bool batch_norm = false;  // torchvision's vgg11_bn and vgg16_bn
  double dropout = 0.5;     // after the first two linear layers
  // Number of channels of the first convolution, and of features of the linear
  // layers; smaller in tests.
  std::int64_t width = 64;
  std::int64_t hidden = 4096;
};

//   kInvalidArgument: `depth` is not 11 or 16.
absl::StatusOr<std::unique_ptr<Sequential>> MakeVgg(int depth,
                                                    const VggOptions& options);

}  // namespace troupe::nn

#endif  // NN_MODELS_VGG_H_
