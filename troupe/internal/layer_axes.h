// The collectives that layers of a rank's models use, by axis of the mesh:
// those of synchronised norms along dp. They have a group of their own, so that
// they do not stand between the reductions of buckets (layer_collectives.h).

#ifndef TROUPE_INTERNAL_LAYER_AXES_H_
#define TROUPE_INTERNAL_LAYER_AXES_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/layer_collectives.h"
#include "actors/engine/queue_work.h"
#include "comm/communicator.h"
#include "nn/collectives.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"

namespace troupe {

class LayerAxes {
 public:
  LayerAxes(std::shared_ptr<comm::Communicator> dp, nn::Kernels& kernels,
            actors::StrandWait& wait)
      : group_(std::move(dp)),
        work_(kernels.queues() == nullptr ? nullptr
                                          : std::make_unique<actors::QueueWork>(
                                                kernels, nn::CommQueue(1))),
        dp_(group_.get(), &kernels, &wait,
            work_ != nullptr && group_->UseDevice(work_.get())),
        axes_({{"dp", &dp_}}) {}

  absl::Span<const nn::AxisCollectives> axes() const { return axes_; }

 private:
  const std::shared_ptr<comm::Communicator> group_;
  const std::unique_ptr<actors::QueueWork> work_;  // null: it has no queues
  actors::LayerCollectives dp_;
  const std::vector<nn::AxisCollectives> axes_;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_LAYER_AXES_H_
