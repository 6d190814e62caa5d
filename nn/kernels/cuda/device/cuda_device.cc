#include "nn/kernels/cuda/device/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "base/field_error.h"
#include "nn/kernels/cuda/device/reduce_tree.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

constexpr std::size_t kAllOfIt = std::numeric_limits<std::size_t>::max();
constexpr const char* kQueueNames[kNumQueues] = {
    "compute", "copy", "read back", "comm", "comm 1", "comm 2", "comm 3"};
// Pauses between two calls of the functions of LookAfter(), and between two
// calls of work that has not enqueued all.
constexpr absl::Duration kLookPause = absl::Milliseconds(10);
constexpr absl::Duration kAgainPause = absl::Microseconds(200);

CachingAllocator::Options Of(Device device,
                             std::shared_ptr<MemorySource> source) {
  CachingAllocator::Options options;
  options.cached_bytes_max = kAllOfIt;
  options.device = device;
  options.source = std::move(source);
  return options;
}

// The kernel that writes the note may run at the same time: ReadNote() uses
// this only to decide whether to wait for the complete note.
__attribute__((no_sanitize("thread"))) bool HasDataError(
    const volatile DataError& error) {
  return error.op != kNoDataError;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(int ordinal) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaErrorNoDevice) {
    TROUPE_RETURN_IF_ERROR(CudaStatus(counted, "cudaGetDeviceCount"));
  }
  if (ordinal < 0 || ordinal >= count) {
    return absl::UnavailableError(
        absl::StrCat("there is no cuda:", ordinal, ": this process sees ",
                     count, count == 1 ? " GPU" : " GPUs",
                     "; set CUDA_VISIBLE_DEVICES to choose which it sees"));
  }
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Streams> streams,
                          Streams::Create(ordinal));
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(streams)));
  TROUPE_RETURN_IF_ERROR(device->Init());
  return device;
}

CudaDevice::QueuePool::QueuePool(int ordinal,
                                 std::shared_ptr<MemorySource> source)
    : own(nn::cuda::Of({DeviceType::kCuda, ordinal}, std::move(source))) {}

CudaDevice::CudaDevice(std::shared_ptr<Streams> streams)
    : streams_(std::move(streams)),
      events_(std::make_shared<EventPool>(streams_->ordinal())),
      pinned_(std::make_shared<PinnedMemory>(streams_->ordinal())),
      source_(std::make_shared<DeviceMemory>(streams_)),
      memory_(ordinal(), source_),
      host_(nn::cuda::Of(Device{}, pinned_)) {
  for (int i = 0; i < kCommQueuesMax; ++i) {
    comm_memory_.push_back(std::make_unique<QueuePool>(ordinal(), source_));
  }
  open_.reserve(kNumQueues);
  for (Queue queue : {Queue::kCompute, Queue::kCopy, Queue::kComm}) {
    AddQueue(queue);
  }
}

absl::Status CudaDevice::Init() {
  TROUPE_ASSIGN_OR_RETURN(data_errors_,
                          host_.Allocate(sizeof(DataError) * kNumQueues));
  for (int i = 0; i < kNumQueues; ++i) {
    new (data_error(static_cast<Queue>(i))) DataError();
  }
  return absl::OkStatus();
}

void CudaDevice::AddQueue(Queue queue) {
  const int i = static_cast<int>(queue);
  queues_[i].emplace(kQueueNames[i], streams_->Of(queue), events_, &status_);
  open_.push_back(queue);
}

bool CudaDevice::OpenQueue(Queue queue) {
  if (broken_) return false;
  if (queues_[static_cast<int>(queue)].has_value()) return true;
  Check(streams_->Open(queue)).IgnoreError();
  if (!broken_) AddQueue(queue);
  return !broken_;
}

CudaDevice::~CudaDevice() { Close(); }

void CudaDevice::Close() {
  SetWakeup(nullptr, /*watch=*/false).IgnoreError();
  if (capturing()) EndCapture().IgnoreError();
  streams_->Finish();
  for (auto& noted : noted_) noted = nullptr;
  looks_.clear();
  CompleteWhatIsDone();
  const absl::Status closed = absl::CancelledError(
      absl::StrCat("cuda:", ordinal(), " was closed before this was done"));
  status_.Update(closed);
  broken_ = true;
  CompleteAll();
}

absl::Status CudaDevice::Check(const absl::Status& status) {
  if (capturing() && !status.ok()) {
    capture_->Fail(status);
    return status;
  }
  if (status.ok() || broken_) return status_;
  broken_ = true;
  std::vector<std::string> in_flight;
  for (Queue queue : open_) {
    std::string text = Of(queue).InFlight();
    if (!text.empty()) in_flight.push_back(std::move(text));
  }
  status_.Update(base::WithMessage(
      status, absl::StrCat("cuda:", ordinal(), " failed: ", status.message(),
                           in_flight.empty() ? "" : "; in flight: ",
                           absl::StrJoin(in_flight, "; "))));
  return status_;
}

void CudaDevice::MakeCurrent() {
  if (broken_) return;
  Check(CudaStatus(cudaSetDevice(ordinal()), "cudaSetDevice")).IgnoreError();
}

bool CudaDevice::TakesNow(Queue queue, const char* name) {
  if (!MayRecord(queue).ok() || !OpenQueue(queue)) return false;
  if (Of(queue).held()) return false;
  MakeCurrent();
  if (broken_) return false;
  Of(queue).Note(name);
  return true;
}

absl::Status CudaDevice::Give(Queue queue, const char* name,
                              StreamQueue::Work work) {
  MakeCurrent();
  TROUPE_RETURN_IF_ERROR(MayRecord(queue));
  if (!OpenQueue(queue)) return status_;
  const absl::Status given = Of(queue).Give(name, std::move(work));
  if (!given.ok()) FailCapture(given);
  return given;
}

base::Event CudaDevice::Record(Queue queue) {
  if (capturing()) return capture_->Record(queue);
  const base::Event done = base::Event::Make();
  if (OpenQueue(queue)) Check(Of(queue).Record(done)).IgnoreError();
  if (broken_) done.Complete(status_);
  return done;
}

void CudaDevice::Wait(Queue queue, const base::Event& event) {
  if (capturing()) return capture_->Wait(queue, event);
  if (!OpenQueue(queue)) return;
  const auto hold = [&] {
    event.OnKnown([wakeup = wakeup_] { wakeup->Call(); });
  };
  Check(Of(queue).Wait(event, hold)).IgnoreError();
}

bool CudaDevice::IsPageable(const Tensor& tensor) const {
  return tensor.host_accessible() && !pinned_->Contains(tensor.device_data());
}

absl::StatusOr<Tensor> CudaDevice::Stage(const Tensor& like) {
  return Tensor::Create(like.shape(), like.dtype(), host_);
}

void CudaDevice::CopyBytes(Queue queue, const Tensor& from, const Tensor& to) {
  if (from.bytes() == 0) return;
  if (capturing() && (from.host_accessible() || to.host_accessible())) {
    return FailCapture(absl::FailedPreconditionError(
        "a copy from or to the host's memory is not recorded; copy before "
        "BeginCapture() or after EndCapture()"));
  }
  Tensor source = from, target = to;
  for (Tensor* side : {&source, &target}) {
    if (!IsPageable(*side)) continue;
    absl::StatusOr<Tensor> staged = Stage(*side);
    if (!staged.ok()) return status_.Update(staged.status());
    *side = *std::move(staged);
  }
  if (IsPageable(from)) std::memcpy(source.raw(), from.raw(), from.bytes());
  const Tensor late = IsPageable(to) ? to : Tensor();
  const absl::Status given = Give(queue, "CopyBytes", [=] {
    TROUPE_RETURN_IF_ERROR(Copy(queue, source, target));
    if (late.defined()) {
      Of(queue).After([target, late] {
        std::memcpy(late.raw(), target.raw(), late.bytes());
      });
    }
    return absl::OkStatus();
  });
  Check(given).IgnoreError();
}

absl::Status CudaDevice::Copy(Queue queue, const Tensor& from,
                              const Tensor& to) {
  TROUPE_RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(to.device_data(), from.device_data(), from.bytes(),
                      cudaMemcpyDefault, stream(queue)),
      "cudaMemcpyAsync"));
  for (const Tensor* side : {&from, &to}) {
    if (side->host_accessible()) Of(queue).Keep(side->Detached());
  }
  return absl::OkStatus();
}

absl::Status CudaDevice::ReachPeer(int ordinal) {
  if (ordinal == this->ordinal() ||
      std::find(reached_.begin(), reached_.end(), ordinal) != reached_.end()) {
    return absl::OkStatus();
  }
  int can = 0;
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceCanAccessPeer(&can, this->ordinal(), ordinal),
                 "cudaDeviceCanAccessPeer"));
  if (can == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cuda:", this->ordinal(), " cannot reach the memory of cuda:", ordinal,
        "; use GPUs that are peers for the ranks of one process"));
  }
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(ordinal, /*flags=*/0);
  if (enabled != cudaErrorPeerAccessAlreadyEnabled) {
    TROUPE_RETURN_IF_ERROR(CudaStatus(enabled, "cudaDeviceEnablePeerAccess"));
  } else {
    cudaGetLastError();
  }
  reached_.push_back(ordinal);
  return absl::OkStatus();
}

absl::Status CudaDevice::Reduce(Queue queue, const TreeReduction& reduction) {
  TROUPE_RETURN_IF_ERROR(CheckReduceTree(reduction));
  MakeCurrent();
  for (const auto* side : {&reduction.sources, &reduction.destinations}) {
    for (const Tensor& tensor : *side) {
      TROUPE_RETURN_IF_ERROR(ReachPeer(tensor.device().index));
    }
  }
  return Give(queue, "Reduce", [this, queue, reduction] {
    return ReduceTree(reduction, stream(queue));
  });
}

absl::Status CudaDevice::Enqueue(Queue queue, const char* name,
                                 std::function<bool(void*)> work) {
  MakeCurrent();
  TROUPE_RETURN_IF_ERROR(MayRecord(queue));
  if (!OpenQueue(queue)) return status_;
  if (capturing()) return EnqueueInCapture(queue, name, work);
  return Of(queue).GiveUntilTrue(
      name, [stream = stream(queue), work = std::move(work)] {
        return work(stream);
      });
}

void CudaDevice::LookAfter(std::function<bool()> look) {
  looks_.push_back(std::move(look));
}

void CudaDevice::LookAround() {
  // A call may add another function to looks_.
  std::vector<std::function<bool()>> looks;
  looks.swap(looks_);
  for (std::function<bool()>& look : looks) {
    if (look()) looks_.push_back(std::move(look));
  }
}

absl::Duration CudaDevice::PauseMax() const {
  for (Queue queue : open_) {
    if (queues_[static_cast<int>(queue)]->asks_again()) return kAgainPause;
  }
  return looks_.empty() ? absl::InfiniteDuration() : kLookPause;
}

absl::StatusOr<bool> CudaDevice::ReadNotes() {
  for (Queue queue : open_) {
    TROUPE_ASSIGN_OR_RETURN(const bool read, ReadNote(queue));
    if (!read) return false;
  }
  return true;
}

absl::StatusOr<bool> CudaDevice::ReadNote(Queue queue) {
  if (!status_.ok() || !HasDataError(*data_error(queue))) return true;
  // The kernel that writes the note may still run, and may have been enqueued
  // after the recording that is done. It has ended once all work that its
  // stream was given so far has ended.
  std::shared_ptr<const EventMark>& noted = noted_[static_cast<int>(queue)];
  if (noted == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(noted, EventPool::Record(events_, stream(queue)));
  }
  const cudaError_t state = cudaEventQuery(noted->event());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears "not ready" for the check of the next launch
    return false;
  }
  TROUPE_RETURN_IF_ERROR(CudaStatus(state, "cudaEventQuery"));
  noted = nullptr;
  status_ = StatusOf(*data_error(queue));
  return true;
}

absl::StatusOr<bool> CudaDevice::CompleteOldest(StreamQueue& queue) {
  TROUPE_ASSIGN_OR_RETURN(const bool done, queue.OldestIsDone());
  if (!done) return false;
  // The work before this recording has run and may have left a note.
  TROUPE_ASSIGN_OR_RETURN(const bool read, ReadNotes());
  if (!read) return false;
  queue.TakeOldest()->Finish(status_);  // may call this device again
  return true;
}

bool CudaDevice::CompleteWhatIsDone() {
  bool any = false;
  for (Queue queue : open_) {
    while (!broken_) {
      const absl::StatusOr<bool> completed = CompleteOldest(Of(queue));
      Check(completed.status()).IgnoreError();
      if (!completed.ok() || !*completed) break;
      any = true;
    }
  }
  return any;
}

void CudaDevice::CompleteAll() {
  for (Queue queue : open_) {
    while (auto ended = Of(queue).TakeOldest()) ended->Finish(status_);
  }
  DropHeld(status_);
}

void CudaDevice::DropHeld(const absl::Status& status) {
  for (Queue queue : open_) {
    for (const base::Event& event : Of(queue).DropHeld()) {
      event.Complete(status);
    }
  }
}

bool CudaDevice::Progress() {
  if (capturing()) return false;  // a capture does not allow cudaEventQuery
  bool moved = false;
  MakeCurrent();
  LookAround();
  for (Queue queue : open_) {
    if (broken_) break;
    const absl::StatusOr<bool> advanced = Of(queue).Advance();
    Check(advanced.status()).IgnoreError();
    moved = moved || !advanced.ok() || *advanced;
  }
  moved = CompleteWhatIsDone() || moved;
  if (broken_) {
    CompleteAll();
    return false;
  }
  if (moved) return true;
  Watcher::Marks oldest;
  for (const auto& noted : noted_) {
    if (noted != nullptr) oldest.push_back(noted);
  }
  for (Queue queue : open_) {
    if (auto mark = Of(queue).Oldest()) oldest.push_back(std::move(mark));
  }
  const absl::Duration pause = PauseMax();
  if (oldest.empty() && pause == absl::InfiniteDuration()) return false;
  if (watcher_ == nullptr) return true;
  watcher_->Watch(std::move(oldest), pause);
  return false;
}

absl::Status CudaDevice::SetWakeup(std::function<void()> wakeup, bool watch) {
  watcher_.reset();
  wakeup_->Set(std::move(wakeup));
  if (!watch) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      watcher_,
      Watcher::Start(ordinal(), [wakeup = wakeup_] { wakeup->Call(); }));
  return absl::OkStatus();
}

}  // namespace troupe::nn::cuda
