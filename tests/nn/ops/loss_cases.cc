#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

Operand Stats() { return {{3}, Operand::Fill::kPoison, DType::kF64, 0}; }

void AddLosses(std::int64_t N, std::int64_t C, std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(N, "x", C);
  const Operand labels = {{N}, Operand::Fill::kLabels, DType::kI64, C};
  all.push_back({"cross_entropy_" + size,
                 {Normal({N, C}), labels},
                 {Stats(), Poison({N, C})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.SoftmaxCrossEntropy(in[0], in[1], kIgnoredLabel,
                                                out[0], out[1]);
                 }});
  all.push_back({"cross_entropy_over_logits_" + size,
                 {Normal({N, C}), labels},
                 {Stats(), Poison({N, C})},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Copy(in[0], out[1]));
                   return k.SoftmaxCrossEntropy(out[1], in[1], kIgnoredLabel,
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
                   return k.PairLoss({PairLossFunction::kSquaredError}, in[0],
                                     in[1], out[0], out[1]);
                 }});
  all.push_back({"mse_stats_" + size,
                 {Normal({N, C}), Normal({N, C})},
                 {Stats()},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.PairLoss({PairLossFunction::kSquaredError}, in[0],
                                     in[1], out[0], none);
                 }});
}

// Class weights and smoothed labels.
void AddWeighted(std::int64_t N, std::int64_t C, std::vector<OpCase>& all) {
  const Operand labels = {{N}, Operand::Fill::kLabels, DType::kI64, C};
  const Operand weights = {{C}, Operand::Fill::kNormal, DType::kF32, 0};
  for (const double smoothing : {0.0, 0.1}) {
    for (const bool weighted : {false, true}) {
      const std::string name = absl::StrCat(
          "weighted_cross_entropy", smoothing > 0 ? "_smoothed" : "",
          weighted ? "_by_class" : "", "_", N, "x", C);
      const auto of = [=](const Tensor& logits, Kernels& k, Inputs in,
                          Tensor& stats, Tensor& d) {
        return k.WeightedCrossEntropy(logits, in[1],
                                      weighted ? in[2] : Tensor(),
                                      {kIgnoredLabel, smoothing}, stats, d);
      };
      const auto run = [of](Kernels& k, Inputs in, Tensor& stats, Tensor& d) {
        return of(in[0], k, in, stats, d);
      };
      all.push_back({name + "_over_logits",
                     {Normal({N, C}), labels, weights},
                     {Stats(), Poison({N, C})},
                     [of](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                       TROUPE_RETURN_IF_ERROR(k.Copy(in[0], out[1]));
                       return of(out[1], k, in, out[0], out[1]);
                     }});
      all.push_back({name,
                     {Normal({N, C}), labels, weights},
                     {Stats(), Poison({N, C})},
                     [run](Kernels& k, Inputs in, Outputs out) {
                       return run(k, in, out[0], out[1]);
                     }});
      all.push_back({name + "_stats",
                     {Normal({N, C}), labels, weights},
                     {Stats()},
                     [run](Kernels& k, Inputs in, Outputs out) {
                       Tensor none;
                       return run(k, in, out[0], none);
                     }});
    }
  }
}

// Logits of `piece`, in P columns. The piece stands for all: the ranks' sums
// are its own, so a target in another piece has a logit of 0 above the largest.
void AddPiece(std::int64_t N, std::int64_t P, const ClassPiece& piece,
              std::vector<OpCase>& all) {
  const Operand labels = {
      {N}, Operand::Fill::kLabels, DType::kI64, piece.classes};
  const Operand weights = {
      {piece.classes}, Operand::Fill::kNormal, DType::kF32, 0};
  const Operand largest = {{N}, Operand::Fill::kPoison, DType::kF64, 0};
  const Operand sums = {
      {N, kNumPieceSums}, Operand::Fill::kPoison, DType::kF64, 0};
  const std::string size = absl::StrCat(N, "x", P, "_", piece.first, "_to_",
                                        piece.first + piece.count);
  for (const bool smooths : {false, true}) {
    const CrossEntropyRule rule = {kIgnoredLabel, smooths ? 0.1 : 0.0};
    const auto run = [=](const Tensor& logits, Kernels& k, Inputs in,
                         Outputs out, Tensor& d) -> absl::Status {
      const Tensor by_class = smooths ? in[2] : Tensor();
      TROUPE_RETURN_IF_ERROR(k.PieceLargest(logits, piece, out[0]));
      TROUPE_RETURN_IF_ERROR(
          k.PieceSums(logits, in[1], by_class, rule, piece, out[0], out[1]));
      return k.PieceCrossEntropy(logits, in[1], by_class, rule, piece, out[0],
                                 out[1], out[2], d);
    };
    const std::string name = absl::StrCat(
        "piece_cross_entropy", smooths ? "_smoothed_by_class" : "", "_", size);
    all.push_back({name + "_over_logits",
                   {Normal({N, P}), labels, weights},
                   {largest, sums, Stats(), Poison({N, P})},
                   [run](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(k.Copy(in[0], out[3]));
                     return run(out[3], k, in, out, out[3]);
                   }});
    all.push_back({name + "_stats",
                   {Normal({N, P}), labels, weights},
                   {largest, sums, Stats()},
                   [run](Kernels& k, Inputs in, Outputs out) {
                     Tensor none;
                     return run(in[0], k, in, out, none);
                   }});
  }
}

using PairKernel =
    std::function<absl::Status(Kernels&, Inputs, Tensor&, Tensor&)>;

void AddPairs(const std::string& name, std::int64_t N, std::int64_t C,
              const PairKernel& kernel, std::vector<OpCase>& all) {
  const std::string full = absl::StrCat(name, "_", N, "x", C);
  all.push_back({full,
                 {Normal({N, C}), Normal({N, C})},
                 {Stats(), Poison({N, C})},
                 [kernel](Kernels& k, Inputs in, Outputs out) {
                   return kernel(k, in, out[0], out[1]);
                 }});
  all.push_back({full + "_stats",
                 {Normal({N, C}), Normal({N, C})},
                 {Stats()},
                 [kernel](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return kernel(k, in, out[0], none);
                 }});
}

void AddAllPairs(std::int64_t N, std::int64_t C, std::vector<OpCase>& all) {
  AddPairs(
      "absolute_error", N, C,
      [](Kernels& k, Inputs in, Tensor& stats, Tensor& d) {
        return k.PairLoss({PairLossFunction::kAbsoluteError}, in[0], in[1],
                          stats, d);
      },
      all);
  AddPairs(
      "huber", N, C,
      [](Kernels& k, Inputs in, Tensor& stats, Tensor& d) {
        return k.PairLoss({PairLossFunction::kHuber, 0.7, 1.5}, in[0], in[1],
                          stats, d);
      },
      all);
  AddPairs(
      "bce_with_logits", N, C,
      [](Kernels& k, Inputs in, Tensor& stats, Tensor& d) {
        return k.PairLoss({PairLossFunction::kBceWithLogits, 2.5}, in[0], in[1],
                          stats, d);
      },
      all);
}

void AddCombinedLosses(std::vector<OpCase>& all) {
  const Operand loss = {{3}, Operand::Fill::kNormal, DType::kF64, 0};
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

}  // namespace

void AddLossCases(std::vector<OpCase>& all) {
  AddLosses(0, 10, all);
  AddLosses(1, 2, all);
  AddLosses(32, 10, all);
  AddLosses(13, 1000, all);
  AddLosses(201, 17, all);
  AddLosses(3, 4096, all);
  AddLosses(2, 2999, all);
  for (const auto& [N, C] :
       {std::pair(0, 10), std::pair(1, 2), std::pair(32, 10),
        std::pair(13, 1000), std::pair(201, 17), std::pair(2, 2999)}) {
    AddWeighted(N, C, all);
    AddAllPairs(N, C, all);
  }
  AddPiece(0, 5, {5, 4, 9}, all);
  AddPiece(33, 5, {0, 5, 9}, all);
  AddPiece(33, 5, {5, 4, 9}, all);
  AddPiece(201, 17, {34, 16, 50}, all);
  AddPiece(3, 2999, {2999, 2998, 5997}, all);
  AddCombinedLosses(all);
}

}  // namespace troupe::nn
