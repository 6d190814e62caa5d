#include "nn/ops/cached_attention.h"

#include "nn/autograd/kv_cache.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// One forward's attention, sample by sample.
class Attender {
 public:
  // `qkv` [N, T, Hq + 2 Hkv, D], `cached` [texts, context, 2 Hkv, D],
  // `y` [N, T, Hq, D].
  Attender(Kernels& kernels, const Tensor& qkv, const Tensor& cached, Tensor& y,
           double scale)
      : kernels_(kernels), qkv_(qkv), cached_(cached), y_(y) {
    rule_.scale = scale;
  }

  absl::Status Run(std::int64_t n, const TextPlaces::Row& row) {
    const std::int64_t T = qkv_.dim(1);
    if (row.text < 0) {
      Tensor zeros = y_.Slice(n, n + 1);
      return kernels_.Fill(0.0, zeros);
    }
    TROUPE_RETURN_IF_ERROR(Keep(n, row));
    if (row.past == 0) return Begin(n);
    for (std::int64_t t = 0; t < T; ++t) {
      TROUPE_RETURN_IF_ERROR(Continue(n, t, row));
    }
    return absl::OkStatus();
  }

 private:
  std::int64_t heads() const { return y_.dim(2); }
  std::int64_t all_heads() const { return qkv_.dim(2); }
  std::int64_t kept_heads() const { return cached_.dim(2); }
  std::int64_t width() const { return qkv_.dim(3); }

  // Copies the keys and values of sample n, which lie side by side.
  absl::Status Keep(std::int64_t n, const TextPlaces::Row& row) {
    const std::int64_t T = qkv_.dim(1), kept = kept_heads() * width();
    StridedLoops loops =
        LoopsOver({T, kept}, /*a=*/{all_heads() * width(), 1}, /*b=*/{kept, 1});
    loops.a_begin = (n * T * all_heads() + heads()) * width();
    loops.b_begin = (row.text * cached_.dim(1) + row.past) * kept;
    Tensor to = cached_;
    return kernels_.CopyStrided(loops, qkv_, to);
  }

  // A text's first tokens attend to each other.
  absl::Status Begin(std::int64_t n) {
    AttentionRule rule = rule_;
    rule.causal = true;
    Tensor y = y_.Slice(n, n + 1);
    return Attend(rule, qkv_.Slice(n, n + 1), Tensor(), y);
  }

  // Token t of sample n attends to what is in the cache up to itself.
  absl::Status Continue(std::int64_t n, std::int64_t t,
                        const TextPlaces::Row& row) {
    const std::int64_t token = n * qkv_.dim(1) + t;
    const std::int64_t keys = row.past + t + 1;
    const Tensor q =
        qkv_.FlatView(token * all_heads() * width(), {1, 1, heads(), width()});
    const Tensor kv =
        cached_.FlatView(row.text * cached_.dim(1) * kept_heads() * width(),
                         {1, keys, kept_heads(), width()});
    Tensor y = y_.FlatView(token * heads() * width(), {1, 1, heads(), width()});
    return Attend(rule_, q, kv, y);
  }

  absl::Status Attend(const AttentionRule& rule, const Tensor& q,
                      const Tensor& kv, Tensor& y) {
    TROUPE_ASSIGN_OR_RETURN(Tensor lse,
                            Tensor::Create({1, heads(), q.dim(1)}, DType::kF32,
                                           kernels_.allocator()));
    return kernels_.AttentionForward(rule, q, kv, Tensor(), y, lse);
  }

  Kernels& kernels_;
  const Tensor& qkv_;
  const Tensor& cached_;
  Tensor& y_;
  AttentionRule rule_;
};

}  // namespace

Tensor CachedAttention(Context& ctx, const Tensor& qkv_heads,
                       std::int64_t heads, std::int64_t kv_heads,
                       double scale) {
  if (ctx.Tracks({qkv_heads})) {
    return ctx.Fail(absl::FailedPreconditionError(absl::StrCat(
        "attention of ", Str(qkv_heads),
        ": a key-value cache has no backward; give the context no tape, or no "
        "cache")));
  }
  const std::int64_t N = qkv_heads.dim(0), T = qkv_heads.dim(1);
  const std::int64_t D = qkv_heads.dim(3);
  Tensor y = ctx.Empty("attention", {N, T, heads * D}, qkv_heads.dtype());
  if (!ctx.computes()) return y;
  KvCache& cache = *ctx.kv_cache();
  const absl::StatusOr<Tensor> cached =
      cache.Next(qkv_heads, 2 * kv_heads, D, ctx.kernels().allocator());
  if (!cached.ok()) return ctx.Fail(cached.status());
  Tensor y_heads = y.View({N, T, heads, D});
  Attender attender(ctx.kernels(), qkv_heads, *cached, y_heads, scale);
  for (std::int64_t n = 0; n < N; ++n) {
    const absl::Status status = attender.Run(n, cache.places().rows[n]);
    if (!status.ok()) return ctx.Fail(status);
  }
  return y;
}

}  // namespace troupe::nn::ops
