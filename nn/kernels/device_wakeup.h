// The function of DeviceQueues::SetWakeup(), which events call that may outlive
// the device.
//
//   const auto wakeup = std::make_shared<DeviceWakeup>();
//   event.OnReady([wakeup](const absl::Status&) { wakeup->Call(); });
//   wakeup->Set(nullptr);              // no call is running any more
//
// Threads: any.

#ifndef NN_KERNELS_DEVICE_WAKEUP_H_
#define NN_KERNELS_DEVICE_WAKEUP_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe::nn {

class DeviceWakeup {
 public:
  void Set(std::function<void()> call) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    call_ = std::move(call);
  }
  // Does nothing if no function is set.
  void Call() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (call_) call_();
  }

 private:
  absl::Mutex mutex_;
  std::function<void()> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_WAKEUP_H_
