#include "comm/device/device_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/flow.h"
#include "comm/signature.h"

namespace troupe::comm::internal {

DeviceState::DeviceState(const LocalGroupOptions& options)
    : size_(options.size),
      in_flight_max_(options.in_flight_max),
      next_(options.size),
      gone_(options.size),
      waits_at_abort_(options.size) {}

absl::Status DeviceState::Admit(int rank, std::uint64_t signature) const {
  const std::uint64_t seq = next_[rank];
  const auto named = [&](absl::string_view text) {
    return absl::StrCat(text, " collective ", seq, " of the group, ",
                        Unpack(signature).ToString());
  };
  if (seq >= first_ + in_flight_max_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "rank ", rank, " is ", seq - first_,
        " collectives ahead of its peers, as many as in_flight_max allows; "
        "wait for them first"));
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (!gone_[peer] || next_[peer] > seq) continue;
    return absl::UnavailableError(absl::StrCat("rank ", peer,
                                               " left the group, and rank ",
                                               rank, named(" needs it for")));
  }
  if (seq == first_ + pending_.size() || At(seq).signature == signature) {
    return absl::OkStatus();
  }
  const Meeting& meeting = At(seq);
  return absl::FailedPreconditionError(absl::StrCat(
      "the ranks differ in collective ", seq, " of the group: rank ",
      meeting.first, " started ", Unpack(meeting.signature).ToString(),
      ", rank ", rank, " started ", Unpack(signature).ToString()));
}

absl::StatusOr<DeviceState::Joined> DeviceState::Join(
    int rank, const Collective& collective, Event after) {
  const std::uint64_t signature = Pack(collective);
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    TROUPE_RETURN_IF_ERROR(aborted_);
    refused = Admit(rank, signature);
    if (refused.ok()) {
      const std::uint64_t seq = next_[rank]++;
      if (seq == first_ + pending_.size()) {
        pending_.push_back(std::make_unique<Meeting>());
        At(seq).ranks.resize(size_);
        At(seq).signature = signature;
        At(seq).first = rank;
      }
      Meeting& meeting = At(seq);
      meeting.ranks[rank] = {true, collective, std::move(after),
                             std::chrono::steady_clock::now()};
      Joined joined{meeting.done, nullptr};
      if (++meeting.come == size_) {
        // Complete, and so the oldest: its ranks have started all earlier ones
        // before.
        joined.meeting = std::move(pending_.front());
        pending_.pop_front();
        ++first_;
      }
      return joined;
    }
  }
  if (!absl::IsResourceExhausted(refused)) Abort(refused);
  return refused;
}

void DeviceState::NoteLaunched(const Event& done) {
  absl::MutexLock lock(&mutex_);
  while (!launched_.empty() && launched_.front().ready()) {
    launched_.pop_front();
  }
  launched_.push_back(done);
}

void DeviceState::Abort(absl::Status status) {
  if (status.ok()) status = absl::CancelledError("the group was aborted");
  std::deque<std::unique_ptr<Meeting>> pending;
  std::deque<Event> launched;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    for (int r = 0; r < size_; ++r) waits_at_abort_[r] = WaitsNow(r);
    aborted_ = status;
    pending.swap(pending_);
    launched.swap(launched_);
  }
  for (const auto& meeting : pending) meeting->done.Complete(status);
  for (const Event& event : launched) {
    if (event.ready()) continue;
    if (const auto origin = event.origin()) origin->Block();
  }
}

void DeviceState::Leave(int rank) {
  bool needed = false;
  {
    absl::MutexLock lock(&mutex_);
    gone_[rank] = true;
    // Collectives of this rank wait for peers, or peers' collectives wait for
    // it.
    needed = aborted_.ok() && !pending_.empty();
  }
  if (needed) {
    Abort(absl::UnavailableError(absl::StrCat(
        "rank ", rank, " left the group while collectives wait for peers")));
  }
}

std::vector<Waiting> DeviceState::Waits(int rank) const {
  absl::MutexLock lock(&mutex_);
  return aborted_.ok() ? WaitsNow(rank) : waits_at_abort_[rank];
}

std::vector<Waiting> DeviceState::WaitsNow(int rank) const {
  std::vector<Waiting> all;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Meeting& meeting = *pending_[i];
    if (!meeting.ranks[rank].here) continue;
    Waiting waiting;
    waiting.collective = static_cast<std::int64_t>(first_ + i);
    waiting.what =
        absl::StrCat(Unpack(meeting.signature).ToString(), ", collective ",
                     waiting.collective, " of the group");
    waiting.since = meeting.ranks[rank].since;
    for (int r = 0; r < size_; ++r) {
      if (!meeting.ranks[r].here) waiting.ranks.push_back(r);
    }
    all.push_back(std::move(waiting));
  }
  return all;
}

namespace {

const nn::Tensor& InputOf(const Meeting& meeting, int rank) {
  const Collective& collective = meeting.ranks[rank].collective;
  return collective.input.defined() ? collective.input : collective.range;
}

absl::Status CarryBlock(const Meeting& meeting, const Block& block,
                        DeviceWork& work) {
  const int size = static_cast<int>(meeting.ranks.size());
  std::vector<nn::Tensor> sources, destinations;
  for (int r = 0; r < size; ++r) {
    if (block.from == Block::kAll || block.from == r) {
      sources.push_back(
          InputOf(meeting, r).FlatView(block.from_at, {block.count}));
    }
    if (block.to == Block::kAll || block.to == r) {
      destinations.push_back(meeting.ranks[r].collective.range.FlatView(
          block.to_at, {block.count}));
    }
  }
  if (sources.size() > 1) {
    return work.Reduce(meeting.ranks[0].collective.op, std::move(sources),
                       std::move(destinations));
  }
  for (const nn::Tensor& to : destinations) {
    if (to.device_data() == sources[0].device_data()) continue;
    work.Copy(sources[0], to);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Carry(const Meeting& meeting, DeviceWork& work) {
  std::vector<const Collective*> collectives;
  for (const Meeting::Rank& rank : meeting.ranks) {
    work.Wait(rank.after);
    collectives.push_back(&rank.collective);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Block> blocks, FlowOf(collectives));
  for (const Block& block : blocks) {
    TROUPE_RETURN_IF_ERROR(CarryBlock(meeting, block, work));
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal
