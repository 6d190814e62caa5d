// Two ends of a link, a sink that keeps what comes, and how to drive them.
//
//   LinkPair pair = MakeShmPair();
//   RecordingSink sink;
//   pair.b->SetSink(&sink);
//   Pump({pair.a.get(), pair.b.get()}, [&] { return sink.count() == 3; });

#ifndef TESTS_COMM_LINKS_LINK_TEST_UTIL_H_
#define TESTS_COMM_LINKS_LINK_TEST_UTIL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/owned_fd.h"
#include "comm/link.h"

namespace troupe::comm {

struct LinkPair {
  std::unique_ptr<Link> a;  // of process 0, to process 1
  std::unique_ptr<Link> b;
};

LinkPair MakeTcpPair();
LinkPair MakeUnixPair();
LinkPair MakeTlsPair();
// Both ends see the memory at the same addresses: ThreadSanitizer sees both.
LinkPair MakeShmPair();
// At addresses of their own, as in two processes.
LinkPair MakeRemappedShmPair();

// One connected socket each, blocking.
struct SocketPair {
  base::OwnedFd a;
  base::OwnedFd b;
};
SocketPair MakeSockets();
SocketPair MakeTcpSockets();

// `bytes` of a text that tells its place and its seed.
std::string Text(std::size_t bytes, std::uint64_t seed);

// Any thread.
class RecordingSink : public FrameSink {
 public:
  struct Got {
    Frame frame;
    std::string payload;
  };
  // What Place() does.
  enum class Places { kNever, kAlways, kEverySecond };
  explicit RecordingSink(Places places = Places::kNever) : places_(places) {}

  char* Place(int peer, const Frame& frame) override;
  void Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;

  // Called at the end of each Take().
  std::function<void(const Frame&)> on_take;
  // Keeps heads alone.
  bool forget_payloads = false;

  std::size_t count() const { return count_; }
  std::vector<Got> all() const ABSL_LOCKS_EXCLUDED(mutex_);
  Got last() const ABSL_LOCKS_EXCLUDED(mutex_);
  int losses() const { return losses_; }
  absl::Status why() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Rules of FrameSink that the link broke.
  std::string complaints() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Complain(const std::string& what) ABSL_LOCKS_EXCLUDED(mutex_);

  const Places places_;
  std::unique_ptr<char[]> placed_;
  bool has_placed_ = false;
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

// Calls Progress() of all until `done`, in this thread; false: a minute passed.
bool Pump(std::initializer_list<Link*> links,
          const std::function<bool()>& done);

// Something to sleep on besides a link.
class Bell {
 public:
  Bell();
  void Ring();  // for good
  int fd() const { return fd_.get(); }

 private:
  base::OwnedFd fd_;
};

// The same for one link, asleep where there is nothing to do, with no time-out:
// a wake-up that is lost ends in `false`. It looks at `done` when the link or
// `finished` wakes it up, and rings `finished` when it is done.
bool PumpWithPoll(Link* link, const std::function<bool()>& done,
                  Bell* finished);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_LINK_TEST_UTIL_H_
