#include "tests/nn/ops/op_case.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

using Fill = Operand::Fill;

Operand Normal(const Shape& shape) { return {shape, Fill::kNormal, {}, 0}; }
Operand Poison(const Shape& shape) { return {shape, Fill::kPoison, {}, 0}; }
// The gradient that an op adds to, or overwrites.
Operand Gradient(bool accumulate, const Shape& shape) {
  return accumulate ? Normal(shape) : Poison(shape);
}
Operand Stats() { return {{3}, Fill::kPoison, DType::kF64, 0}; }

void AddLinear(std::int64_t N, std::int64_t K, std::int64_t M,
               std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(N, "x", K, "x", M);
  const Operand x = Normal({N, K}), w = Normal({M, K}), b = Normal({M});
  const Operand dy = Normal({N, M});
  all.push_back({absl::StrCat("linear_", size),
                 {x, w, b},
                 {Poison({N, M})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearForward(in[0], in[1], in[2], out[0]);
                 }});
  all.push_back({absl::StrCat("linear_no_bias_", size),
                 {x, w},
                 {Poison({N, M})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearForward(in[0], in[1], Tensor(), out[0]);
                 }});
  all.push_back({absl::StrCat("linear_dx_", size),
                 {dy, w},
                 {Poison({N, K})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearBackwardInput(in[0], in[1], out[0]);
                 }});
  for (bool accumulate : {false, true}) {
    all.push_back({absl::StrCat("linear_dw_", accumulate ? "added_" : "", size),
                   {x, dy},
                   {Gradient(accumulate, {M, K}), Gradient(accumulate, {M})},
                   [accumulate](Kernels& k, Inputs in, Outputs out) {
                     return k.LinearBackwardWeight(in[0], in[1], accumulate,
                                                   out[0], out[1]);
                   }});
  }
  all.push_back({absl::StrCat("linear_dw_no_bias_", size),
                 {x, dy},
                 {Poison({M, K})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.LinearBackwardWeight(in[0], in[1], false, out[0],
                                                 none);
                 }});
}

struct ImageCase {
  std::string name;
  Shape x;  // N, H, W, C
  std::int64_t O;
  Window2d window;

  Shape Output(std::int64_t channels) const {
    return {x[0], window.OutH(x[1]), window.OutW(x[2]), channels};
  }
};

void AddConv2d(const ImageCase& c, std::vector<OpCase>& all) {
  const Window2d win = c.window;
  const Shape w_shape = {c.O, c.x[3], win.kernel_h, win.kernel_w};
  const Operand x = Normal(c.x), w = Normal(w_shape), b = Normal({c.O});
  const Operand dy = Normal(c.Output(c.O));
  all.push_back({"conv2d_" + c.name,
                 {x, w, b},
                 {Poison(c.Output(c.O))},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   return k.Conv2dForward(win, in[0], in[1], in[2], out[0]);
                 }});
  all.push_back({"conv2d_no_bias_" + c.name,
                 {x, w},
                 {Poison(c.Output(c.O))},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   return k.Conv2dForward(win, in[0], in[1], Tensor(), out[0]);
                 }});
  all.push_back({"conv2d_dx_" + c.name,
                 {dy, w},
                 {Poison(c.x)},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   return k.Conv2dBackwardInput(win, in[0], in[1], out[0]);
                 }});
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("conv2d_dw_", accumulate ? "added_" : "", c.name),
         {x, dy},
         {Gradient(accumulate, w_shape), Gradient(accumulate, {c.O})},
         [win, accumulate](Kernels& k, Inputs in, Outputs out) {
           return k.Conv2dBackwardWeight(win, in[0], in[1], accumulate, out[0],
                                         out[1]);
         }});
  }
  all.push_back({"conv2d_dw_no_bias_" + c.name,
                 {x, dy},
                 {Poison(w_shape)},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.Conv2dBackwardWeight(win, in[0], in[1], false,
                                                 out[0], none);
                 }});
}

void AddPool2d(const ImageCase& c, std::vector<OpCase>& all) {
  const Window2d win = c.window;
  const Shape y = c.Output(c.x[3]);
  const Operand argmax = {y, Fill::kZero, DType::kI32, 0};
  for (Fill fill : {Fill::kNormal, Fill::kSpecial}) {
    const std::string suffix = fill == Fill::kSpecial ? "_special" : "";
    all.push_back({absl::StrCat("max_pool2d_", c.name, suffix),
                   {{c.x, fill, {}, 0}, Normal(y)},
                   {Poison(y), argmax, Poison(c.x)},
                   [win](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(
                         k.MaxPool2dForward(win, in[0], out[0], out[1]));
                     return k.MaxPool2dBackward(win, in[1], out[1], out[2]);
                   }});
  }
  all.push_back({"avg_pool2d_" + c.name,
                 {Normal(c.x), Normal(y)},
                 {Poison(y), Poison(c.x)},
                 [win](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(
                       k.AvgPool2dForward(win, in[0], out[0]));
                   return k.AvgPool2dBackward(win, in[1], out[1]);
                 }});
}

void AddElementWise(std::int64_t n, std::vector<OpCase>& all) {
  const std::string size = absl::StrCat("_", n);
  const Operand x = Normal({n}), y = Poison({n});
  const Operand special = {{n}, Fill::kSpecial, {}, 0};
  for (const Operand& in : {x, special}) {
    const char* kind = in.fill == Fill::kSpecial ? "_special" : "";
    all.push_back({absl::StrCat("relu", kind, size),
                   {in, x},
                   {y, y},
                   [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(k.ReluForward(in[0], out[0]));
                     return k.ReluBackward(out[0], in[1], out[1]);
                   },
                   /*element_wise=*/true});
    all.push_back({absl::StrCat("add", kind, size),
                   {in, x},
                   {y},
                   [](Kernels& k, Inputs in, Outputs out) {
                     return k.Add(in[0], in[1], out[0]);
                   },
                   /*element_wise=*/true});
  }
  all.push_back({"relu_in_place" + size,
                 {},
                 {x, x},
                 [](Kernels& k, Inputs, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.ReluForward(out[0], out[0]));
                   return k.ReluBackward(out[0], out[1], out[1]);
                 },
                 /*element_wise=*/true});
  all.push_back({"add_in_place" + size,
                 {x},
                 {x},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.Add(out[0], in[0], out[0]);
                 },
                 /*element_wise=*/true});
  all.push_back({"scale" + size,
                 {x, {{1}, Fill::kNormal, DType::kF64, 0}},
                 {y, x},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Scale(out[1], in[1], out[1]));
                   return k.Scale(in[0], in[1], out[0]);
                 }});
  all.push_back({"count_non_finite" + size,
                 {Normal({n}), {{n}, Fill::kSpecial, {}, 0}},
                 {{{1}, Fill::kNormal, DType::kF64, 0}},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.CountNonFinite(in[0], out[0]));
                   return k.CountNonFinite(in[1], out[0]);
                 }});
  all.push_back(
      {"fill" + size,
       {},
       {y},
       [](Kernels& k, Inputs, Outputs out) { return k.Fill(-0.3, out[0]); },
       /*element_wise=*/true});
}

void AddCopy(DType to, std::vector<OpCase>& all) {
  all.push_back(
      {absl::StrCat("copy_to_", DTypeName(to)),
       {Normal({1000}), {{1000}, Fill::kSpecial, {}, 0}},
       {{{1000}, Fill::kPoison, to, 0}, {{1000}, Fill::kPoison, to, 0}},
       [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         TROUPE_RETURN_IF_ERROR(k.Copy(in[0], out[0]));
         return k.Copy(in[1], out[1]);
       },
       /*element_wise=*/true});
}

void AddTransposes(const Shape& nhwc, std::vector<OpCase>& all) {
  const Shape nchw = {nhwc[0], nhwc[3], nhwc[1], nhwc[2]};
  const std::string size =
      absl::StrCat(nhwc[0], "x", nhwc[1], "x", nhwc[2], "x", nhwc[3]);
  all.push_back({"nhwc_to_nchw_" + size,
                 {Normal(nhwc)},
                 {Poison(nchw)},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.NhwcToNchw(in[0], out[0]);
                 }});
  all.push_back({"nchw_to_nhwc_" + size,
                 {Normal(nchw)},
                 {Poison(nhwc)},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.NchwToNhwc(in[0], out[0]);
                 }});
}

void AddLosses(std::int64_t N, std::int64_t C, std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(N, "x", C);
  const Operand labels = {{N}, Fill::kLabels, DType::kI64, C};
  all.push_back({"cross_entropy_" + size,
                 {Normal({N, C}), labels},
                 {Stats(), Poison({N, C})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.SoftmaxCrossEntropy(in[0], in[1], kIgnoredLabel,
                                                out[0], out[1]);
                 }});
  all.push_back({"cross_entropy_stats_" + size,
                 {Normal({N, C}), labels},
                 {Stats()},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.SoftmaxCrossEntropy(in[0], in[1], kIgnoredLabel,
                                                out[0], none);
                 }});
  all.push_back({"mse_" + size,
                 {Normal({N, C}), Normal({N, C})},
                 {Stats(), Poison({N, C})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.MeanSquaredError(in[0], in[1], out[0], out[1]);
                 }});
  all.push_back({"mse_stats_" + size,
                 {Normal({N, C}), Normal({N, C})},
                 {Stats()},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.MeanSquaredError(in[0], in[1], out[0], none);
                 }});
}

void AddEmbedding(std::int64_t R, std::int64_t V, std::int64_t D,
                  std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(R, "x", V, "x", D);
  const Operand rows = {{R}, Fill::kRows, DType::kI64, V};
  all.push_back({"embedding_" + size,
                 {rows, Normal({V, D})},
                 {Poison({R, D})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.EmbeddingForward(in[0], in[1], out[0]);
                 }});
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("embedding_dw_", accumulate ? "added_" : "", size),
         {rows, Normal({R, D})},
         {Gradient(accumulate, {V, D})},
         [accumulate](Kernels& k, Inputs in, Outputs out) {
           return k.EmbeddingBackward(in[0], in[1], accumulate, out[0]);
         }});
  }
}

void AddDropout(const Shape& x, std::vector<OpCase>& all) {
  DropoutMask mask{{RandomKey(/*seed=*/7, Purpose::kDropout), {5, 6, 7}}};
  mask.drop_below = 0x60000000;
  mask.scale = 1.6;
  all.push_back({absl::StrCat("dropout_", x[0], "x", x.numel()),
                 {Normal(x)},
                 {Poison(x), Normal(x)},
                 [mask](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Dropout(mask, in[0], out[0]));
                   return k.Dropout(mask, out[1], out[1]);
                 }});
}

void AddCombinedLosses(std::vector<OpCase>& all) {
  const Operand loss = {{3}, Fill::kNormal, DType::kF64, 0};
  all.push_back(
      {"scale_loss", {loss}, {Stats()}, [](Kernels& k, Inputs in, Outputs out) {
         return k.CombineLosses(in[0], 0.3, Tensor(), 0, out[0]);
       }});
  all.push_back({"add_losses",
                 {loss, loss},
                 {Stats(), loss},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(
                       k.CombineLosses(in[0], 1, out[1], -0.7, out[1]));
                   TROUPE_RETURN_IF_ERROR(k.Add(in[0], in[1], out[0]));
                   return k.CombineLosses(in[0], 1, out[0], 1, out[0]);
                 }});
}

void AddSgd(const std::string& name, const SgdStep& options, std::int64_t n,
            std::vector<OpCase>& all) {
  const bool has_momentum = options.momentum != 0;
  OpCase sgd;
  sgd.name = absl::StrCat("sgd_", name, "_", n);
  sgd.inputs = {Normal({n}), Normal({n}), Normal({n})};
  sgd.outputs = {Normal({n})};
  if (has_momentum) sgd.outputs.push_back(Poison({n}));
  sgd.element_wise = true;
  sgd.run = [options, has_momentum](Kernels& k, Inputs grads,
                                    Outputs out) -> absl::Status {
    SgdStep step = options;
    Tensor none;
    for (const Tensor& grad : grads) {
      TROUPE_RETURN_IF_ERROR(
          k.SgdUpdate(step, grad, out[0], has_momentum ? out[1] : none));
      step.first_step = false;
    }
    return absl::OkStatus();
  };
  all.push_back(std::move(sgd));
}

void AddAllSgd(std::int64_t n, std::vector<OpCase>& all) {
  SgdStep plain;
  plain.lr = 0.1;
  plain.divisor = 3;
  SgdStep decay = plain;
  decay.weight_decay = 0.01;
  SgdStep momentum = decay;
  momentum.momentum = 0.9;
  momentum.dampening = 0.1;
  SgdStep nesterov = decay;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  AddSgd("plain", plain, n, all);
  AddSgd("decay", decay, n, all);
  AddSgd("momentum", momentum, n, all);
  AddSgd("nesterov", nesterov, n, all);
}

void AddImages(std::vector<OpCase>& all) {
  const Window2d five{5, 5}, three_same{3, 3, 1, 1, 1, 1};
  AddConv2d({"lenet1", {4, 28, 28, 1}, 6, five}, all);
  AddConv2d({"lenet2", {4, 12, 12, 6}, 16, five}, all);
  AddConv2d({"colour", {2, 16, 16, 3}, 6, five}, all);
  AddConv2d({"same_3x3", {2, 9, 7, 16}, 32, three_same}, all);
  AddConv2d({"strided", {3, 10, 11, 5}, 7, {3, 2, 2, 3, 1, 1}}, all);
  AddConv2d({"pointwise", {2, 5, 6, 24}, 13, {1, 1}}, all);
  AddConv2d({"whole_image", {3, 4, 4, 2}, 3, {4, 4}}, all);
  AddConv2d({"leftover", {1, 8, 8, 3}, 4, {3, 3, 4, 4, 0, 0}}, all);
  AddConv2d({"one_pixel", {1, 1, 1, 1}, 1, three_same}, all);
  AddPool2d({"2x2", {3, 24, 24, 6}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"2x2_odd", {2, 7, 5, 3}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"3x3_overlap", {2, 9, 8, 17}, 0, {3, 3, 2, 2, 1, 1}}, all);
  AddPool2d({"tall", {1, 9, 4, 5}, 0, {3, 2, 1, 2, 1, 0}}, all);
  AddConv2d({"empty_batch", {0, 14, 14, 6}, 16, five}, all);
  AddConv2d({"empty_batch_grey", {0, 9, 9, 1}, 32, three_same}, all);
  AddConv2d({"empty_batch_channels", {0, 4, 4, 16}, 16, three_same}, all);
  AddConv2d({"empty_batch_pointwise", {0, 5, 6, 24}, 13, {1, 1}}, all);
  AddPool2d({"empty_batch", {0, 24, 24, 6}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"empty_batch_overlap", {0, 9, 8, 17}, 0, {3, 3, 2, 2, 1, 1}}, all);
  AddTransposes({0, 5, 5, 16}, all);
  AddTransposes({2, 5, 5, 16}, all);
  AddTransposes({3, 4, 7, 5}, all);
}

}  // namespace

std::vector<OpCase> AllOpCases() {
  std::vector<OpCase> all;
  AddLinear(1, 1, 1, all);
  AddLinear(20, 10, 5, all);
  AddLinear(7, 33, 17, all);
  AddLinear(32, 784, 48, all);
  AddLinear(64, 120, 84, all);
  AddLinear(1, 512, 10, all);
  AddLinear(0, 33, 17, all);
  AddImages(all);
  for (std::int64_t n : {0, 1, 7, 16, 64, 1000}) {
    AddElementWise(n, all);
    AddAllSgd(n, all);
  }
  for (DType to : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    AddCopy(to, all);
  }
  AddLosses(0, 10, all);
  AddLosses(1, 2, all);
  AddLosses(32, 10, all);
  AddLosses(13, 1000, all);
  AddCombinedLosses(all);
  AddEmbedding(0, 3, 4, all);
  AddEmbedding(1, 1, 1, all);
  AddEmbedding(40, 17, 33, all);
  AddDropout({0, 5}, all);
  AddDropout({3, 7}, all);
  AddDropout({2, 33, 70}, all);
  return all;
}

}  // namespace troupe::nn
