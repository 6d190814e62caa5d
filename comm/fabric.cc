#include "comm/fabric.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/reduction/reduction_tree.h"
#include "comm/spanning/frames/courier.h"
#include "comm/spanning/frames/io_thread.h"
#include "comm/spanning/frames/parcels.h"
#include "comm/spanning/frames/switchboard.h"
#include "comm/spanning/frames/wire.h"
#include "comm/spanning/spanning_group.h"
#include "comm/spanning/spanning_state.h"

namespace troupe::comm {
namespace {

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("a fabric's ", field, ": ", what));
}

absl::Status CheckOptions(const FabricOptions& options) {
  const int processes =
      std::max<int>(static_cast<int>(options.links.size()), 1);
  if (options.process < 0 || options.process >= processes) {
    return Wrong("process", absl::StrCat("must be 0 to ", processes - 1,
                                         ", not ", options.process));
  }
  for (int p = 0; p < static_cast<int>(options.links.size()); ++p) {
    const Link* const link = options.links[p].get();
    if ((link == nullptr) != (p == options.process)) {
      return Wrong("links",
                   absl::StrCat("there must be one to each process but "
                                "this; look at process ",
                                p));
    }
    if (link != nullptr && link->peer() != p) {
      return Wrong("links",
                   absl::StrCat("link ", p, " must lead there, not to ",
                                link->ToString()));
    }
  }
  for (int process : options.process_of) {
    if (process < 0 || process >= processes) {
      return Wrong("process_of",
                   absl::StrCat("processes must be 0 to ", processes - 1,
                                ", not ", process));
    }
  }
  // A note contains a payload of at most eager_bytes and, for an all_to_all,
  // the counts.
  if (options.eager_bytes.value_or(0) > kEagerBytesMax) {
    return Wrong("eager_bytes", "must be a quarter of a frame at most");
  }
  if (options.piece_bytes < 64 || options.piece_bytes > kFrameBytesMax) {
    return Wrong("piece_bytes", "must be 64 bytes at least, one frame at most");
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(const FabricGroupOptions& options, int ranks) {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("group ", options.name, ": ", what...));
  };
  if (options.ranks.empty() ||
      options.ranks.size() > static_cast<std::size_t>(kLocalGroupSizeMax)) {
    return wrong("has ", options.ranks.size(), " ranks; 1 to ",
                 kLocalGroupSizeMax, " are possible");
  }
  std::set<int> seen;
  for (int rank : options.ranks) {
    if (rank < 0 || rank >= ranks) {
      return wrong("rank ", rank, " of ", ranks, " in all");
    }
    if (!seen.insert(rank).second) return wrong("rank ", rank, " comes twice");
  }
  if (options.key.has_value() && *options.key >= kGroupKeysMax) {
    return wrong("its key is ", *options.key, "; it is below ", kGroupKeysMax);
  }
  const int in_flight = options.in_flight_max;
  if (in_flight < 1 || in_flight > kLocalGroupInFlightMax ||
      (in_flight & (in_flight - 1)) != 0) {
    return wrong("in_flight_max is ", in_flight,
                 "; it is a power of two up to ", kLocalGroupInFlightMax);
  }
  return absl::OkStatus();
}

// Counts the last frames that are not sent yet: once it is sent, so are all
// frames before it on its link.
class LastFrame final : public SendDone {
 public:
  explicit LastFrame(std::shared_ptr<std::atomic<int>> left)
      : left_(std::move(left)) {
    left_->fetch_add(1);
  }
  void OnSent() override {
    left_->fetch_sub(1);
    delete this;
  }

 private:
  const std::shared_ptr<std::atomic<int>> left_;
};

}  // namespace

class Fabric::Impl {
 public:
  explicit Impl(FabricOptions options)
      : board_(std::make_shared<internal::Switchboard>(std::move(options))),
        generation_((board_->options().generation & 0xff) << 24),
        courier_(std::make_shared<internal::Courier>(board_.get(), Number())),
        parcels_(std::make_shared<internal::Parcels>(board_.get(), courier_,
                                                     Number())) {
    board_->Add(generation_, courier_);
    board_->Add(generation_ | 1, parcels_);
    if (board_->options().run_thread && board_->processes() > 1) {
      thread_ = std::make_unique<internal::IoThread>(
          board_.get(), board_->options().look_for);
    }
  }

  ~Impl() {
    // A group whose ranks were all destroyed before is not aborted: its peers
    // may still finish.
    const absl::Status why = absl::CancelledError("the fabric is gone");
    parcels_->End(why, /*tell_peers=*/false);
    AbortGroups(why);
    SayBye();
    thread_.reset();
    board_->ShutDown();
  }

  internal::Switchboard& board() { return *board_; }
  std::weak_ptr<internal::Switchboard> weak_board() const { return board_; }
  internal::Parcels& parcels() { return *parcels_; }

  absl::StatusOr<Group> MakeGroup(FabricGroupOptions options) {
    const FabricOptions& fabric = board_->options();
    TROUPE_RETURN_IF_ERROR(
        CheckGroup(options, static_cast<int>(fabric.process_of.size())));
    const std::uint32_t number = options.key ? Keyed(*options.key) : Number();
    std::vector<int> here;
    for (std::size_t r = 0; r < options.ranks.size(); ++r) {
      if (fabric.process_of[options.ranks[r]] == fabric.process) {
        here.push_back(static_cast<int>(r));
      }
    }
    if (here.size() == options.ranks.size()) return MakeLocal(options);
    Group group(options.ranks.size());
    if (here.empty()) return group;
    if (options.key && !keys_.insert(*options.key).second) {
      return absl::AlreadyExistsError(
          absl::StrCat("group ", options.name, ": another group has key ",
                       *options.key, "; take another"));
    }
    auto state = std::make_shared<internal::SpanningState>(
        board_, courier_, number, std::move(options));
    board_->Add(number, state);
    states_.push_back(state);
    if (const absl::Status over = parcels_->status(); !over.ok()) {
      state->BeginAbort(over);
    }
    for (int rank : here) {
      group[rank] = internal::MakeSpanningRank(state, rank);
    }
    return group;
  }

  void Abort(const absl::Status& why) {
    board_->AbortAll(why);
    AbortGroups(why);
  }

 private:
  void AbortGroups(const absl::Status& why) {
    for (const auto& weak : states_) {
      if (const auto state = weak.lock()) state->Abort(why);
    }
    while (board_->has_tasks()) board_->Progress();
  }
  Group MakeLocal(const FabricGroupOptions& options) {
    LocalGroupOptions local;
    local.size = static_cast<int>(options.ranks.size());
    local.chunk_bytes = options.chunk_bytes;
    local.in_flight_max = options.in_flight_max;
    return MakeLocalGroup(local);
  }
  // Sends the last frames and waits for them, abort_grace at most: peers may
  // still need earlier frames.
  void SayBye() {
    const auto left = std::make_shared<std::atomic<int>>(0);
    const Frame bye =
        internal::MakeFrame(internal::FrameType::kBye, generation_ | 1, 0);
    for (int peer = 0; peer < board_->processes(); ++peer) {
      if (peer == board_->process()) continue;
      board_->Send(peer, bye, nullptr, new LastFrame(left));
    }
    const absl::Time patience = absl::Now() + board_->options().abort_grace;
    while (left->load() > 0 && absl::Now() < patience) {
      if (!board_->Progress()) sched_yield();
    }
  }
  // Returns the next endpoint number; the first two are the courier's and the
  // parcels'.
  std::uint32_t Number() { return generation_ | next_number_++; }
  std::uint32_t Keyed(std::uint32_t key) const {
    return generation_ | kGroupKeysMax | key;
  }

  const std::shared_ptr<internal::Switchboard> board_;
  const std::uint32_t generation_;
  std::uint32_t next_number_ = 0;
  std::set<std::uint32_t> keys_;
  const std::shared_ptr<internal::Courier> courier_;
  const std::shared_ptr<internal::Parcels> parcels_;
  std::vector<std::weak_ptr<internal::SpanningState>> states_;
  std::unique_ptr<internal::IoThread> thread_;
};

absl::StatusOr<std::unique_ptr<Fabric>> Fabric::Make(FabricOptions options) {
  TROUPE_RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<Fabric>(new Fabric(std::move(options)));
}

Fabric::Fabric(FabricOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
Fabric::~Fabric() = default;

int Fabric::process() const { return impl_->board().process(); }
int Fabric::processes() const {
  return std::max(impl_->board().processes(), 1);
}

std::int64_t Fabric::by_reference() const {
  return impl_->board().by_reference();
}

absl::StatusOr<Group> Fabric::MakeGroup(FabricGroupOptions options) {
  return impl_->MakeGroup(std::move(options));
}

absl::StatusOr<Event> Fabric::SendParcel(int to, std::uint32_t channel,
                                         absl::string_view header,
                                         const nn::Tensor& payload,
                                         Event after) {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a parcel to process ", to, " on channel ", channel, ": ", what...));
  };
  if (to < 0 || to >= impl_->board().processes() || to == process()) {
    return wrong("there is no link to that process");
  }
  if (header.size() > kParcelHeaderBytesMax) {
    return wrong("its header has ", header.size(), " bytes, ",
                 kParcelHeaderBytesMax, " are possible");
  }
  if (payload.defined() && payload.numel() > 0 && !payload.host_accessible()) {
    return wrong("its payload has no memory here");
  }
  TROUPE_RETURN_IF_ERROR(impl_->parcels().status());
  after.OnReady([weak = impl_->weak_board(), to](const absl::Status& status) {
    const auto board = weak.lock();
    if (status.ok() || board == nullptr) return;
    board->AbortAll(base::WithMessage(
        status, absl::StrCat("a parcel to process ", to,
                             " could not begin: ", status.message())));
  });
  const Event done = Event::Make();
  impl_->parcels().Send(to, channel, header, payload, after, done);
  return done;
}

void Fabric::SetParcelHandler(std::uint32_t channel,
                              std::shared_ptr<ParcelHandler> handler) {
  impl_->parcels().SetHandler(channel, std::move(handler));
}

bool Fabric::Progress() { return impl_->board().Progress(); }

void Fabric::Abort(absl::Status status) {
  impl_->Abort(status.ok() ? absl::CancelledError("the fabric was aborted")
                           : status);
}

}  // namespace troupe::comm
