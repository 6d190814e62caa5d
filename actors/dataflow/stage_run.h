// The state of one stage of a dataflow while it runs: decides which of its
// handlers may run next, and passes them their tensors. It depends neither on
// actors nor on processes.
//
//   StageRun run(flow, /*stage=*/1);
//   TROUPE_RETURN_IF_ERROR(run.Begin(&host));
//   run.OnTensor(channel, /*number=*/0, tensor);      // from other stages
//   while (true) {
//     TROUPE_ASSIGN_OR_RETURN(const bool ran, run.RunNext());
//     if (!ran) break;                  // until a message arrives, or done()
//   }
//
// Errors: those of the stage's functions, with stage, channel and number in
// front; kInternal if a message breaks the protocol (a tensor out of order, or
// beyond the capacity).
// Threads: one at a time; Describe() and handled() from any.

#ifndef ACTORS_DATAFLOW_STAGE_RUN_H_
#define ACTORS_DATAFLOW_STAGE_RUN_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "actors/dataflow/dataflow.h"

namespace troupe::actors {

// The use of a channel, counted by its writer.
struct ChannelUse {
  std::int64_t tensors = 0;
  // Maximum number of tensors sent whose handler had not returned.
  int in_flight_max = 0;
};

class StageRun {
 public:
  // Interface to the other ends of the stage's channels.
  class Host {
   public:
    virtual ~Host() = default;
    // Sends tensor number `number` of `channel` to its reader. If it fails, the
    // run fails.
    virtual absl::Status Send(int channel, std::int64_t number,
                              nn::Tensor tensor) = 0;
    // Returns a credit to the writer: its reader has handled a tensor.
    virtual void ReturnCredit(int channel) = 0;
    // Tells the reader that the channel has ended, after `count` tensors.
    virtual void End(int channel, std::int64_t count) = 0;
  };

  StageRun(std::shared_ptr<const Dataflow> flow, int stage);

  // Makes the stage's state. `host` must outlive all later calls.
  absl::Status Begin(Host* host);

  absl::Status OnTensor(int channel, std::int64_t number, nn::Tensor tensor);
  void OnCredit(int channel);
  absl::Status OnEnd(int channel, std::int64_t count);

  // Runs one handler, or ends one. Returns false if none may run, or all have
  // ended; in the latter case it has called AtEnd().
  absl::StatusOr<bool> RunNext();
  bool done() const { return done_; }
  int stage() const { return stage_; }

  // Returns the use of each channel; zero for those it does not write.
  std::vector<ChannelUse> uses() const;

  // Returns "first runs on images, number 7", or "first waits for a tensor in
  // gradients and for room in activations".
  std::string Describe() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of handler calls that have returned.
  std::int64_t handled() const {
    return handled_.load(std::memory_order_relaxed);
  }

 private:
  // The reader's end of a channel.
  struct Input {
    std::deque<nn::Tensor> tensors;
    std::int64_t received = 0;
    std::optional<std::int64_t> count;  // set once the channel has ended
    bool exhausted() const { return count && tensors.empty(); }
  };
  // The writer's end of a channel.
  struct Output {
    int credits = 0;
    ChannelUse use;
  };
  struct Handler {
    std::int64_t runs = 0;
    bool ended = false;
  };
  // The stage's current activity, for Describe().
  struct Doing {
    enum class Kind { kBegins, kRuns, kWaits, kEnds, kDone };
    Kind kind = Kind::kBegins;
    int handler = -1;
    std::int64_t number = 0;
    std::vector<int> inputs, outputs;  // channels that are empty, or full
    bool condition = false;
  };

  const StageSpec& spec() const { return flow_->stages()[stage_]; }
  const std::string& NameOf(int channel) const {
    return flow_->channels()[channel].name;
  }
  // Whether a handler may run. If not, adds the reasons to `lacks`.
  bool MayRun(int handler, Doing& lacks);
  absl::StatusOr<bool> MayEnd(int handler) const;
  absl::Status Run(int handler);
  absl::Status Give(int handler, const Tensors& outputs);
  void EndHandler(int handler);
  absl::Status Finish();
  void Set(Doing doing) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts "stage first, images, number 7: " in front of an error.
  absl::Status InHandler(int handler, const absl::Status& status) const;
  absl::Status InStage(const absl::Status& status) const;

  const std::shared_ptr<const Dataflow> flow_;
  const int stage_;
  Host* host_ = nullptr;
  std::shared_ptr<void> state_;
  std::vector<Handler> handlers_;
  std::vector<Input> inputs_;    // indexed by channel
  std::vector<Output> outputs_;  // indexed by channel
  bool done_ = false;
  std::atomic<std::int64_t> handled_{0};

  mutable absl::Mutex mutex_;
  Doing doing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_STAGE_RUN_H_
