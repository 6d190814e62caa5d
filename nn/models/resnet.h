// Residual networks for images (He et al. 2016, arXiv:1512.03385), with the
// names, layouts and initial values of torchvision's: its weights load without
// conversion.
//
//   ResNetOptions options;
//   options.num_classes = 10;
//   options.stem = ResNetStem::kCifar;             // for images of 32x32
//   std::unique_ptr<Sequential> model = *MakeResNet(18, options);
//
// Images are (N, H, W, C). Children: conv1, bn1 (with its ReLU), maxpool,
// layer1 to layer4 (each a Sequential of blocks "0", "1", ...), avgpool,
// flatten, fc; so stages begin at "layer2" or at "layer3.1", say.
//
//     depth 18, 34: y = relu(x + bn2(conv2(relu(bn1(conv1(x))))))
//     depth 50, 101: convolutions 1x1, 3x3 and 1x1, the last four times as wide
//
// and x goes through downsample, a 1x1 convolution with batch norm, if its
// shape changes. Convolutions begin with N(0, 2 / (out * height * width)).

#ifndef NN_MODELS_RESNET_H_
#define NN_MODELS_RESNET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {

// Layers in front of layer1.
enum class ResNetStem {
  kImageNet,  // 7x7 with stride 2, then max pooling: 224x224 becomes 56x56
  kCifar,     // 3x3 with stride 1, no pooling: 32x32 stays 32x32
};

struct ResNetOptions {
  std::int64_t in_channels = 3;
  std::int64_t num_classes = 1000;
  ResNetStem stem = ResNetStem::kImageNet;
  // Number of channels of layer1; 64 everywhere but in tests.
  std::int64_t width = 64;
  // Whether the last batch norm of each block begins with weight 0, so that the
  // block begins as the identity (Goyal et al. 2017, arXiv:1706.02677).
  bool zero_init_residual = false;
};

//   kInvalidArgument: `depth` is not 18, 34, 50 or 101.
absl::StatusOr<std::unique_ptr<Sequential>> MakeResNet(
    int depth, const ResNetOptions& options);

}  // namespace troupe::nn

#endif  // NN_MODELS_RESNET_H_
