#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

const BatchNormRule kRule;

Operand F64(const Shape& shape) {
  return {shape, Operand::Fill::kPoison, DType::kF64, 0};
}
Operand SumsOf(std::int64_t C) { return F64({2 * C + 1}); }
Operand StatsOf(std::int64_t C) { return F64({2, C}); }

// Computes statistics of x, by both kernels.
absl::Status Statistics(Kernels& k, const Tensor& x, Tensor& sums,
                        Tensor& stats) {
  Tensor none;
  TROUPE_RETURN_IF_ERROR(k.BatchNormSums(x, sums));
  return k.BatchNormStats(sums, kRule, stats, none, none, none);
}

void AddForward(std::int64_t R, std::int64_t C, bool relu, bool residual,
                std::vector<OpCase>& all) {
  const Operand x = Normal({R, C}), w = Normal({C});
  all.push_back({absl::StrCat("batch_norm", relu ? "_relu" : "",
                              residual ? "_residual_" : "_", R, "x", C),
                 {x, w, w, x},
                 {Poison({R, C}), SumsOf(C), StatsOf(C)},
                 [=](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(Statistics(k, in[0], out[1], out[2]));
                   return k.BatchNormForward(in[0], out[2], in[1], in[2],
                                             residual ? in[3] : Tensor(), relu,
                                             out[0]);
                 }});
}

void AddBackward(std::int64_t R, std::int64_t C, bool relu,
                 std::vector<OpCase>& all) {
  const Operand x = Normal({R, C}), w = Normal({C});
  for (bool evaluates : {false, true}) {
    all.push_back(
        {absl::StrCat("batch_norm_dx", relu ? "_relu" : "",
                      evaluates ? "_eval_" : "_", R, "x", C),
         {x, w, w, x},
         {Poison({R, C}), SumsOf(C), StatsOf(C), SumsOf(C)},
         [=](Kernels& k, Inputs in, Outputs out) -> absl::Status {
           TROUPE_RETURN_IF_ERROR(Statistics(k, in[0], out[1], out[2]));
           TROUPE_RETURN_IF_ERROR(k.BatchNormBackwardSums(
               in[0], out[2], in[1], in[2], in[3], relu, out[3]));
           return k.BatchNormBackwardInput(in[0], out[2], in[1], in[2], in[3],
                                           relu, evaluates ? Tensor() : out[3],
                                           out[0]);
         }});
  }
}

// NaN and infinities, with statistics that were kept: backward through the ReLU
// passes dy where z is NaN.
void AddSpecial(std::int64_t R, std::int64_t C, std::vector<OpCase>& all) {
  const Operand special = {{R, C}, Operand::Fill::kSpecial, {}, 0};
  const Operand mean = {{C}, Operand::Fill::kNormal, DType::kF32, 0};
  all.push_back(
      {absl::StrCat("batch_norm_relu_special_", R, "x", C),
       {special, Normal({C}), Normal({R, C}), mean},
       {Poison({R, C}), StatsOf(C), SumsOf(C), Poison({R, C})},
       [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         Tensor var = Tensor::Empty(in[3].shape(), DType::kF32, k.allocator());
         TROUPE_RETURN_IF_ERROR(k.Fill(2.0, var));
         TROUPE_RETURN_IF_ERROR(
             k.BatchNormRunningStats(in[3], var, kRule.eps, out[1]));
         TROUPE_RETURN_IF_ERROR(k.BatchNormForward(
             in[0], out[1], in[1], in[1], Tensor(), /*relu=*/true, out[0]));
         TROUPE_RETURN_IF_ERROR(k.BatchNormBackwardSums(
             in[0], out[1], in[1], in[1], in[2], /*relu=*/true, out[2]));
         return k.BatchNormBackwardInput(in[0], out[1], in[1], in[1], in[2],
                                         /*relu=*/true, Tensor(), out[3]);
       }});
}

void AddWeights(std::int64_t C, bool accumulate, std::vector<OpCase>& all) {
  const Operand gradient = Gradient(accumulate, {C});
  all.push_back(
      {absl::StrCat("batch_norm_dw_", accumulate ? "added_" : "", C),
       {{{2 * C + 1}, Operand::Fill::kNormal, DType::kF64, 0}},
       {gradient, gradient, gradient},
       [accumulate](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         Tensor none;
         TROUPE_RETURN_IF_ERROR(
             k.BatchNormBackwardWeight(in[0], accumulate, out[0], out[1]));
         return k.BatchNormBackwardWeight(in[0], accumulate, out[2], none);
       }});
}

// Adds running statistics of f32 and f64, after one batch and after the next.
void AddRunning(std::int64_t C, DType running, double momentum,
                std::vector<OpCase>& all) {
  const Operand kept = {{C}, Operand::Fill::kZero, running, 0};
  const Operand count = {{}, Operand::Fill::kZero, DType::kI64, 0};
  const BatchNormRule rule = {/*eps=*/1e-3, momentum};
  all.push_back(
      {absl::StrCat("batch_norm_running_", DTypeName(running),
                    momentum < 0 ? "_average_" : "_", C),
       {Normal({11, C}), Normal({4, C})},
       {SumsOf(C), StatsOf(C), kept, kept, count, StatsOf(C), SumsOf(C)},
       [rule](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         TROUPE_RETURN_IF_ERROR(k.BatchNormSums(in[0], out[0]));
         TROUPE_RETURN_IF_ERROR(
             k.BatchNormStats(out[0], rule, out[1], out[2], out[3], out[4]));
         TROUPE_RETURN_IF_ERROR(k.BatchNormSums(in[1], out[6]));
         TROUPE_RETURN_IF_ERROR(
             k.BatchNormStats(out[6], rule, out[1], out[2], out[3], out[4]));
         return k.BatchNormRunningStats(out[2], out[3], rule.eps, out[5]);
       }});
}

// Sums over no rows are zeros, and running statistics do not change.
void AddEmpty(std::int64_t C, bool relu, std::vector<OpCase>& all) {
  const Operand x = Normal({0, C}), w = Normal({C});
  const Operand kept = {{C}, Operand::Fill::kNormal, DType::kF32, 0};
  const Operand count = {{}, Operand::Fill::kZero, DType::kI64, 0};
  all.push_back(
      {absl::StrCat("batch_norm_empty_batch_", relu ? "relu_" : "", C),
       {x, w},
       {Poison({0, C}), SumsOf(C), SumsOf(C), kept, kept, count, Poison({0, C}),
        Poison({C}), Poison({C})},
       [relu](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         Tensor stats =
             Tensor::Empty({2, in[1].numel()}, DType::kF64, k.allocator());
         TROUPE_RETURN_IF_ERROR(k.BatchNormSums(in[0], out[1]));
         TROUPE_RETURN_IF_ERROR(
             k.BatchNormStats(out[1], kRule, stats, out[3], out[4], out[5]));
         TROUPE_RETURN_IF_ERROR(k.BatchNormForward(in[0], stats, in[1], in[1],
                                                   Tensor(), relu, out[0]));
         TROUPE_RETURN_IF_ERROR(k.BatchNormBackwardSums(
             in[0], stats, in[1], in[1], in[0], relu, out[2]));
         TROUPE_RETURN_IF_ERROR(k.BatchNormBackwardInput(
             in[0], stats, in[1], in[1], in[0], relu, out[2], out[6]));
         return k.BatchNormBackwardWeight(out[2], false, out[7], out[8]);
       }});
}

}  // namespace

void AddBatchNormCases(std::vector<OpCase>& all) {
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {9, 1}, {20, 5}, {300, 3}, {49, 64}, {130, 37}, {3, 520}};
  for (auto [R, C] : sizes) {
    for (bool relu : {false, true}) {
      AddForward(R, C, relu, /*residual=*/false, all);
      AddForward(R, C, relu, /*residual=*/true, all);
      AddBackward(R, C, relu, all);
    }
  }
  AddSpecial(7, 13, all);
  AddSpecial(40, 3, all);
  for (std::int64_t C : {1, 37}) {
    AddWeights(C, /*accumulate=*/false, all);
    AddWeights(C, /*accumulate=*/true, all);
    for (DType running : {DType::kF32, DType::kF64}) {
      AddRunning(C, running, /*momentum=*/0.1, all);
      AddRunning(C, running, /*momentum=*/-1, all);
    }
    AddEmpty(C, /*relu=*/false, all);
    AddEmpty(C, /*relu=*/true, all);
  }
}

}  // namespace troupe::nn
