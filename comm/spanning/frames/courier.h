// Transfers payloads from process to process: an *offer* announces a payload,
// and contains it if it is small. Otherwise the receiver *clears* the offer
// once it has memory for it, and the data is received straight into that
// memory.
//
//   courier->Send({peer, lane, offer_frame, header, payload}, after, done);
//   // On the other side, in the endpoint that the frame is for:
//   TROUPE_ASSIGN_OR_RETURN(Courier::Offer offer, Courier::Read(frame, bytes));
//   courier->Accept(peer, frame.seq, {group, memory, offer.bytes, told});
//
// Offers of one lane are sent in the order of Send(), regardless of the order
// in which their `after` become ready. No data arrives before it was cleared,
// so the receiver needs no buffers.
//
// Threads: any.

#ifndef COMM_SPANNING_FRAMES_COURIER_H_
#define COMM_SPANNING_FRAMES_COURIER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "comm/communicator.h"
#include "comm/spanning/frames/switchboard.h"
#include "comm/spanning/frames/wire.h"

namespace troupe::comm::internal {

class Courier final : public Endpoint,
                      public std::enable_shared_from_this<Courier> {
 public:
  struct Item {
    int peer = 0;
    std::uint64_t lane = 0;
    // Its type, group, tag and the last two words are used.
    Frame frame;
    std::string header;
    nn::Tensor payload;  // may be undefined
  };
  struct Offer {
    absl::string_view header;
    std::size_t bytes = 0;
    const char* data = nullptr;  // null: must be cleared, unless bytes is 0
  };
  struct Receipt {
    std::uint32_t group = 0;
    nn::Tensor into;  // has at least `bytes`
    std::size_t bytes = 0;
    // Called once, with no lock held, and not from within a link.
    std::function<void(const absl::Status&)> told;
  };

  // `group` is the courier's own.
  Courier(Switchboard* board, std::uint32_t group);

  // Completes `done` when the payload may be reused. The caller handles an
  // `after` that failed.
  void Send(Item item, const Event& after, const Event& done);
  // Parses the payload of a frame kOffer; the result refers to it.
  static absl::StatusOr<Offer> Read(const Frame& frame, const char* payload);
  void Accept(int peer, std::uint64_t id, Receipt receipt);

  // Returns the offer of the oldest payload that the peer has not cleared, or
  // that waits for its `after`.
  std::optional<Frame> FirstUncleared(std::uint32_t group, int peer,
                                      std::uint64_t lane) const;
  // Ends all transfers of `group`; each reports once the links have released
  // its memory.
  void Cancel(std::uint32_t group, const absl::Status& why);
  // Returns the peers whose links use memory of `group`.
  std::vector<int> Holders(std::uint32_t group) const;

  // Endpoint
  char* Place(int peer, const Frame& frame) override;
  absl::Status Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;
  void BeginAbort(const absl::Status&) override {}

 private:
  friend class DataSent;
  struct Waiting {  // queued in a lane
    Item item;
    Event after, done;
  };
  struct Outbound {
    std::uint32_t group = 0;
    std::uint64_t lane = 0;
    Frame offer;
    nn::Tensor payload;
    std::size_t next = 0;  // bytes passed to the link
    int out = 0;           // frames that the link holds
    bool cleared = false;
    bool pumping = false;  // some thread passes frames to the link
    absl::Status over;     // not ok: cancelled
    Event done;
  };
  struct Inbound {
    Receipt receipt;
    std::size_t placed = 0, received = 0;  // bytes
    absl::Status over;
  };
  using Key = std::pair<int, std::uint64_t>;  // peer, id
  using LaneKey = std::tuple<std::uint32_t, int, std::uint64_t>;

  void DrainLane(const LaneKey& key);
  bool SendFirst(const LaneKey& key);
  void Pump(const Key& key);
  void OnSent(const Key& key);
  // Remove a transfer that has ended and whose memory is released; a task
  // reports it.
  void RetireOutbound(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetireInbound(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Matches>
  void End(const Matches& matches, bool lost, const absl::Status& why);

  Switchboard* const board_;
  const std::uint32_t group_;
  mutable absl::Mutex mutex_;
  std::map<LaneKey, std::deque<Waiting>> lanes_ ABSL_GUARDED_BY(mutex_);
  // Lanes from which some thread is sending.
  std::map<LaneKey, bool> draining_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> next_id_ ABSL_GUARDED_BY(mutex_);  // index: peer
  std::map<Key, Outbound> outbound_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Inbound> inbound_ ABSL_GUARDED_BY(mutex_);
  // Lowest unknown identifier, by peer. Frames of lower ones whose transfer has
  // ended are ignored.
  std::vector<std::uint64_t> seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_COURIER_H_
