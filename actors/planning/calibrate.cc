#include "actors/planning/calibrate.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace troupe::actors {
namespace {

constexpr int kHandOffs = 32;
constexpr std::int64_t kProbeBytes = 1 << 20;
// Limit on the result: a larger reduction is to overlap with backward, however
// fast memory is.
constexpr std::int64_t kInlineBytesMax = std::int64_t{4} << 20;

// Two threads that pass a turn back and forth, as two strands pass a bucket.
class PingPong {
 public:
  // Returns the seconds of one hand-off, there and back.
  double Measure() {
    std::thread other([this] { Play(/*me=*/1); });
    const absl::Time start = absl::Now();
    Play(/*me=*/0);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    other.join();
    return seconds / kHandOffs;
  }

 private:
  void Play(int me) {
    for (int i = 0; i < kHandOffs; ++i) {
      absl::MutexLock lock(&mutex_);
      auto my_turn = [this, me]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return turn_ == me;
      };
      mutex_.Await(absl::Condition(&my_turn));
      turn_ = 1 - me;
    }
  }

  absl::Mutex mutex_;
  int turn_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns the seconds per byte of adding one range to another.
double MeasureReduce() {
  const std::size_t count = kProbeBytes / sizeof(float);
  std::vector<float> a(count, 1.0f), b(count, 2.0f);
  double best = 1;
  for (int round = 0; round < 4; ++round) {
    const absl::Time start = absl::Now();
    for (std::size_t i = 0; i < count; ++i) a[i] += b[i];
    best = std::min(best, absl::ToDoubleSeconds(absl::Now() - start));
  }
  // The result is used, so that the compiler keeps the loop.
  return a[count / 2] > 0 ? best / kProbeBytes : 0;
}

}  // namespace

std::int64_t MeasureInlineBytes(int ranks, int cores) {
  if (ranks == 1 || ranks >= cores) {
    return std::numeric_limits<std::int64_t>::max();
  }
  PingPong ping_pong;
  const double hand_off = ping_pong.Measure();
  const double per_byte = MeasureReduce();
  if (per_byte <= 0) return 0;
  const double bytes = hand_off / per_byte;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(bytes), 64 << 10,
                                  kInlineBytesMax);
}

double MeasureHandOffSeconds() {
  PingPong ping_pong;
  return ping_pong.Measure() / 2;
}

}  // namespace troupe::actors
