// What one queue of a CUDA device has been given and is not done: what the host
// holds back, what runs on the stream, and what is to happen when it has run.
//
//   StreamQueue queue("compute", stream, pool, &device_status);
//   status = queue.Give("ReluForward", [=] { return LaunchRelu(stream); });
//   status = queue.Wait(other_event, [] { HoldOn(); });
//   status = queue.Record(event);
//   TROUPE_RETURN_IF_ERROR(queue.Advance().status());  // what may go now
//   while (*queue.OldestIsDone()) queue.TakeOldest()->Finish(device_status);
//
// A wait for an event of CUDA's is the stream's own (cudaStreamWaitEvent). Any
// other wait *holds* the queue: what comes after it lies here, as closures,
// until the event is ready or has become one of CUDA's (base::Event::
// OnKnown()). So the thread that gives work never waits.
//
// Threads: one at a time, that of the device. Errors: those of CUDA calls and
// of work; the queue takes no more after one. What an event that was waited for
// has failed with goes to the device's status, and the queue goes on.

#ifndef NN_KERNELS_CUDA_DEVICE_STREAM_QUEUE_H_
#define NN_KERNELS_CUDA_DEVICE_STREAM_QUEUE_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/event.h"
#include "nn/kernels/cuda/device/event_pool.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cuda {

class StreamQueue {
 public:
  using Work = std::function<absl::Status()>;

  // What to do when all before a recording has run.
  struct Ended {
    std::shared_ptr<const EventMark> mark;
    base::Event event;
    std::vector<Tensor> kept;                    // that copies of it used
    std::vector<std::function<void()>> actions;  // of the host
    std::uint64_t given = 0;                     // pieces of work before it

    void Finish(const absl::Status& status);
  };

  // `name` is a literal: "compute". `status` is the device's, and outlives it.
  StreamQueue(const char* name, cudaStream_t stream,
              std::shared_ptr<EventPool> pool, absl::Status* status)
      : name_(name),
        stream_(stream),
        pool_(std::move(pool)),
        status_(*status) {}

  cudaStream_t stream() const { return stream_; }
  // Whether work is held back: it must come as a closure then.
  bool held() const { return !held_.empty(); }
  // Pieces of work that went to the stream so far.
  std::uint64_t given() const { return given_; }
  // Notes work that goes to the stream at once. `name` is a literal.
  void Note(const char* name) { names_[given_++ % names_.size()] = name; }

  // Runs `work`, which enqueues to the stream, now or when its turn comes.
  absl::Status Give(const char* name, Work work);
  // The same for work that may take several calls: it answers false until it
  // has enqueued all, and holds the queue until then.
  absl::Status GiveUntilTrue(const char* name, std::function<bool()> work);
  // Whether such work is to be called again.
  bool asks_again() const { return held() && held_.front().begun; }
  // `event` is done when all that the queue was given so far is.
  absl::Status Record(const base::Event& event);
  // `hold` is called where the queue is held from now on.
  absl::Status Wait(const base::Event& event,
                    const std::function<void()>& hold);

  // For work that runs: what it uses of the host's memory is kept, and
  // `actions` run on the host, when it is done.
  void Keep(Tensor tensor) { kept_.push_back(std::move(tensor)); }
  void After(std::function<void()> action) {
    actions_.push_back(std::move(action));
  }

  // Runs what was held and may go now; tells whether there was any.
  absl::StatusOr<bool> Advance();
  // Whether the oldest recording is done; false where there is none.
  absl::StatusOr<bool> OldestIsDone();
  // Takes the oldest recording, done or not.
  std::optional<Ended> TakeOldest();
  // Its mark; null where nothing runs.
  std::shared_ptr<const EventMark> Oldest() const {
    return running_.empty() ? nullptr : running_.front().mark;
  }
  // The events of recordings that are held, after an error or at the end.
  std::vector<base::Event> DropHeld();

  // "compute: Conv2dForward, ReluForward (the last 2 of 14)"; empty where all
  // that it was given is done.
  std::string InFlight() const;

 private:
  // Work; work that may take several calls; a wait for `event`; or a recording
  // of it.
  struct Item {
    const char* name = nullptr;
    Work work;
    bool is_wait = false;
    base::Event event;
    std::function<bool()> until_true;
    bool begun = false;  // it has answered false

    bool is_recording() const { return !work && !until_true && !is_wait; }
  };

  absl::Status Run(const char* name, const Work& work);
  // Whether it is done.
  bool Call(Item& item);
  absl::Status RecordNow(const base::Event& event);
  // False: the host must wait for it.
  absl::StatusOr<bool> WaitNow(const base::Event& event);
  // Sees to it that what is kept will be let go.
  absl::Status RecordForKept();

  const char* const name_;
  const cudaStream_t stream_;
  const std::shared_ptr<EventPool> pool_;
  absl::Status& status_;
  std::deque<Item> held_;
  std::deque<Ended> running_;
  std::vector<Tensor> kept_;  // since the last recording
  std::vector<std::function<void()>> actions_;
  std::array<const char*, 8> names_ = {};  // of the last work, a ring
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_STREAM_QUEUE_H_
