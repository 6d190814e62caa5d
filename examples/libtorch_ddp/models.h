// The models of the example: a perceptron, and ResNet-18 with the names of
// torchvision's (He et al. 2015, arXiv:1512.03385). libtorch_ddp.py has the
// same.

#ifndef MODELS_H_
#define MODELS_H_

#include <torch/nn.h>

#include <cstdint>
#include <string>
#include <vector>

// An MLP on [N, 784] of 10 million parameters.
inline torch::nn::Sequential MakeMlp() {
  using torch::nn::Linear, torch::nn::ReLU;
  return torch::nn::Sequential(Linear(784, 2048), ReLU(), Linear(2048, 2048),
                               ReLU(), Linear(2048, 2048), ReLU(),
                               Linear(2048, 10));
}

inline torch::nn::Conv2d Conv(std::int64_t in, std::int64_t out,
                              std::int64_t size, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size)
                               .stride(stride)
                               .padding(size / 2)
                               .bias(false));
}

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1 = register_module("conv1", Conv(in, out, 3, stride));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(out));
    conv2 = register_module("conv2", Conv(out, out, 3, 1));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(out));
    if (stride == 1 && in == out) return;
    downsample = register_module(
        "downsample", torch::nn::Sequential(Conv(in, out, 1, stride),
                                            torch::nn::BatchNorm2d(out)));
  }
  at::Tensor forward(at::Tensor x) {
    at::Tensor y = bn1(conv1(x)).relu_();
    y = bn2(conv2(y));
    return y.add_(downsample.is_empty() ? x : downsample->forward(x)).relu_();
  }

  torch::nn::Conv2d conv1 = nullptr, conv2 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr, bn2 = nullptr;
  torch::nn::Sequential downsample = nullptr;
};
TORCH_MODULE(BasicBlock);

// On images [N, 3, H, W].
struct ResNet18Impl : torch::nn::Module {
  explicit ResNet18Impl(std::int64_t classes = 10) {
    conv1 = register_module("conv1", Conv(3, 64, 7, 2));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(64));
    std::int64_t in = 64;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t out = 64 << i;
      layers.push_back(register_module(
          "layer" + std::to_string(i + 1),
          torch::nn::Sequential(BasicBlock(in, out, /*stride=*/i == 0 ? 1 : 2),
                                BasicBlock(out, out, /*stride=*/1))));
      in = out;
    }
    fc = register_module("fc", torch::nn::Linear(in, classes));
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::max_pool2d(bn1(conv1(x)).relu_(), 3, 2, 1);
    for (torch::nn::Sequential& layer : layers) x = layer->forward(x);
    return fc(x.mean({2, 3}));
  }

  torch::nn::Conv2d conv1 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr;
  std::vector<torch::nn::Sequential> layers;  // layer1 to layer4
  torch::nn::Linear fc = nullptr;
};
TORCH_MODULE(ResNet18);

#endif  // MODELS_H_
