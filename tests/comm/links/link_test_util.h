// Makes both ends of a link, records what arrives, and drives the ends.
//
//   LinkPair pair = MakeShmPair();
//   RecordingSink sink;
//   pair.b->SetSink(&sink);
//   Pump({pair.a.get(), pair.b.get()}, [&] { return sink.count() == 3; });

#ifndef TESTS_COMM_LINKS_LINK_TEST_UTIL_H_
#define TESTS_COMM_LINKS_LINK_TEST_UTIL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/files/owned_fd.h"
#include "comm/link.h"

namespace troupe::comm {

struct LinkPair {
  std::unique_ptr<Link> a;  // end of process 0
  std::unique_ptr<Link> b;
};

LinkPair MakeTcpPair();
LinkPair MakeUnixPair();
LinkPair MakeTlsPair();
// Both ends use one mapping of the memory, so that ThreadSanitizer sees the
// accesses of both.
LinkPair MakeShmPair();
// Each end has a mapping of its own, as in two processes.
LinkPair MakeRemappedShmPair();

// Two connected, blocking sockets.
struct SocketPair {
  base::OwnedFd a;
  base::OwnedFd b;
};
SocketPair MakeSockets();
SocketPair MakeTcpSockets();

// Returns `bytes` pseudorandom bytes that depend on `seed` and the position.
std::string Text(std::size_t bytes, std::uint64_t seed);

// A FrameSink that records all frames and checks the rules of the interface.
// Accessors may be called from any thread.
class RecordingSink : public FrameSink {
 public:
  struct Got {
    Frame frame;
    std::string payload;
  };
  // For which frames Place() offers a buffer; kEverySecond: those with an odd
  // `seq`.
  enum class Places { kNever, kAlways, kEverySecond };
  explicit RecordingSink(Places places = Places::kNever) : places_(places) {}

  char* Place(int peer, const Frame& frame) override;
  void Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;

  // Called at the end of each Take().
  std::function<void(const Frame&)> on_take;
  // Records frames without their payloads.
  bool forget_payloads = false;

  std::size_t count() const { return count_; }
  std::vector<Got> all() const ABSL_LOCKS_EXCLUDED(mutex_);
  Got last() const ABSL_LOCKS_EXCLUDED(mutex_);
  int losses() const { return losses_; }
  absl::Status why() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Names the rules of FrameSink that the link broke; empty if none.
  std::string complaints() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Complain(const std::string& what) ABSL_LOCKS_EXCLUDED(mutex_);

  const Places places_;
  std::deque<std::unique_ptr<char[]>> placed_;  // payloads not yet taken
  // Whether Place() has returned no memory, and the frame is not taken yet.
  bool awaits_take_ = false;
  std::atomic<bool> inside_{false};
  std::atomic<std::size_t> count_{0};
  std::atomic<int> losses_{0};
  mutable absl::Mutex mutex_;
  std::vector<Got> all_ ABSL_GUARDED_BY(mutex_);
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  std::string complaints_ ABSL_GUARDED_BY(mutex_);
};

class CountDone : public SendDone {
 public:
  void OnSent() override { ++count; }
  std::atomic<int> count{0};
};

// Calls Progress() on all links, in this thread, until `done`; returns false if
// nothing moved after a minute had passed.
bool Pump(std::initializer_list<Link*> links,
          const std::function<bool()>& done);

// An eventfd that wakes a thread which sleeps in PumpWithPoll().
class Bell {
 public:
  Bell();
  void Ring();  // once; the descriptor stays readable
  int fd() const { return fd_.get(); }

 private:
  base::OwnedFd fd_;
};

// Drives one link until `done`, and sleeps when there is nothing to do. It
// checks `done` again whenever the link or `finished` wakes it up, and rings
// `finished` when done. Returns false after a minute without an event: a lost
// wake-up.
bool PumpWithPoll(Link* link, const std::function<bool()>& done,
                  Bell* finished);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_LINK_TEST_UTIL_H_
