// Routes frames between the links of a process and its endpoints, and keeps a
// queue of the tasks that frames have made possible.
//
//   auto board = std::make_shared<Switchboard>(std::move(options));
//   board->Add(/*group=*/1, endpoint);
//   board->Send(peer, frame, payload, done);
//   while (board->Progress()) {
//   }
//
// Frames for an endpoint that does not exist yet (this process makes it later
// than the peer) are held, bounded, and delivered by Add(). A frame that breaks
// a rule closes its link, with a message.
//
// Locks: none is held while an endpoint, a link or a task runs.
// Threads: any.

#ifndef COMM_SPANNING_FRAMES_SWITCHBOARD_H_
#define COMM_SPANNING_FRAMES_SWITCHBOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "comm/fabric.h"
#include "comm/link.h"
#include "comm/spanning/frames/staging.h"
#include "comm/spanning/frames/task_queue.h"
#include "comm/spanning/frames/wire.h"

namespace troupe::comm::internal {

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // See FrameSink.
  virtual char* Place(int peer, const Frame& frame) = 0;
  // Handles a frame. An error means that the peer broke a rule.
  virtual absl::Status Take(int peer, const Frame& frame,
                            const char* payload) = 0;
  // Reports a lost peer, which `why` names; also called for one that was lost
  // before Add().
  virtual void OnLost(int peer, const absl::Status& why) = 0;
  // Ends all work without waiting.
  virtual void BeginAbort(const absl::Status& why) = 0;
};

class Switchboard final : public FrameSink {
 public:
  explicit Switchboard(FabricOptions options);
  ~Switchboard() override;

  const FabricOptions& options() const { return options_; }
  int process() const { return options_.process; }
  int processes() const { return static_cast<int>(options_.links.size()); }
  // Returns "process 1 (host a, pid 4711)".
  std::string NameOf(int process) const;
  StagingPool& staging() { return staging_; }

  // Registers `endpoint` for `group`, permanently.
  void Add(std::uint32_t group, std::shared_ptr<Endpoint> endpoint);

  // Sends as Link::Send() does; drops frames for a lost peer.
  void Send(int peer, const Frame& frame, const char* payload, SendDone* done,
            bool copy = false);
  // Returns the location of `bytes` at `data` in memory that all of `peers`
  // have mapped; none if they have not, or not yet.
  std::optional<Reference> Lend(const void* data, std::size_t bytes,
                                absl::Span<const int> peers);
  // Maps memory that `peer` lends at `reference`; null if it does not.
  std::shared_ptr<char> Borrow(int peer, const Reference& reference,
                               std::size_t bytes);
  // Returns whether data read from `peer`'s memory so far is valid
  // (Link::BorrowedHolds).
  bool BorrowedHolds(int peer);
  // Counts a collective by reference.
  void CountByReference() { by_reference_.fetch_add(1); }
  std::int64_t by_reference() const { return by_reference_.load(); }
  // Runs `task` in a thread that calls Progress().
  void Post(TaskQueue::Task task);
  bool Progress();
  // Ends the link to `peer`, which broke a rule or holds memory too long.
  void Close(int peer, const absl::Status& why);
  void AbortAll(const absl::Status& why);
  // Ends all links, after the calls that use them have returned; later calls do
  // nothing.
  void ShutDown();

  // Marks the thread as one that drives the links until its result is ready.
  class Driver {
   public:
    explicit Driver(Switchboard& board) : board_(board) {
      board_.drivers_.fetch_add(1);
    }
    ~Driver() {
      if (board_.drivers_.fetch_sub(1) > 1) return;
      if (board_.alarm_ && board_.has_tasks()) board_.alarm_();
    }
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

   private:
    Switchboard& board_;
  };
  bool driven() const { return drivers_.load() > 0; }

  // Sets the callback for work for Progress() that poll(2) on the links does
  // not show; called from any thread. Set once, before the board is used.
  void SetAlarm(std::function<void()> alarm) { alarm_ = std::move(alarm); }
  bool has_tasks() const { return !tasks_.empty(); }
  const std::vector<std::unique_ptr<Link>>& links() const {
    return options_.links;
  }
  bool lost(int peer) const { return peers_[peer].lost.load(); }

  // FrameSink
  char* Place(int peer, const Frame& frame) override;
  void Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;

 private:
  struct Held {
    int peer;
    Frame frame;
    std::string payload;
  };
  struct Entry {
    std::shared_ptr<Endpoint> endpoint;
    bool live = false;  // all held frames have been delivered
    std::deque<Held> held;
  };
  struct Peer {
    std::atomic<bool> lost{false};
    std::size_t held_bytes = 0;  // guarded by mutex_
    absl::Status why;            // guarded by mutex_
  };

  // Withdraws ranges that no longer exist from the links.
  void TakeBackGone() ABSL_LOCKS_EXCLUDED(gone_mutex_);
  bool Enter();
  void Leave() { inside_.fetch_sub(1); }
  std::shared_ptr<Endpoint> Find(std::uint32_t group) const;
  absl::Status Hold(int peer, const Frame& frame, const char* payload,
                    std::shared_ptr<Endpoint>* endpoint);
  std::vector<std::shared_ptr<Endpoint>> Endpoints() const;

  FabricOptions options_;
  StagingPool staging_;
  std::function<void()> alarm_;
  const std::unique_ptr<Peer[]> peers_;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::uint32_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);

  TaskQueue tasks_;

  absl::Mutex gone_mutex_;
  // Position in the shared memory's list of removed ranges up to which links
  // were notified.
  std::size_t gone_cursor_ ABSL_GUARDED_BY(gone_mutex_) = 0;

  std::atomic<bool> lent_{false};  // whether memory was ever lent
  std::atomic<std::int64_t> by_reference_{0};
  std::atomic<int> drivers_{0};
  // Number of threads that use links.
  std::atomic<int> inside_{0};
  std::atomic<bool> down_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_SWITCHBOARD_H_
