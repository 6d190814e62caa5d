#include "tests/actors/engine/synced_center.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "nn/collectives.h"
#include "nn/ops/op_util.h"

namespace troupe::actors {
namespace {

using nn::Tensor;

using Way = SyncedCenter::Way;

absl::Status AddUp(nn::Collectives& peers, Way way, nn::Allocator& allocator,
                   const Tensor& sums) {
  if (way == Way::kAllReduce) {
    return peers.AllReduce(nn::ReduceOp::kSum, sums);
  }
  // The rank's block lies among those that it gathers.
  const std::int64_t block = sums.numel() / peers.size();
  const Tensor all = Tensor::Zeros({sums.numel()}, nn::DType::kF64, allocator);
  const Tensor own = all.FlatView(peers.rank() * block, {block});
  TROUPE_RETURN_IF_ERROR(peers.ReduceScatter(nn::ReduceOp::kSum, sums, own));
  TROUPE_RETURN_IF_ERROR(peers.AllGather(own, all));
  std::copy_n(all.data<double>(), sums.numel(), sums.data<double>());
  return absl::OkStatus();
}

// Sets to = from minus the mean of each column over the rows of all ranks.
absl::Status Center(nn::Collectives* peers, Way way, nn::Allocator& allocator,
                    const Tensor& from, const Tensor& to) {
  const std::int64_t rows = from.dim(0), columns = from.dim(1);
  const std::int64_t ranks = peers != nullptr ? peers->size() : 1;
  // Holds the sums of the columns, then the number of rows, in a block for each
  // rank.
  Tensor sums = Tensor::Zeros({(columns / ranks + 1) * ranks}, nn::DType::kF64,
                              allocator);
  double* const sum = sums.data<double>();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      sum[c] += from.data<double>()[r * columns + c];
    }
  }
  sum[columns] = static_cast<double>(rows);
  if (peers != nullptr) {
    TROUPE_RETURN_IF_ERROR(AddUp(*peers, way, allocator, sums));
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to.data<double>()[r * columns + c] =
          from.data<double>()[r * columns + c] - sum[c] / sum[columns];
    }
  }
  return absl::OkStatus();
}

class CenterNode final : public nn::Node {
 public:
  CenterNode(nn::Collectives* peers, Way way,
             std::function<absl::Status()> before_reduce)
      : peers_(peers), way_(way), before_reduce_(std::move(before_reduce)) {}
  const char* name() const override { return "center"; }

  absl::Status BackwardInputs(nn::Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    if (before_reduce_) TROUPE_RETURN_IF_ERROR(before_reduce_());
    dx[0] = Tensor::Empty(dy.shape(), dy.dtype(), kernels.allocator());
    return Center(peers_, way_, kernels.allocator(), dy, dx[0]);
  }

 private:
  nn::Collectives* const peers_;
  const Way way_;
  const std::function<absl::Status()> before_reduce_;
};

}  // namespace

Tensor SyncedCenter::Forward(nn::Context& ctx, const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  nn::Collectives* const peers = ctx.collectives(axis_);
  Tensor y = ctx.Empty("synced_center", x.shape(), x.dtype());
  ctx.Note("center", y, 2.0 * y.numel());
  if (ctx.shape_only()) return y;
  absl::Status status;
  if (before_reduce_) status = before_reduce_();
  if (status.ok()) {
    status = Center(peers, way_, ctx.kernels().allocator(), x, y);
  }
  return nn::ops::Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<CenterNode>(peers, way_, before_reduce_);
  });
}

}  // namespace troupe::actors
