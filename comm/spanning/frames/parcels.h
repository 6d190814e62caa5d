// The parcels of a fabric (fabric.h): the courier sends them, one handler for
// each channel receives them.
//
//   auto parcels = std::make_shared<Parcels>(board, courier, group);
//   parcels->Send(to, channel, header, payload, after, done);
//   parcels->SetHandler(channel, handler);
//
// Each channel and sender has a queue: a parcel is passed to the handler, and
// received, once the one before it is complete. So parcels of one sender arrive
// in order, and one at a time. Threads: any.

#ifndef COMM_SPANNING_FRAMES_PARCELS_H_
#define COMM_SPANNING_FRAMES_PARCELS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "comm/fabric.h"
#include "comm/spanning/frames/courier.h"
#include "comm/spanning/frames/staging.h"

namespace troupe::comm::internal {

class Parcels final : public Endpoint,
                      public std::enable_shared_from_this<Parcels> {
 public:
  Parcels(Switchboard* board, std::shared_ptr<Courier> courier,
          std::uint32_t group);

  void Send(int to, std::uint32_t channel, absl::string_view header,
            const nn::Tensor& payload, const Event& after, const Event& done);
  void SetHandler(std::uint32_t channel,
                  std::shared_ptr<ParcelHandler> handler);
  // Ends all parcels; with `tell_peers` also all work on the peers.
  void End(const absl::Status& why, bool tell_peers);
  // Returns the reason of the end; ok before.
  absl::Status status() const;

  // Endpoint
  char* Place(int, const Frame&) override { return nullptr; }
  absl::Status Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;
  void BeginAbort(const absl::Status& why) override {
    End(why, /*tell_peers=*/true);
  }

 private:
  struct Waiting {
    std::uint64_t id = 0;
    Parcel parcel;
    StagingBuffer data;  // payload of a small one
    bool small = false;
  };
  struct Queue {  // for one channel and sender
    std::deque<Waiting> waiting;
    bool busy = false;  // its first parcel is being received
  };
  struct Channel {
    std::shared_ptr<ParcelHandler> handler;
    std::map<int, Queue> queues;  // index: sender
    int calls = 0;                // calls of the handler that are running
  };

  void Serve(std::uint32_t channel, int peer);
  void ReceiveOne(std::uint32_t channel, ParcelHandler& handler,
                  Waiting waiting);
  void Complete(std::uint32_t channel, const Waiting& waiting,
                const nn::Tensor& into, const absl::Status& status);
  void Next(std::uint32_t channel, int peer);

  Switchboard& board_;
  const std::shared_ptr<Courier> courier_;
  const std::uint32_t group_;
  mutable absl::Mutex mutex_;
  std::map<std::uint32_t, Channel> channels_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::size_t> held_bytes_ ABSL_GUARDED_BY(mutex_);  // index: peer
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_PARCELS_H_
