#include "comm/spanning/frames/switchboard.h"

#include <sched.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/spanning/frames/wire.h"

namespace troupe::comm::internal {
namespace {

constexpr std::size_t kStagingKeptBytesMax = std::size_t{64} << 20;
// Limit on the bytes of frames that one peer may send to endpoints which do not
// exist yet.
constexpr std::size_t kHeldFrameBytesMax = std::size_t{64} << 20;

}  // namespace

Switchboard::Switchboard(FabricOptions options)
    : options_(std::move(options)),
      staging_(kStagingKeptBytesMax),
      peers_(new Peer[options_.links.size()]) {
  for (const std::unique_ptr<Link>& link : options_.links) {
    if (link != nullptr) link->SetSink(this);
  }
}

Switchboard::~Switchboard() { ShutDown(); }

std::string Switchboard::NameOf(int process) const {
  if (static_cast<std::size_t>(process) < options_.names.size()) {
    return options_.names[process];
  }
  return absl::StrCat("process ", process);
}

void Switchboard::Add(std::uint32_t group, std::shared_ptr<Endpoint> endpoint) {
  {
    absl::MutexLock lock(&mutex_);
    entries_[group].endpoint = endpoint;
  }
  for (;;) {
    std::deque<Held> held;
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_[group];
      if (entry.held.empty()) {
        entry.live = true;
        break;
      }
      held.swap(entry.held);
      for (const Held& one : held) {
        peers_[one.peer].held_bytes -= sizeof(Held) + one.payload.size();
      }
    }
    for (const Held& one : held) {
      const absl::Status ok =
          endpoint->Take(one.peer, one.frame, one.payload.data());
      if (!ok.ok()) Close(one.peer, ok);
    }
  }
  for (int peer = 0; peer < processes(); ++peer) {
    if (!lost(peer)) continue;
    absl::Status why;
    {
      absl::MutexLock lock(&mutex_);
      why = peers_[peer].why;
    }
    endpoint->OnLost(peer, why);
  }
}

bool Switchboard::Enter() {
  inside_.fetch_add(1);
  if (!down_.load()) return true;
  Leave();
  return false;
}

void Switchboard::Send(int peer, const Frame& frame, const char* payload,
                       SendDone* done, bool copy) {
  if (Enter()) {
    // A lost link calls OnSent() too.
    options_.links[peer]->Send(frame, payload, done, copy);
    Leave();
    if (alarm_ && !driven()) alarm_();
  } else if (done != nullptr) {
    done->OnSent();
  }
}

std::optional<Reference> Switchboard::Lend(const void* data, std::size_t bytes,
                                           absl::Span<const int> peers) {
  SharedMemory* const memory = options_.shared_memory.get();
  if (memory == nullptr || !Enter()) return std::nullopt;
  TakeBackGone();
  Reference reference;
  const std::optional<SharedRange> range =
      memory->Find(data, bytes, &reference.offset);
  bool ready = range.has_value();
  for (std::size_t i = 0; i < peers.size() && range.has_value(); ++i) {
    ready &= options_.links[peers[i]]->Lend(*range);
  }
  Leave();
  if (!ready) return std::nullopt;
  lent_.store(true);
  reference.range = range->id;
  return reference;
}

void Switchboard::TakeBackGone() {
  std::vector<std::uint64_t> gone;
  {
    absl::MutexLock lock(&gone_mutex_);
    options_.shared_memory->AddGone(&gone_cursor_, &gone);
  }
  for (const std::uint64_t id : gone) {
    for (const std::unique_ptr<Link>& link : options_.links) {
      if (link != nullptr) link->TakeBack(id);
    }
  }
}

std::shared_ptr<char> Switchboard::Borrow(int peer, const Reference& reference,
                                          std::size_t bytes) {
  if (!Enter()) return nullptr;
  std::shared_ptr<char> found =
      options_.links[peer]->Borrow(reference.range, reference.offset, bytes);
  Leave();
  return found;
}

bool Switchboard::BorrowedHolds(int peer) {
  if (!Enter()) return false;
  const bool holds = options_.links[peer]->BorrowedHolds();
  Leave();
  return holds;
}

void Switchboard::Post(TaskQueue::Task task) {
  tasks_.Add(std::move(task));
  if (alarm_ && !driven()) alarm_();
}

bool Switchboard::Progress() {
  // Tasks run after the links have ended too: events must still be completed.
  bool worked = tasks_.RunNext();
  if (!Enter()) return worked;
  for (int peer = 0; peer < processes(); ++peer) {
    Link* const link = options_.links[peer].get();
    if (link != nullptr) worked |= link->Progress();
  }
  Leave();
  return worked;
}

void Switchboard::Close(int peer, const absl::Status& why) {
  if (!Enter()) return;
  options_.links[peer]->Close(why);
  Leave();
}

void Switchboard::AbortAll(const absl::Status& why) {
  for (const std::shared_ptr<Endpoint>& endpoint : Endpoints()) {
    endpoint->BeginAbort(why);
  }
}

void Switchboard::ShutDown() {
  if (down_.exchange(true)) return;
  while (inside_.load() > 0) sched_yield();
  for (int peer = 0; peer < processes(); ++peer) {
    if (options_.links[peer] == nullptr) continue;
    options_.links[peer].reset();
    OnLost(peer, absl::CancelledError("this process ended its links"));
  }
  while (tasks_.RunNext()) {
  }
  // Breaks the cycle: endpoints refer to this board, as it does to them.
  absl::flat_hash_map<std::uint32_t, Entry> entries;
  {
    absl::MutexLock lock(&mutex_);
    entries.swap(entries_);
  }
}

std::shared_ptr<Endpoint> Switchboard::Find(std::uint32_t group) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = entries_.find(group);
  if (found == entries_.end() || !found->second.live) return nullptr;
  return found->second.endpoint;
}

std::vector<std::shared_ptr<Endpoint>> Switchboard::Endpoints() const {
  absl::MutexLock lock(&mutex_);
  // Sorted by number, so that the order of OnLost() does not depend on hashing.
  std::map<std::uint32_t, std::shared_ptr<Endpoint>> by_group;
  for (const auto& [group, entry] : entries_) {
    if (entry.endpoint != nullptr) by_group[group] = entry.endpoint;
  }
  std::vector<std::shared_ptr<Endpoint>> endpoints;
  for (auto& [group, endpoint] : by_group) {
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

char* Switchboard::Place(int peer, const Frame& frame) {
  // Notes are read where the link has them.
  if (TypeOf(frame) == FrameType::kNote) return nullptr;
  const std::shared_ptr<Endpoint> endpoint = Find(frame.group);
  return endpoint == nullptr ? nullptr : endpoint->Place(peer, frame);
}

void Switchboard::Take(int peer, const Frame& frame, const char* payload) {
  std::shared_ptr<Endpoint> endpoint = Find(frame.group);
  absl::Status ok;
  if (endpoint == nullptr) ok = Hold(peer, frame, payload, &endpoint);
  if (endpoint != nullptr) ok = endpoint->Take(peer, frame, payload);
  if (!ok.ok()) Close(peer, ok);
}

absl::Status Switchboard::Hold(int peer, const Frame& frame,
                               const char* payload,
                               std::shared_ptr<Endpoint>* endpoint) {
  absl::MutexLock lock(&mutex_);
  if (frame.group >> 24 != (options_.generation & 0xff)) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(peer), " sent a frame of another generation, ",
                     frame.group >> 24));
  }
  Entry& entry = entries_[frame.group];
  if (entry.live) {
    *endpoint = entry.endpoint;
    return absl::OkStatus();
  }
  const FrameType type = TypeOf(frame);
  if (type == FrameType::kPartial || type == FrameType::kValue ||
      type == FrameType::kData || type == FrameType::kClear ||
      type == FrameType::kCredit || type == FrameType::kLetGo) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(peer), " sent data for group ", frame.group & 0xffffff,
        ", which was not announced to it"));
  }
  const std::size_t bytes = sizeof(Held) + frame.bytes;
  if (peers_[peer].held_bytes + bytes > kHeldFrameBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        NameOf(peer), " is too far ahead: it sent ", peers_[peer].held_bytes,
        " bytes to groups that are not "
        "made here yet"));
  }
  // A group that was not made yet accesses no memory before it receives the
  // abort.
  if (type == FrameType::kAbort) {
    Post([this, peer, group = frame.group] {
      Send(peer, MakeFrame(FrameType::kLetGoAll, group, 0),
           /*payload=*/nullptr, /*done=*/nullptr);
    });
  }
  peers_[peer].held_bytes += bytes;
  std::string kept;
  if (frame.bytes > 0) kept.assign(payload, frame.bytes);
  entry.held.push_back({peer, frame, std::move(kept)});
  return absl::OkStatus();
}

void Switchboard::OnLost(int peer, const absl::Status& why) {
  const absl::Status named(
      why.code() == absl::StatusCode::kOk ? absl::StatusCode::kUnavailable
                                          : why.code(),
      absl::StrCat(NameOf(peer), " is lost: ", why.message()));
  {
    absl::MutexLock lock(&mutex_);
    if (!peers_[peer].why.ok()) return;
    peers_[peer].why = named;
  }
  peers_[peer].lost.store(true);
  // The peer may be alive, and still write to memory lent to it.
  if (lent_.load()) options_.shared_memory->Spoil();
  for (const std::shared_ptr<Endpoint>& endpoint : Endpoints()) {
    endpoint->OnLost(peer, named);
  }
  if (options_.on_lost && !down_.load()) {
    Post([this, peer, named] { options_.on_lost(peer, named); });
  }
}

}  // namespace troupe::comm::internal
