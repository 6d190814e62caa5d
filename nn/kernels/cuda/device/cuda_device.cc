#include "nn/kernels/cuda/device/cuda_device.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "base/field_error.h"
#include "nn/kernels/cuda/device/reduce_tree.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

// Pauses between two calls of the functions of LookAfter(), and between two
// calls of work that has not enqueued all.
constexpr absl::Duration kLookPause = absl::Milliseconds(10);
constexpr absl::Duration kAgainPause = absl::Microseconds(200);

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
  TROUPE_RETURN_IF_ERROR(device->notes_.Allocate(device->pools_.host()));
  return device;
}

CudaDevice::CudaDevice(std::shared_ptr<Streams> streams)
    : streams_(std::move(streams)),
      events_(std::make_shared<EventPool>(streams_->ordinal())),
      pools_(streams_),
      queues_(streams_, events_, &status_),
      peers_(ordinal()) {
  for (Queue queue : {Queue::kCompute, Queue::kCopy, Queue::kComm}) {
    Check(queues_.Open(queue)).IgnoreError();
  }
}

bool CudaDevice::OpenQueue(Queue queue) {
  if (broken_) return false;
  if (queues_.is_open(queue)) return true;
  Check(queues_.Open(queue)).IgnoreError();
  return queues_.is_open(queue);
}

CudaDevice::~CudaDevice() { Close(); }

void CudaDevice::Close() {
  SetWakeup(nullptr, /*watch=*/false).IgnoreError();
  if (capturing()) EndCapture().IgnoreError();
  streams_->Finish();
  notes_.Clear();
  looks_.clear();
  CompleteWhatIsDone();
  const absl::Status closed = absl::CancelledError(
      absl::StrCat("cuda:", ordinal(), " was closed before this was done"));
  status_.Update(closed);
  broken_ = true;
  queues_.CompleteAll(status_);
}

absl::Status CudaDevice::Check(const absl::Status& status) {
  if (capturing() && !status.ok()) {
    capture_->Fail(status);
    return status;
  }
  if (status.ok() || broken_) return status_;
  broken_ = true;
  const std::string in_flight = queues_.InFlight();
  status_.Update(base::WithMessage(
      status,
      absl::StrCat("cuda:", ordinal(), " failed: ", status.message(),
                   in_flight.empty() ? "" : "; in flight: ", in_flight)));
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

void CudaDevice::CopyBytes(Queue queue, const Tensor& from, const Tensor& to) {
  if (from.bytes() == 0) return;
  if (capturing() && (from.host_accessible() || to.host_accessible())) {
    return FailCapture(absl::FailedPreconditionError(
        "a copy from or to the host's memory is not recorded; copy before "
        "BeginCapture() or after EndCapture()"));
  }
  Tensor source = from, target = to;
  for (Tensor* side : {&source, &target}) {
    if (!pools_.IsPageable(*side)) continue;
    absl::StatusOr<Tensor> staged = pools_.Stage(*side);
    if (!staged.ok()) return status_.Update(staged.status());
    *side = *std::move(staged);
  }
  if (pools_.IsPageable(from))
    std::memcpy(source.raw(), from.raw(), from.bytes());
  const Tensor late = pools_.IsPageable(to) ? to : Tensor();
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

absl::Status CudaDevice::Reduce(Queue queue, const TreeReduction& reduction) {
  TROUPE_RETURN_IF_ERROR(CheckReduceTree(reduction));
  MakeCurrent();
  for (const auto* side : {&reduction.sources, &reduction.destinations}) {
    for (const Tensor& tensor : *side) {
      TROUPE_RETURN_IF_ERROR(peers_.Enable(tensor.device().index));
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
  if (queues_.ask_again()) return kAgainPause;
  return looks_.empty() ? absl::InfiniteDuration() : kLookPause;
}

absl::StatusOr<bool> CudaDevice::ReadNotes() {
  for (Queue queue : queues_.list()) {
    TROUPE_ASSIGN_OR_RETURN(
        const bool read, notes_.Read(queue, events_, stream(queue), &status_));
    if (!read) return false;
  }
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
  for (Queue queue : queues_.list()) {
    while (!broken_) {
      const absl::StatusOr<bool> completed = CompleteOldest(Of(queue));
      Check(completed.status()).IgnoreError();
      if (!completed.ok() || !*completed) break;
      any = true;
    }
  }
  return any;
}

bool CudaDevice::Progress() {
  if (capturing()) return false;  // a capture does not allow cudaEventQuery
  bool moved = false;
  MakeCurrent();
  LookAround();
  for (Queue queue : queues_.list()) {
    if (broken_) break;
    const absl::StatusOr<bool> advanced = Of(queue).Advance();
    Check(advanced.status()).IgnoreError();
    moved = moved || !advanced.ok() || *advanced;
  }
  moved = CompleteWhatIsDone() || moved;
  if (broken_) {
    queues_.CompleteAll(status_);
    return false;
  }
  if (moved) return true;
  Watcher::Marks oldest;
  notes_.AddAwaited(oldest);
  queues_.AddOldest(oldest);
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
