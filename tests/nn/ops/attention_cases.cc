#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

// How the operands are packed (nn/kernels/attention.h).
enum class Packing { kApart, kKeysAndValues, kAll };

struct AttentionCase {
  std::string name;
  std::int64_t N, T, S, Hq, Hkv, D;
  bool causal;
  Packing packing = Packing::kApart;
  double scale = 0.3;
  // False if the gradients are differences of nearly equal numbers.
  bool differentiable = true;
  bool dropout = false;
  std::int64_t first_draw = 0;

  // Returns the shapes of q, k and v, or of the packed operands.
  std::vector<Shape> Operands() const {
    switch (packing) {
      case Packing::kAll:
        return {{N, T, Hq + 2 * Hkv, D}};
      case Packing::kKeysAndValues:
        return {{N, T, Hq, D}, {N, S, 2 * Hkv, D}};
      case Packing::kApart:
        break;
    }
    return {{N, T, Hq, D}, {N, S, Hkv, D}, {N, S, Hkv, D}};
  }
};

DropoutMask MaskFrom(std::int64_t first_draw) {
  DropoutMask mask{{RandomKey(/*seed=*/7, Purpose::kDropout), {5, 6, 7}}};
  mask.first = first_draw;
  mask.drop_below = 0x60000000;
  mask.scale = 1.6;
  return mask;
}

void AddAttention(const AttentionCase& c, std::vector<OpCase>& all) {
  const Shape y = {c.N, c.T, c.Hq, c.D};
  const Shape lse = {c.N, c.Hq, c.T};
  AttentionRule rule;
  rule.causal = c.causal;
  rule.scale = c.scale;
  if (c.dropout) rule.dropout = MaskFrom(c.first_draw);
  std::vector<Operand> in, gradients;
  for (const Shape& shape : c.Operands()) {
    in.push_back(Normal(shape));
    gradients.push_back(Poison(shape));
  }
  const std::size_t parts = in.size();
  const auto part = [parts](auto list, std::size_t i) {
    return i < parts ? list[i] : Tensor();
  };
  all.push_back({"attention_" + c.name,
                 in,
                 {Poison(y), {lse, Operand::Fill::kPoison, DType::kF32}},
                 [=](Kernels& k, Inputs in, Outputs out) {
                   return k.AttentionForward(rule, in[0], part(in, 1),
                                             part(in, 2), out[0], out[1]);
                 }});
  if (!c.differentiable) return;
  in.push_back(Normal(y));  // dy
  all.push_back(
      {"attention_backward_" + c.name, in, gradients,
       [=](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         Tensor made_y = Tensor::Empty(y, in[0].dtype(), k.allocator());
         Tensor made_lse = Tensor::Empty(lse, DType::kF32, k.allocator());
         Tensor dk = part(out, 1), dv = part(out, 2);
         TROUPE_RETURN_IF_ERROR(k.AttentionForward(
             rule, in[0], part(in, 1), part(in, 2), made_y, made_lse));
         return k.AttentionBackward(rule, in[0], part(in, 1), part(in, 2),
                                    made_y, made_lse, in[parts], out[0], dk,
                                    dv);
       }});
}

void AddWithDropout(const AttentionCase& c, std::vector<OpCase>& all) {
  AttentionCase dropped = c;
  dropped.name = "dropout_" + c.name;
  dropped.dropout = true;
  AddAttention(dropped, all);
}

}  // namespace

void AddAttentionCases(std::vector<OpCase>& all) {
  AddAttention({"empty", 0, 3, 3, 2, 2, 4, false}, all);
  AddAttention({"one", 1, 1, 1, 1, 1, 1, false}, all);
  AddAttention({"plain", 2, 5, 7, 3, 3, 8, false}, all);
  AddAttention({"causal", 2, 13, 13, 2, 2, 16, true}, all);
  AddAttention({"causal_more_keys", 1, 5, 40, 2, 2, 5, true}, all);
  AddAttention({"causal_more_queries", 1, 37, 6, 1, 1, 24, true}, all);
  AddAttention({"grouped", 2, 9, 33, 6, 2, 12, false}, all);
  AddAttention({"packed", 2, 35, 35, 2, 2, 32, true, Packing::kAll}, all);
  AddAttention({"packed_grouped", 1, 17, 17, 4, 2, 7, true, Packing::kAll},
               all);
  AddAttention({"keys_and_values_packed", 1, 6, 70, 2, 1, 64, false,
                Packing::kKeysAndValues},
               all);
  AddAttention({"wide", 1, 20, 19, 1, 1, 128, false}, all);
  AddAttention({"odd_width", 1, 18, 65, 2, 1, 67, false}, all);
  // More than one block of keys and of queries everywhere.
  AddAttention({"blocks", 1, 150, 550, 1, 1, 8, false}, all);
  AddAttention({"blocks_causal", 1, 530, 530, 1, 1, 4, true}, all);
  AddAttention(
      {"negative_scale", 1, 8, 9, 1, 1, 4, true, Packing::kApart, -0.4}, all);
  // Exponents that overflow unless the largest score is subtracted.
  AddAttention({"large_scale", 1, 8, 40, 1, 1, 16, false, Packing::kApart, 40,
                /*differentiable=*/false},
               all);
  AddWithDropout({"plain", 2, 5, 7, 3, 3, 8, false}, all);
  AddWithDropout({"causal_more_keys", 2, 9, 44, 2, 2, 6, true}, all);
  AddWithDropout({"causal_more_queries", 1, 37, 6, 1, 1, 24, true}, all);
  AddWithDropout({"grouped", 2, 9, 33, 6, 2, 12, false}, all);
  AddWithDropout({"packed_grouped", 2, 35, 35, 4, 2, 32, true, Packing::kAll},
                 all);
  AddWithDropout({"blocks", 1, 150, 550, 1, 1, 8, false}, all);
  AddWithDropout({"blocks_causal", 1, 530, 530, 2, 1, 4, true}, all);
  AttentionCase later_heads = {"later_heads", 2, 9, 44, 2, 2, 6, true};
  later_heads.first_draw = 4 * 3 * 9 * 11;  // three heads come before
  AddWithDropout(later_heads, all);
}

}  // namespace troupe::nn
