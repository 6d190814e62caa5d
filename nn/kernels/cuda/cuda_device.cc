#include "nn/kernels/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "nn/kernels/cuda/reduce_tree.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

constexpr std::size_t kAllOfIt = std::numeric_limits<std::size_t>::max();
// Between two looks of LookAfter(), and two calls of work that is not done.
constexpr absl::Duration kLookPause = absl::Milliseconds(10);
constexpr absl::Duration kAgainPause = absl::Microseconds(200);
constexpr Queue kQueues[] = {Queue::kCompute, Queue::kCopy, Queue::kComm};

CachingAllocator::Options Of(Device device,
                             std::shared_ptr<MemorySource> source) {
  CachingAllocator::Options options;
  options.cached_bytes_max = kAllOfIt;
  options.device = device;
  options.source = std::move(source);
  return options;
}

// The kernel that writes the note may run meanwhile: what is read here only
// says whether to look closer.
__attribute__((no_sanitize("thread"))) bool HasDataError(
    const volatile DataError& error) {
  return error.op != kNoDataError;
}

}  // namespace

void CudaDevice::Wakeup::Call() {
  absl::MutexLock lock(&mutex);
  if (call) call();
}

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
                     "; CUDA_VISIBLE_DEVICES chooses which it sees"));
  }
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const Streams> streams,
                          Streams::Create(ordinal));
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(streams)));
  TROUPE_RETURN_IF_ERROR(device->Init());
  return device;
}

CudaDevice::CudaDevice(std::shared_ptr<const Streams> streams)
    : streams_(std::move(streams)),
      events_(std::make_shared<EventPool>(streams_->ordinal())),
      pinned_(std::make_shared<PinnedMemory>(streams_->ordinal())),
      allocator_(nn::cuda::Of({DeviceType::kCuda, streams_->ordinal()},
                              std::make_shared<DeviceMemory>(streams_))),
      host_(nn::cuda::Of(Device{}, pinned_)),
      queues_{{"compute", streams_->Of(Queue::kCompute), events_, &status_},
              {"copy", streams_->Of(Queue::kCopy), events_, &status_},
              {"comm", streams_->Of(Queue::kComm), events_, &status_}} {}

absl::Status CudaDevice::Init() {
  TROUPE_ASSIGN_OR_RETURN(data_error_, host_.Allocate(sizeof(DataError)));
  new (data_error_->data()) DataError();
  return absl::OkStatus();
}

CudaDevice::~CudaDevice() { Close(); }

void CudaDevice::Close() {
  SetWakeup(nullptr, /*watch=*/false).IgnoreError();
  streams_->Finish();
  noted_ = nullptr;
  looks_.clear();
  CompleteWhatIsDone();
  const absl::Status closed = absl::CancelledError(
      absl::StrCat("cuda:", ordinal(), " was closed before this was done"));
  status_.Update(closed);
  broken_ = true;
  CompleteAll();
}

absl::Status CudaDevice::Check(const absl::Status& status) {
  if (status.ok() || broken_) return status_;
  broken_ = true;
  std::vector<std::string> in_flight;
  for (const StreamQueue& queue : queues_) {
    std::string text = queue.InFlight();
    if (!text.empty()) in_flight.push_back(std::move(text));
  }
  status_.Update(absl::Status(
      status.code(),
      absl::StrCat("cuda:", ordinal(), " failed: ", status.message(),
                   in_flight.empty() ? "" : "; in flight: ",
                   absl::StrJoin(in_flight, "; "))));
  return status_;
}

void CudaDevice::MakeCurrent() {
  if (broken_) return;
  Check(CudaStatus(cudaSetDevice(ordinal()), "cudaSetDevice")).IgnoreError();
}

bool CudaDevice::TakesNow(Queue queue, const char* name) {
  StreamQueue& given = Of(queue);
  if (broken_ || given.held()) return false;
  MakeCurrent();
  if (broken_) return false;
  given.Note(name);
  return true;
}

absl::Status CudaDevice::Give(Queue queue, const char* name,
                              StreamQueue::Work work) {
  MakeCurrent();
  if (broken_) return status_;
  return Of(queue).Give(name, std::move(work));
}

base::Event CudaDevice::Record(Queue queue) {
  const base::Event done = base::Event::Make();
  if (!broken_) Check(Of(queue).Record(done)).IgnoreError();
  if (broken_) done.Complete(status_);
  return done;
}

void CudaDevice::Wait(Queue queue, const base::Event& event) {
  if (broken_) return;
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
        "; ranks of one process reduce over GPUs that are peers"));
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
  return Give(queue, "Reduce", [stream = stream(queue), reduction] {
    return ReduceTree(reduction, stream);
  });
}

absl::Status CudaDevice::Enqueue(Queue queue, const char* name,
                                 std::function<bool(void*)> work) {
  MakeCurrent();
  if (broken_) return status_;
  return Of(queue).GiveUntilTrue(
      name, [stream = stream(queue), work = std::move(work)] {
        return work(stream);
      });
}

void CudaDevice::LookAfter(std::function<bool()> look) {
  looks_.push_back(std::move(look));
}

void CudaDevice::LookAround() {
  // One of them may bring another.
  std::vector<std::function<bool()>> looks;
  looks.swap(looks_);
  for (std::function<bool()>& look : looks) {
    if (look()) looks_.push_back(std::move(look));
  }
}

absl::Duration CudaDevice::PauseMax() const {
  for (const StreamQueue& queue : queues_) {
    if (queue.asks_again()) return kAgainPause;
  }
  return looks_.empty() ? absl::InfiniteDuration() : kLookPause;
}

absl::StatusOr<bool> CudaDevice::ReadNote() {
  if (!status_.ok() || !HasDataError(*data_error())) return true;
  // The kernel that writes it may be at it, and later than what is done now. It
  // has ended when all that its stream was given so far has.
  if (noted_ == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        noted_, EventPool::Record(events_, stream(Queue::kCompute)));
  }
  const cudaError_t state = cudaEventQuery(noted_->event());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // no error: the next launch must not find it
    return false;
  }
  TROUPE_RETURN_IF_ERROR(CudaStatus(state, "cudaEventQuery"));
  noted_ = nullptr;
  status_ = StatusOf(*data_error());
  return true;
}

absl::StatusOr<bool> CudaDevice::CompleteOldest(StreamQueue& queue) {
  TROUPE_ASSIGN_OR_RETURN(const bool done, queue.OldestIsDone());
  if (!done) return false;
  // What it stands for may have left a note, and has run by now.
  TROUPE_ASSIGN_OR_RETURN(const bool read, ReadNote());
  if (!read) return false;
  queue.TakeOldest()->Finish(status_);  // may come back here
  return true;
}

bool CudaDevice::CompleteWhatIsDone() {
  bool any = false;
  for (Queue queue : kQueues) {
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
  for (Queue queue : kQueues) {
    while (auto ended = Of(queue).TakeOldest()) ended->Finish(status_);
  }
  DropHeld(status_);
}

void CudaDevice::DropHeld(const absl::Status& status) {
  for (Queue queue : kQueues) {
    for (const base::Event& event : Of(queue).DropHeld()) {
      event.Complete(status);
    }
  }
}

bool CudaDevice::Progress() {
  bool moved = false;
  MakeCurrent();
  LookAround();
  for (Queue queue : kQueues) {
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
  if (noted_ != nullptr) oldest.push_back(noted_);
  for (Queue queue : kQueues) {
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
  {
    absl::MutexLock lock(&wakeup_->mutex);
    wakeup_->call = std::move(wakeup);
  }
  if (!watch) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      watcher_,
      Watcher::Start(ordinal(), [wakeup = wakeup_] { wakeup->Call(); }));
  return absl::OkStatus();
}

}  // namespace troupe::nn::cuda
