#include "nn/kernels/attention.h"

#include <optional>

#include "nn/kernels/cpu/widening.h"
#include "nn/random/fill_loops.h"

namespace troupe::nn::cpu {
namespace {

AttentionHeadShape HeadShape(const AttentionRule& rule,
                             const AttentionSizes& size,
                             const AttentionPlaces& in) {
  AttentionHeadShape shape = {};
  shape.queries = size.T;
  shape.keys = size.S;
  shape.width = size.D;
  shape.group = size.group();
  shape.causal = rule.causal;
  shape.scale = static_cast<float>(rule.scale);
  shape.q_row = in.q.row;
  shape.k_row = in.k.row;
  shape.v_row = in.v.row;
  shape.y_row = size.Hq * size.D;
  return shape;
}

// Dropout of a call, head by head; none if the rule has none.
class HeadDropout {
 public:
  HeadDropout(const AttentionRule& rule, const AttentionSizes& size)
      : rule_(rule), size_(size) {
    if (!rule.dropout) return;
    draws_ = DrawsOf(*rule.dropout);
    dropout_.draw = AvailableFillLoops().back()->bits;
    dropout_.drop_below = rule.dropout->drop_below;
    dropout_.scale = static_cast<float>(rule.dropout->scale);
  }

  // Returns the dropout of the heads of sample n from `head` on, or null; the
  // next call changes it.
  const AttentionDropout* Of(std::int64_t n, std::int64_t head) {
    if (!draws_) return nullptr;
    const RandomPosition at = draws_->At(n);
    const auto block =
        static_cast<std::uint32_t>(FirstBlock(rule_, size_, head, 0));
    dropout_.first = {draws_->key.words, block, at.step, at.position, at.path};
    return &dropout_;
  }

 private:
  const AttentionRule& rule_;
  const AttentionSizes size_;
  std::optional<SampleDraws> draws_;
  AttentionDropout dropout_ = {};
};

// Returns the data of head `head` of sample n at position 0; heads have D
// elements.
float* HeadsAt(const AttentionHeads& at, std::int64_t n, std::int64_t head,
               std::int64_t D) {
  return at.tensor->data<float>() + at.Sample(n) + head * D;
}

absl::Status AttentionForward(CpuDevice& cpu, const AttentionRule& rule, In q,
                              In k, In v, Tensor& y, Tensor& lse) {
  const AttentionSizes size = SizesOfAttention(q, k, v, y);
  const AttentionPlaces at = PlacesOfAttention(size, q, k, v);
  const AttentionHeads out = {&y, 0, size.Hq * size.D};
  AttentionHeadShape shape = HeadShape(rule, size, at);
  HeadDropout dropout(rule, size);
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().attention_scratch(shape)));
  for (std::int64_t n = 0; n < size.N; ++n) {
    for (std::int64_t shared = 0; shared < size.Hkv; ++shared) {
      const std::int64_t head = shared * shape.group;
      shape.dropout = dropout.Of(n, head);
      const AttentionInputs in = {HeadsAt(at.q, n, head, size.D),
                                  HeadsAt(at.k, n, shared, size.D),
                                  HeadsAt(at.v, n, shared, size.D)};
      cpu.loops().attention_forward(
          shape, in, HeadsAt(out, n, head, size.D),
          lse.data<float>() + (n * size.Hq + head) * size.T, scratch);
    }
  }
  return absl::OkStatus();
}

absl::Status AttentionBackward(CpuDevice& cpu, const AttentionRule& rule, In q,
                               In k, In v, In y, In lse, In dy, Tensor& dq,
                               Tensor& dk, Tensor& dv) {
  const AttentionSizes size = SizesOfAttention(q, k, v, y);
  const AttentionPlaces at = PlacesOfAttention(size, q, k, v);
  const AttentionPlaces to = PlacesOfAttention(size, dq, dk, dv);
  const AttentionHeads out = {&y, 0, size.Hq * size.D};
  const AttentionHeads dout = {&dy, 0, size.Hq * size.D};
  AttentionHeadShape shape = HeadShape(rule, size, at);
  shape.dq_row = to.q.row;
  shape.dk_row = to.k.row;
  shape.dv_row = to.v.row;
  HeadDropout dropout(rule, size);
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().attention_scratch(shape)));
  for (std::int64_t n = 0; n < size.N; ++n) {
    for (std::int64_t shared = 0; shared < size.Hkv; ++shared) {
      const std::int64_t head = shared * shape.group;
      shape.dropout = dropout.Of(n, head);
      const AttentionInputs in = {HeadsAt(at.q, n, head, size.D),
                                  HeadsAt(at.k, n, shared, size.D),
                                  HeadsAt(at.v, n, shared, size.D)};
      const AttentionGradients gradients = {HeadsAt(to.q, n, head, size.D),
                                            HeadsAt(to.k, n, shared, size.D),
                                            HeadsAt(to.v, n, shared, size.D)};
      cpu.loops().attention_backward(
          shape, in, HeadsAt(out, n, head, size.D),
          lse.data<float>() + (n * size.Hq + head) * size.T,
          HeadsAt(dout, n, head, size.D), gradients, scratch);
    }
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, AttentionKernels& ops) {
  BindF32<AttentionForward>(cpu, ops.AttentionForward);
  BindF32<AttentionBackward>(cpu, ops.AttentionBackward);
}

}  // namespace troupe::nn::cpu
