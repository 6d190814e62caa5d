#include "nn/kernels/queued/queued_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

constexpr std::size_t kLine = 64;
// Number of pieces of work, on average, after which another queue becomes the
// favourite. Every other choice takes the favourite: it reaches orders in which
// one queue is far ahead.
constexpr std::uint64_t kBurst = 6;
constexpr int kPoison = 0xff;  // a NaN in every floating dtype

}  // namespace

std::shared_ptr<QueuedDevice> QueuedDevice::Create(
    std::shared_ptr<GuardedMemory> memory, std::uint64_t seed) {
  return std::shared_ptr<QueuedDevice>(
      new QueuedDevice(std::move(memory), seed));
}

QueuedDevice::QueuedDevice(std::shared_ptr<GuardedMemory> memory,
                           std::uint64_t seed)
    : memory_(std::move(memory)), random_(seed) {
  for (int i = 0; i < kNumQueues; ++i) {
    pools_[i].device_ = this;
    pools_[i].queue_ = static_cast<Queue>(i);
  }
}

QueuedDevice::~QueuedDevice() {
  for (Pool& pool : pools_) pool.ReleaseCached();
}

void QueuedDevice::Push(Queue queue, Item item) {
  absl::MutexLock lock(&mutex_);
  PushLocked(queue, std::move(item));
}

void QueuedDevice::PushLocked(Queue queue, Item item) {
  const int i = static_cast<int>(queue);
  queues_[i].push_back(std::move(item));
  used_ = std::max(used_, i + 1);
}

void QueuedDevice::Enqueue(Queue queue, Work work) {
  Push(queue, {std::move(work), base::Event(), base::Event()});
}

base::Event QueuedDevice::Record(Queue queue) {
  const base::Event done = base::Event::Make();
  Push(queue, {nullptr, done, base::Event()});
  return done;
}

void QueuedDevice::Wait(Queue queue, const base::Event& event) {
  Push(queue, {nullptr, base::Event(), event});
  if (event.ready()) return;
  event.OnReady([wakeup = wakeup_](const absl::Status&) { wakeup->Call(); });
}

void QueuedDevice::CopyBytes(Queue queue, const Tensor& from,
                             const Tensor& to) {
  // A handle is kept of the host's tensor, and not of the device's.
  const Tensor host = from.host_accessible() ? from
                      : to.host_accessible() ? to
                                             : Tensor();
  Enqueue(queue, [host, source = from.device_data(), target = to.device_data(),
                  bytes = from.bytes()] {
    std::memcpy(target, source, bytes);
    return absl::OkStatus();
  });
}

bool QueuedDevice::Progress() {
  Item item;
  {
    absl::MutexLock lock(&mutex_);
    if (running_) return false;
    const int queue = Choose();
    if (queue < 0) return false;
    item = std::move(queues_[queue].front());
    queues_[queue].pop_front();
    running_ = true;
  }
  const absl::Status status = Run(item);
  absl::Status outcome;  // for all work so far
  {
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
    running_ = false;
    outcome = status_;
  }
  // Called without the lock: a handler of the event may call this device.
  item.completes.Complete(outcome);
  return true;
}

absl::Status QueuedDevice::Run(const Item& item) {
  if (!item.work) return item.waits_for.status();
  GuardedMemory::Opened opened(*memory_);
  return item.work();
}

int QueuedDevice::Choose() {
  const auto draw = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(Draw(static_cast<std::uint64_t>(used_)));
  };
  if (Draw(kBurst) == 0) favourite_ = draw();
  const int first = Draw(2) == 0 ? favourite_ : draw();
  for (int i = 0; i < used_; ++i) {
    const int queue = (first + i) % used_;
    if (queues_[queue].empty()) continue;
    const Item& next = queues_[queue].front();
    if (next.waits_for.ready()) return queue;
  }
  return -1;
}

// xorshift64*: Vigna 2016, arXiv:1402.6246.
std::uint64_t QueuedDevice::Draw(std::uint64_t below) {
  random_ += 0x9e3779b97f4a7c15;  // must not stay zero
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return (random_ * 0x2545f4914f6cdd1d >> 33) % below;
}

absl::StatusOr<StoragePtr> QueuedDevice::Pool::Allocate(std::size_t bytes) {
  const std::size_t rounded =
      std::max(kLine, (bytes + kLine - 1) / kLine * kLine);
  absl::MutexLock lock(&device_->mutex_);
  Storage* storage = nullptr;
  std::vector<Storage*>& same = free_[rounded];
  if (!same.empty()) {
    storage = same.back();
    same.pop_back();
    stats_.bytes_cached -= rounded;
  } else {
    void* const block = device_->memory_->Allocate(rounded);
    if (block == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat(device().ToString(), " has no memory for ", bytes,
                       " bytes: tensors hold ", stats_.bytes_in_use));
    }
    storage = new Storage(this, block, rounded, /*host_accessible=*/false);
    ++stats_.system_allocations;
  }
  ++stats_.allocations;
  stats_.bytes_in_use += rounded;
  stats_.bytes_in_use_peak =
      std::max(stats_.bytes_in_use_peak, stats_.bytes_in_use);
  if (device_->live_++ == 0) device_->self_ = device_->shared_from_this();
  return StoragePtr(storage->HandOut(bytes));
}

void QueuedDevice::Pool::Recycle(Storage* storage) {
  const std::size_t bytes = storage->block_bytes();
  std::shared_ptr<QueuedDevice> last;
  absl::MutexLock lock(&device_->mutex_);
  device_->PushLocked(queue_, {[block = storage->data(), bytes] {
                                 std::memset(block, kPoison, bytes);
                                 return absl::OkStatus();
                               },
                               base::Event(), base::Event()});
  free_[bytes].push_back(storage);
  stats_.bytes_in_use -= bytes;
  stats_.bytes_cached += bytes;
  if (--device_->live_ == 0) last = std::move(device_->self_);
}

void QueuedDevice::Pool::ReleaseCached() {
  absl::MutexLock lock(&device_->mutex_);
  for (auto& [bytes, storages] : free_) {
    for (Storage* storage : storages) {
      device_->memory_->Free(storage->data(), bytes);
      delete storage;
    }
    storages.clear();
  }
  stats_.bytes_cached = 0;
}

Allocator::Stats QueuedDevice::Pool::stats() const {
  absl::MutexLock lock(&device_->mutex_);
  return stats_;
}

}  // namespace troupe::nn
