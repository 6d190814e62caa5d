#include "tests/actors/skip_models.h"

#include <cstdint>
#include <memory>
#include <string>

#include "nn/modules/conv2d.h"
#include "nn/modules/conv_transpose2d.h"
#include "nn/modules/dropout.h"
#include "nn/modules/embedding.h"
#include "nn/modules/flatten.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/modules/skip.h"
#include "nn/ops/add.h"
#include "nn/ops/cast.h"
#include "nn/ops/relu.h"

namespace troupe::actors {
namespace {

using nn::Context;
using nn::DType;
using nn::Tensor;

constexpr nn::Linear::Options kF64 = {/*bias=*/true, DType::kF64};

// A block with weights and dropout, which may be recomputed in backward.
class Block : public nn::Module {
 public:
  explicit Block(std::int64_t width, bool recompute)
      : first_(Add<nn::Linear>("first", width, width, kF64)),
        dropout_(Add<nn::Dropout>("dropout", 0.25)),
        second_(Add<nn::Linear>("second", width, width, kF64)) {
    set_recomputes(recompute);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return second_(ctx, dropout_(ctx, first_(ctx, x)));
  }

 private:
  nn::Linear& first_;
  nn::Dropout& dropout_;
  nn::Linear& second_;
};

// Returns x. Stashes as integers which samples begin with a positive number,
// and all of x in bf16.
class StashSignsAndHalf : public nn::Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor signs = ctx.Empty("signs", {x.dim(0)}, DType::kI64);
    if (ctx.computes()) {
      for (std::int64_t i = 0; i < x.dim(0); ++i) {
        signs.data<std::int64_t>()[i] = x.data<double>()[i * x.dim(1)] > 0;
      }
    }
    ctx.Stash("signs", signs);
    ctx.Stash("half", nn::ops::Cast(ctx, x, DType::kBF16));
    return x;
  }
};

// Adds an embedding of the sign, and the tensor that was stashed in bf16.
class PopSignsAndHalf : public nn::Module {
 public:
  explicit PopSignsAndHalf(std::int64_t width)
      : rows_(Add<nn::Embedding>("rows", 2, width, DType::kF64)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor row = rows_(ctx, ctx.Pop("signs"));
    const Tensor half = nn::ops::Cast(ctx, ctx.Pop("half"), DType::kF64);
    return nn::ops::Add(ctx, nn::ops::Add(ctx, x, row), half);
  }

 private:
  nn::Embedding& rows_;
};

}  // namespace

nn::ModelFactory DenseUNet(const DenseUNetOptions& options) {
  return [options] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 8, kF64);
    model->Append<nn::Stash>("skip1");
    model->Append<nn::Dropout>(0.25);
    model->Append<nn::Linear>(8, 6, kF64);
    model->Append<nn::Stash>("skip2");
    model->Append<StashSignsAndHalf>();
    model->Append<Block>(6, options.recompute);
    model->Append<nn::Stash>("unused");
    model->Append<nn::Linear>(6, 4, kF64);
    model->Append<nn::PopConcat>("skip2", /*axis=*/1);  // 6 and 4
    model->Append<nn::Linear>(10, 6, kF64);
    model->Append<PopSignsAndHalf>(6);
    model->Append<nn::Linear>(6, 8, kF64);
    model->Append<nn::PopAdd>("skip1");
    model->Append<nn::Lambda>([](Context& ctx, const Tensor& x) {
      ctx.Pop("unused");
      return nn::ops::Relu(ctx, x);
    });
    model->Append<nn::Linear>(8, 2, kF64);
    if (options.ends_without_parameters) model->Append<nn::ReLU>();
    return model;
  };
}

nn::ModelFactory ImageUNet() {
  return [] {
    const nn::Window2d same = {3, 3, 1, 1, 1, 1}, twice = {2, 2, 2, 2};
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Conv2d>(1, 4, same);
    model->Append<nn::Stash>("fine");
    model->Append<nn::ReLU>();
    model->Append<nn::MaxPool2d>(2);  // 14 x 14
    model->Append<nn::Conv2d>(4, 8, same);
    model->Append<nn::Stash>("coarse");
    model->Append<nn::MaxPool2d>(2);  // 7 x 7
    model->Append<nn::Conv2d>(8, 8, same);
    model->Append<nn::ConvTranspose2d>(8, 8, twice);
    model->Append<nn::PopAdd>("coarse");
    model->Append<nn::ConvTranspose2d>(8, 4, twice);
    model->Append<nn::PopConcat>("fine");
    model->Append<nn::MaxPool2d>(4);  // 7 x 7 of 8 channels
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(7 * 7 * 8, 10);
    return model;
  };
}

}  // namespace troupe::actors
