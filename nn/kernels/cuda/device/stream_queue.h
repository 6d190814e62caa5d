// The unfinished work of one queue of a CUDA device: work that the host holds
// back, work that runs on the stream, and actions for when it has run.
//
//   StreamQueue queue("compute", stream, pool, &device_status);
//   status = queue.Give("ReluForward", [=] { return LaunchRelu(stream); });
//   status = queue.Wait(other_event, [] { HoldOn(); });
//   status = queue.Record(event);
//   TROUPE_RETURN_IF_ERROR(queue.Advance().status());  // what may go now
//   while (*queue.OldestIsDone()) queue.TakeOldest()->Finish(device_status);
//
// The stream itself waits for a CUDA event (cudaStreamWaitEvent). Any other
// wait *holds* the queue: later work is kept as closures until the event is
// ready or has been recorded as a CUDA event (base::Event::OnKnown()). The
// thread that gives work never blocks.
//
// Threads: one at a time, that of the device. Errors: those of CUDA calls and
// of work; the queue takes no more work after one. The error of an event that
// the queue waited for becomes the device's status, and the queue continues.

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

  // One recording, and the actions to take when all work before it has run.
  struct Ended {
    std::shared_ptr<const EventMark> mark;
    base::Event event;
    std::vector<Tensor> kept;                    // host memory that copies use
    std::vector<std::function<void()>> actions;  // run on the host
    std::uint64_t given = 0;                     // StreamQueue::given() at it

    void Finish(const absl::Status& status);
  };

  // `name` is a literal such as "compute". `status` is the device's, and must
  // outlive the queue.
  StreamQueue(const char* name, cudaStream_t stream,
              std::shared_ptr<EventPool> pool, absl::Status* status)
      : name_(name),
        stream_(stream),
        pool_(std::move(pool)),
        status_(*status) {}

  cudaStream_t stream() const { return stream_; }
  // Whether the queue is held; work must be given as a closure then.
  bool held() const { return !held_.empty(); }
  // Number of pieces of work enqueued to the stream so far.
  std::uint64_t given() const { return given_; }
  // Notes work that is enqueued to the stream at once. `name` is a literal.
  void Note(const char* name) { names_[given_++ % names_.size()] = name; }

  // Runs `work`, which enqueues to the stream, at once or, if the queue is
  // held, when all earlier work has been enqueued.
  absl::Status Give(const char* name, Work work);
  // The same for work that may take several calls: `work` returns false until
  // it has enqueued all, and holds the queue until then.
  absl::Status GiveUntilTrue(const char* name, std::function<bool()> work);
  // Whether work of GiveUntilTrue() has begun and must be called again.
  bool asks_again() const { return held() && held_.front().begun; }
  // Records `event`, which is done when all work given so far is done.
  absl::Status Record(const base::Event& event);
  // Makes later work wait for `event`. Calls `hold` if the queue holds the
  // wait.
  absl::Status Wait(const base::Event& event,
                    const std::function<void()>& hold);

  // For work that runs: Keep() keeps host memory that it uses until the work is
  // done, and After() runs `action` on the host when it is done.
  void Keep(Tensor tensor) { kept_.push_back(std::move(tensor)); }
  void After(std::function<void()> action) {
    actions_.push_back(std::move(action));
  }

  // Runs held work that may run now; returns whether there was any.
  absl::StatusOr<bool> Advance();
  // Returns whether the oldest recording is done; false if there is none.
  absl::StatusOr<bool> OldestIsDone();
  // Takes the oldest recording, done or not.
  std::optional<Ended> TakeOldest();
  // The mark of the oldest recording; null if none is unfinished.
  std::shared_ptr<const EventMark> Oldest() const {
    return running_.empty() ? nullptr : running_.front().mark;
  }
  // Drops all held work and returns the events of held recordings. Called after
  // an error or at the end.
  std::vector<base::Event> DropHeld();

  // Returns "compute: Conv2dForward, ReluForward (the last 2 of 14)"; empty if
  // all work is done.
  std::string InFlight() const;

 private:
  // One of: work; work that may take several calls; a wait for `event`; a
  // recording of `event`.
  struct Item {
    const char* name = nullptr;
    Work work;
    bool is_wait = false;
    base::Event event;
    std::function<bool()> until_true;
    bool begun = false;  // until_true has returned false

    bool is_recording() const { return !work && !until_true && !is_wait; }
  };

  absl::Status Run(const char* name, const Work& work);
  // Calls until_true; returns whether all is enqueued.
  bool Call(Item& item);
  absl::Status RecordNow(const base::Event& event);
  // Makes the stream wait. Returns false if the queue must hold the wait.
  absl::StatusOr<bool> WaitNow(const base::Event& event);
  // Makes a recording if memory or actions of the host have none yet, so that
  // they are released or run when the work is done.
  absl::Status RecordForKept();

  const char* const name_;
  const cudaStream_t stream_;
  const std::shared_ptr<EventPool> pool_;
  absl::Status& status_;
  std::deque<Item> held_;
  std::deque<Ended> running_;
  std::vector<Tensor> kept_;  // host memory used since the last recording
  std::vector<std::function<void()>> actions_;
  std::array<const char*, 8> names_ = {};  // ring: names of the last work
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_STREAM_QUEUE_H_
