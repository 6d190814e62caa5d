#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/choice_cache.h"
#include "nn/kernels/cuda/libraries/conv_spec.h"
#include "nn/kernels/cuda/libraries/matmul_spec.h"

namespace troupe::nn::cuda {
namespace {

MatmulSpec Product() {
  MatmulSpec spec;
  spec.rows = 768, spec.cols = 3072, spec.depth = 8192;
  return spec;
}

ConvSpec Convolution() {
  ConvSpec spec;
  spec.N = 32, spec.H = 56, spec.W = 57, spec.C = 64, spec.O = 128;
  spec.window.kernel_h = 3, spec.window.kernel_w = 5;
  return spec;
}

// Changes of one property each; each of them alone is valid.
const std::vector<std::function<void(MatmulSpec&)>> kOfAProduct = {
    [](MatmulSpec& s) { s.rows = 8; },
    [](MatmulSpec& s) { s.cols = 16; },
    [](MatmulSpec& s) { s.depth = 8; },
    [](MatmulSpec& s) { s.transpose_a = true; },
    [](MatmulSpec& s) { s.transpose_b = true; },
    [](MatmulSpec& s) { s.dtype = DType::kBF16; },
    [](MatmulSpec& s) { s.dtype = DType::kF16; },
    [](MatmulSpec& s) { s.dtype = s.out_dtype = DType::kF16; },
    [](MatmulSpec& s) { s.dtype = s.out_dtype = DType::kBF16; },
    [](MatmulSpec& s) { s.epilogue = Epilogue::kBias; },
    [](MatmulSpec& s) { s.epilogue = Epilogue::kReluBias; },
    [](MatmulSpec& s) { s.epilogue = Epilogue::kGeluBias; },
    [](MatmulSpec& s) { s.epilogue = Epilogue::kGeluBackward; },
    [](MatmulSpec& s) { s.epilogue = Epilogue::kRowSums; },
    [](MatmulSpec& s) { s.accumulate = true; },
    [](MatmulSpec& s) { s.allow_tf32 = true; },
};
const std::vector<std::function<void(ConvSpec&)>> kOfAConvolution = {
    [](ConvSpec& s) { s.way = ConvWay::kBackwardInput; },
    [](ConvSpec& s) { s.way = ConvWay::kBackwardWeight; },
    [](ConvSpec& s) { s.N = 8; },
    [](ConvSpec& s) { s.H = 8; },
    [](ConvSpec& s) { s.W = 8; },
    [](ConvSpec& s) { s.C = 8; },
    [](ConvSpec& s) { s.O = 8; },
    [](ConvSpec& s) { s.window.kernel_h = 2; },
    [](ConvSpec& s) { s.window.kernel_w = 2; },
    [](ConvSpec& s) { s.window.stride_h = 2; },
    [](ConvSpec& s) { s.window.stride_w = 2; },
    [](ConvSpec& s) { s.window.pad_h = 2; },
    [](ConvSpec& s) { s.window.pad_w = 2; },
    [](ConvSpec& s) { s.window.dilation_h = 2; },
    [](ConvSpec& s) { s.window.dilation_w = 2; },
    [](ConvSpec& s) { s.groups = 2; },
    [](ConvSpec& s) { s.groups = 32; },
    [](ConvSpec& s) { s.dtype = DType::kBF16; },
    [](ConvSpec& s) { s.dtype = s.out_dtype = DType::kBF16; },
    [](ConvSpec& s) { s.bias = true; },
    [](ConvSpec& s) { s.allow_tf32 = true; },
};

// Expects each change to give a valid, different spec, with a different key
// that a choice cache accepts.
template <typename Spec>
void ExpectAllDiffer(const Spec& base,
                     const std::vector<std::function<void(Spec&)>>& changes) {
  ChoiceCache choices("a device");
  std::set<std::string> keys = {base.Key()};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Spec spec = base;
    EXPECT_TRUE(spec == base);
    changes[i](spec);
    EXPECT_TRUE(spec.Check().ok()) << spec.Check();
    EXPECT_FALSE(spec == base) << "change " << i;
    EXPECT_TRUE(keys.insert(spec.Key()).second) << spec.Key();
    choices.Put(spec.Key(), "x");
    EXPECT_NE(choices.Find(spec.Key()), nullptr);
  }
}

TEST(MatmulSpec, KeysTellAllSpecsApart) {
  ExpectAllDiffer(Product(), kOfAProduct);
}

TEST(ConvSpec, KeysTellAllSpecsApart) {
  ExpectAllDiffer(Convolution(), kOfAConvolution);
}

TEST(MatmulSpec, KeysCanBeRead) {
  MatmulSpec spec = Product();
  EXPECT_EQ(spec.Key(), "matmul:f32:f32:768.3072.8192:nn:none");
  spec.transpose_a = spec.accumulate = spec.allow_tf32 = true;
  spec.dtype = DType::kBF16;
  spec.epilogue = Epilogue::kRowSums;
  EXPECT_EQ(spec.Key(), "matmul:bf16:f32:768.3072.8192:tn:row_sums+acc+tf32");
}

TEST(ConvSpec, KeysCanBeRead) {
  ConvSpec spec = Convolution();
  spec.window.stride_w = 2;
  spec.window.pad_h = 1;
  spec.bias = true;
  EXPECT_EQ(spec.Key(),
            "conv_forward:f32:f32:32.56.57.64:128.3.5:s1.2:p1.0+bias");
  EXPECT_EQ(spec.P(), 56);
  EXPECT_EQ(spec.Q(), 27);
  EXPECT_EQ(spec.image_elems(), 32 * 56 * 57 * 64);
  EXPECT_EQ(spec.weight_elems(), 128 * 3 * 5 * 64);
  EXPECT_EQ(spec.output_elems(), 32 * 56 * 27 * 128);
  spec.bias = false;
  spec.window.dilation_h = 3;
  spec.groups = 16;
  EXPECT_EQ(spec.Key(),
            "conv_forward:f32:f32:32.56.57.64:128.3.5:s1.2:p1.0:d3.1:g16");
  EXPECT_EQ(spec.P(), 52);
  EXPECT_EQ(spec.weight_elems(), 128 * 3 * 5 * 4);
}

// A change that Check() must refuse, and a word of its message.
template <typename Spec>
struct Wrong {
  std::function<void(Spec&)> change;
  const char* word;
};

template <typename Spec>
void ExpectRefused(const Spec& base, const std::vector<Wrong<Spec>>& wrongs) {
  for (const Wrong<Spec>& wrong : wrongs) {
    Spec spec = base;
    wrong.change(spec);
    const absl::Status status = spec.Check();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec.Key();
    EXPECT_NE(status.message().find(wrong.word), absl::string_view::npos)
        << status;
    EXPECT_EQ(status.message().find(spec.Key()), 0u) << status;
  }
}

TEST(MatmulSpec, WhatDoesNotGoTogetherIsRefused) {
  ExpectRefused<MatmulSpec>(
      Product(),
      {
          {[](MatmulSpec& s) { s.rows = 0; }, "extent"},
          {[](MatmulSpec& s) { s.cols = -1; }, "extent"},
          {[](MatmulSpec& s) { s.depth = std::int64_t{1} << 31; }, "extent"},
          {[](MatmulSpec& s) { s.dtype = DType::kF64; }, "operands"},
          {[](MatmulSpec& s) { s.dtype = DType::kI32; }, "operands"},
          {[](MatmulSpec& s) { s.out_dtype = DType::kBF16; }, "result"},
          {[](MatmulSpec& s) {
             s.epilogue = Epilogue::kBias;
             s.accumulate = true;
           },
           "epilogue"},
          {[](MatmulSpec& s) {
             s.epilogue = Epilogue::kGeluBias;
             s.cols = 12;
           },
           "multiple of 8"},
      });
  MatmulSpec spec = Product();
  spec.epilogue = Epilogue::kRowSums;
  spec.accumulate = true;
  EXPECT_TRUE(spec.Check().ok());
}

TEST(ConvSpec, WhatDoesNotGoTogetherIsRefused) {
  ExpectRefused<ConvSpec>(
      Convolution(),
      {
          {[](ConvSpec& s) { s.C = 0; }, "extent"},
          {[](ConvSpec& s) { s.window.stride_h = 0; }, "extent"},
          {[](ConvSpec& s) { s.window.pad_w = -1; }, "padding"},
          {[](ConvSpec& s) { s.window.kernel_h = 57; }, "window"},
          {[](ConvSpec& s) { s.window.dilation_h = 28; }, "window"},
          {[](ConvSpec& s) { s.window.dilation_w = 0; }, "extent"},
          {[](ConvSpec& s) { s.groups = 0; }, "extent"},
          {[](ConvSpec& s) { s.groups = 3; }, "groups"},
          {[](ConvSpec& s) { s.dtype = DType::kU8; }, "operands"},
          {[](ConvSpec& s) { s.out_dtype = DType::kF16; }, "result"},
          {[](ConvSpec& s) {
             s.way = ConvWay::kBackwardWeight;
             s.bias = true;
           },
           "bias"},
      });
}

void* At(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

TEST(CheckOperands, NamesWhatIsMissingOrNotAligned) {
  MatmulSpec spec = Product();
  spec.epilogue = Epilogue::kGeluBias;
  MatmulOperands operands;
  operands.a = At(16), operands.b = At(32), operands.c = At(48);
  operands.bias = At(64);
  EXPECT_NE(CheckOperands(spec, operands).message().find("aux is missing"),
            absl::string_view::npos);
  operands.aux = At(88);
  EXPECT_NE(CheckOperands(spec, operands).message().find("aux is not aligned"),
            absl::string_view::npos);
  operands.aux = At(96);
  EXPECT_TRUE(CheckOperands(spec, operands).ok());
  // Operands that the epilogue does not use may have any value.
  spec.epilogue = Epilogue::kNone;
  operands.aux = At(3);
  operands.bias = nullptr;
  EXPECT_TRUE(CheckOperands(spec, operands).ok());
}

TEST(CheckOperands, AConvolutionNeedsABiasOnlyWhereThePlanAddsIt) {
  ConvSpec spec = Convolution();
  spec.bias = true;
  ConvOperands operands;
  operands.image = At(16), operands.weight = At(32), operands.output = At(48);
  EXPECT_TRUE(CheckOperands(spec, operands, /*adds_bias=*/false).ok());
  EXPECT_FALSE(CheckOperands(spec, operands, /*adds_bias=*/true).ok());
  operands.bias = At(64);
  EXPECT_TRUE(CheckOperands(spec, operands, /*adds_bias=*/true).ok());
  operands.output = nullptr;
  EXPECT_FALSE(CheckOperands(spec, operands, /*adds_bias=*/true).ok());
}

}  // namespace
}  // namespace troupe::nn::cuda
