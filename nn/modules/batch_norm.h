// Batch norm (torch.nn.BatchNorm1d, BatchNorm2d, SyncBatchNorm);
// nn/ops/batch_norm.h has the formulas.
//
//   BatchNorm2d norm(64);            // weight, bias [64]; running statistics
//   Tensor y = norm(ctx, x);         // (N, H, W, 64)
//
//   BatchNorm2d::Options options;
//   options.relu = true;                        // the end of a ResNet block:
//   BatchNorm2d last(64, options);              // max(0, norm(x) + shortcut)
//   y = last.CallMany(ctx, {x, shortcut})[0];   // in one pass
//
//   std::unique_ptr<Module> model = ConvertSyncBatchNorm(MakeModel());
//
// Channels are the last axis. Names are PyTorch's: parameters weight and bias,
// buffers running_mean, running_var and num_batches_tracked. Every rank keeps
// running statistics of its own samples; evaluations and checkpoints use those
// of the first replica. Synchronised ones are equal on all ranks.
//
// PyTorch converts a model by replacing modules. Here a module holds references
// to its children (`BatchNorm2d& norm_`), which a replacement would leave
// dangling; so synchronising is a switch within each batch norm. Modules, their
// names, parameters and buffers do not change.

#ifndef NN_MODULES_BATCH_NORM_H_
#define NN_MODULES_BATCH_NORM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "nn/modules/module.h"

namespace troupe::nn {

// Base of the batch norms below.
class BatchNorm : public Module {
 public:
  struct Options {
    double eps = 1e-5;
    // Weight of the new batch in the running statistics; without one, they are
    // averages over all batches.
    std::optional<double> momentum = 0.1;
    bool affine = true;
    // False: evaluation uses the statistics of its batch, too.
    bool track_running_stats = true;
    bool relu = false;  // y = max(0, y)
    // Dtype of x and the weights. Running statistics are f32, or f64 with f64.
    DType dtype = DType::kF32;
  };

  Tensor Forward(Context& ctx, const Tensor& x) override;
  // Takes one tensor x, or x and a residual that is added before the ReLU.
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override;

  // Sets the axis of the mesh over whose ranks later forwards compute the
  // statistics; empty: over this rank's samples.
  void set_sync_axis(std::string axis);
  const std::string& sync_axis() const { return sync_axis_; }

 protected:
  // Requires `least_rank` to `most_rank` axes of x, which errors call `axes`.
  BatchNorm(std::int64_t channels, const Options& options, int least_rank,
            int most_rank, const char* axes);

 private:
  Tensor Run(Context& ctx, const Tensor& x, const Tensor& residual);

  const Options options_;
  const std::int64_t channels_;
  const int least_rank_, most_rank_;
  const char* const axes_;
  std::string sync_axis_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  Buffer* running_mean_ = nullptr;
  Buffer* running_var_ = nullptr;
  Buffer* num_batches_tracked_ = nullptr;
};

// x [N, C] or [N, L, C].
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t channels)
      : BatchNorm1d(channels, Options()) {}
  BatchNorm1d(std::int64_t channels, const Options& options)
      : BatchNorm(channels, options, 2, 3, "[N, C] or [N, L, C]") {}
};

// x [N, H, W, C].
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t channels)
      : BatchNorm2d(channels, Options()) {}
  BatchNorm2d(std::int64_t channels, const Options& options)
      : BatchNorm(channels, options, 4, 4, "[N, H, W, C]") {}
};

// Batch norm of x [N, ..., C] with statistics over all replicas (axis "dp").
class SyncBatchNorm : public BatchNorm {
 public:
  explicit SyncBatchNorm(std::int64_t channels)
      : SyncBatchNorm(channels, Options()) {}
  SyncBatchNorm(std::int64_t channels, const Options& options)
      : BatchNorm(channels, options, 2, Shape::kMaxRank, "[N, ..., C]") {
    set_sync_axis("dp");
  }
};

// Synchronises every batch norm in `model` along `axis`.
void SynchroniseBatchNorms(Module& model, const std::string& axis = "dp");

// The same, and returns `model`.
std::unique_ptr<Module> ConvertSyncBatchNorm(std::unique_ptr<Module> model,
                                             const std::string& axis = "dp");

}  // namespace troupe::nn

#endif  // NN_MODULES_BATCH_NORM_H_
