// The events of buckets on a device with queues: when a bucket's gradients are
// complete, its last reader done, its sum there, its parameters updated. What
// one queue must not do before another has come so far waits for them here.
//
//   BucketEvents events(kernels, /*update_queue=*/nn::Queue::kComm);
//   events.AddChunk(/*buckets=*/3);
//   events.NoteReady(/*chunk=*/0, /*bucket=*/2);    // its last gradient
//   TROUPE_ASSIGN_OR_RETURN(auto done, comm->Start(sum, events.Ready(0, 2)));
//   events.NoteReduced(0, 2, done);
//   events.NoteReleased(0, 2);                      // its last reader
//   events.BeginUpdate(0, 2);
//   // ... the update, in update_queue ...
//   events.EndUpdate(0, 2);
//   events.AwaitUpdate(0, 2);                       // the next step reads it
//
// So updates run behind reductions, on their queue, and the compute queue waits
// for none before the next step's first reader:
//
//     compute   F .. B of bucket 0  a  B of bucket 1  b    (b') next F (a')
//     comm                     (a) reduce 0, update 0  a'  (b) reduce 1 ..  b'
//
// a, b: ready and released; a', b': updated; in brackets: who waits.
//
// On a device that works at once all events are done, and this costs a branch.
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_BUCKET_EVENTS_H_
#define ACTORS_ENGINE_BUCKET_EVENTS_H_

#include <vector>

#include "base/event.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

class BucketEvents {
 public:
  // Updates are given to `update_queue`: kCompute, or the queue of the
  // reductions. `kernels` outlives it.
  BucketEvents(nn::Kernels& kernels, nn::Queue update_queue)
      : kernels_(kernels), update_queue_(update_queue) {}

  // The rank's next chunk has so many buckets.
  void AddChunk(int buckets) { chunks_.emplace_back(buckets); }
  nn::Queue update_queue() const { return update_queue_; }

  // The compute queue has been given all that adds to the bucket's gradients.
  void NoteReady(int chunk, int bucket);
  const base::Event& Ready(int chunk, int bucket) const {
    return chunks_[chunk][bucket].ready;
  }
  // The sum over stages that share the bucket has come between: `done`, an
  // event of update_queue, is when its gradients are complete.
  void NoteSummed(int chunk, int bucket, const base::Event& done) {
    chunks_[chunk][bucket].ready = done;
  }
  // It has been given all that reads the bucket's parameters in this step.
  void NoteReleased(int chunk, int bucket);
  // `done`: when the reduction's result is there.
  void NoteReduced(int chunk, int bucket, const base::Event& done);

  // What update_queue is given from here on finds the gradients, summed, of all
  // buckets.
  void AwaitAllGradients();
  // What it is given between these two updates the bucket.
  void BeginUpdate(int chunk, int bucket);
  void EndUpdate(int chunk, int bucket);

  // What the compute queue is given from here on finds the bucket's parameters
  // updated, and its gradients read. Not before something needs that: what
  // waits holds up all that comes after.
  void AwaitUpdate(int chunk, int bucket);
  void AwaitAllUpdates();

 private:
  struct Bucket {
    base::Event ready, reduced, updated;
    base::Event last_use;  // the later one of ready and released
  };

  bool apart() const { return update_queue_ != nn::Queue::kCompute; }

  nn::Kernels& kernels_;
  const nn::Queue update_queue_;
  std::vector<std::vector<Bucket>> chunks_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_BUCKET_EVENTS_H_
