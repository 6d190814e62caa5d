#include "troupe/data_parallel.h"

#include "troupe/devices/device_leader.h"
#include "troupe/internal/model_core.h"

namespace troupe {

void DivideAmongDevices(const Trainable& model, const nn::ModelFactory& make) {
  DeviceLines* const lines = model.rank().devices();
  if (lines == nullptr || lines->devices() == 1) return;
  model.core().Lead(std::make_unique<DeviceLeader>(model.core(), *lines, make));
}

void ReplicateOnDevices(const Trainable& model) {
  DeviceLeader* const leader = model.core().leader();
  if (leader != nullptr) leader->ShareState();
}

}  // namespace troupe
