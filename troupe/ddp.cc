#include "troupe/ddp.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_error.h"
#include "troupe/internal/buffer_sync.h"
#include "troupe/internal/gather_numbers.h"
#include "troupe/internal/model_core.h"
#include "troupe/internal/model_layout.h"
#include "troupe/optimizer.h"

namespace troupe {
namespace {

std::int64_t BytesOf(const char* option, double mb) {
  if (std::isfinite(mb) && mb > 0 && mb <= 1 << 20) {
    return static_cast<std::int64_t>(mb * (1 << 20));
  }
  throw base::StatusError(absl::InvalidArgumentError(
      absl::StrCat("DDPOptions.", option, " is above 0, in MiB, not ", mb)));
}

std::optional<nn::DType> Floating(std::optional<nn::DType> dtype) {
  if (!dtype.has_value() || nn::IsFloating(*dtype)) return dtype;
  throw base::StatusError(absl::InvalidArgumentError(
      absl::StrCat("DDPOptions.reduction_dtype is a floating dtype, such as "
                   "bf16 or f16, not ",
                   nn::DTypeName(*dtype))));
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(const Trainable& model,
                                                 const DDPOptions& options)
    : Trainable(model) {
  Group& group = rank().Axis("dp");
  Distribution distribution;
  distribution.buckets.first_bucket_bytes =
      BytesOf("first_bucket_mb", options.first_bucket_mb);
  distribution.buckets.bucket_bytes =
      BytesOf("bucket_cap_mb", options.bucket_cap_mb);
  for (const double mb : options.bucket_cap_mb_list) {
    distribution.bucket_limits.push_back(BytesOf("bucket_cap_mb_list", mb));
  }
  distribution.delayed = options.delay_all_reduce_named_params;
  distribution.exact_mean = options.exact_mean;
  distribution.static_graph = options.static_graph;
  distribution.reduction_dtype = Floating(options.reduction_dtype);
  CompareModels(rank(), group, module(), "DistributedDataParallel");
  core().Distribute(distribution, group.ranks());
  rank().ConnectLayers();
  const auto buffers_sync =
      std::make_shared<BufferSync>(group, rank().kernels(), module());
  if (options.init_sync) {
    core().BroadcastParameters(/*root=*/0);
    buffers_sync->Broadcast(/*root=*/0);
  }
  if (module().Buffers().empty()) return;
  if (options.average_buffers) {
    core().set_sync_buffers([buffers_sync](const ActiveRanks& active) {
      buffers_sync->Average(active.first, active.self, active.all_per_active);
    });
  } else if (options.broadcast_buffers) {
    core().set_sync_buffers([buffers_sync](const ActiveRanks& active) {
      buffers_sync->Broadcast(active.first);
    });
  }
}

void DistributedDataParallel::SetHook(CommHook hook) {
  core().SetHook(std::move(hook));
}

void DistributedDataParallel::StepInBackward(const Optimizer& optimizer) {
  if (&optimizer.model().optimizable() != &core()) {
    throw base::StatusError(absl::InvalidArgumentError(
        "StepInBackward() takes the optimizer of this DDP, and this one trains "
        "another model; pass the one that was made of the DDP"));
  }
  base::OrThrow(core().engine().StepInBackward());
}

std::vector<int> DistributedDataParallel::launch_order() const {
  return core().engine().launch_order();
}

DistributedDataParallel::Unsynced::Unsynced(ModelCore& core)
    : core_(core), synced_(core.synced()) {
  core_.set_synced(false);
}

DistributedDataParallel::Unsynced::~Unsynced() { core_.set_synced(synced_); }

}  // namespace troupe
