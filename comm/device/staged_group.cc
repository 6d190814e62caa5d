#include "comm/device/staged_group.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "comm/device/device_check.h"
#include "comm/device/device_work.h"

namespace troupe::comm {
namespace {

using internal::CheckOnDevice;

class StagedCommunicator final : public Communicator {
 public:
  explicit StagedCommunicator(std::unique_ptr<Communicator> host)
      : host_(std::move(host)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  bool UseDevice(DeviceWork* work) override {
    TROUPE_CHECK(work->host_allocator() != nullptr,
                 "a device copies from and to memory of the host");
    work_ = work;
    return true;
  }

  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override;
  absl::Status RunInline(const Collective& collective,
                         absl::Duration) override {
    return absl::UnimplementedError(absl::StrCat(
        collective.ToString(), " of devices is not run inline; start it"));
  }
  bool Progress() override {
    absl::MutexLock lock(&mutex_);
    return host_->Progress();
  }
  absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                  const nn::Tensor& data,
                                  Event after) override {
    absl::MutexLock lock(&mutex_);
    return host_->StartSend(to, tag, data, std::move(after));
  }
  absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                  const nn::Tensor& into,
                                  Arrival* arrival) override {
    absl::MutexLock lock(&mutex_);
    return host_->StartRecv(from, tag, into, arrival);
  }
  void SetWakeup(std::function<void()> wakeup) override {
    host_->SetWakeup(std::move(wakeup));
  }
  std::vector<Waiting> Waits() const override { return host_->Waits(); }
  void Abort(absl::Status status) override { host_->Abort(std::move(status)); }

 private:
  // Returns host memory of the same shape; undefined if `side` is.
  absl::StatusOr<nn::Tensor> Twin(const nn::Tensor& side) {
    if (!side.defined()) return nn::Tensor();
    return nn::Tensor::Create(side.shape(), side.dtype(),
                              *work_->host_allocator());
  }

  const std::unique_ptr<Communicator> host_;
  DeviceWork* work_ = nullptr;
  // The host's group may be called by one thread at a time.
  absl::Mutex mutex_;
};

absl::StatusOr<Event> StagedCommunicator::Start(const Collective& collective,
                                                Event after) {
  TROUPE_CHECK(work_ != nullptr, "UseDevice() comes before Start()");
  TROUPE_RETURN_IF_ERROR(CheckOnDevice(collective, rank(), size()));
  Collective twin = collective;
  TROUPE_ASSIGN_OR_RETURN(twin.input, Twin(collective.input));
  TROUPE_ASSIGN_OR_RETURN(twin.range, Twin(collective.range));
  work_->Wait(after);
  if (collective.input.defined()) work_->Copy(collective.input, twin.input);
  // The range may contain the rank's own block, or its whole input.
  if (collective.range.defined()) work_->Copy(collective.range, twin.range);
  const Event copied = work_->Record();
  absl::StatusOr<Event> reduced = Event();
  {
    absl::MutexLock lock(&mutex_);
    reduced = host_->Start(twin, copied);
  }
  TROUPE_RETURN_IF_ERROR(reduced.status());
  work_->Wait(*reduced);
  if (collective.range.defined()) work_->Copy(twin.range, collective.range);
  const Event back = work_->Record();
  const Event done = Event::Make();
  // The queue continues after a failure; work that waits for the result must
  // not.
  reduced->OnReady([done](const absl::Status& status) {
    if (!status.ok()) done.Complete(status);
  });
  done.Follow(back);
  back.OnReady([twin](const absl::Status&) {});
  return done;
}

}  // namespace

std::unique_ptr<Communicator> StageThroughHost(
    std::unique_ptr<Communicator> host) {
  return std::make_unique<StagedCommunicator>(std::move(host));
}

}  // namespace troupe::comm
