// The events of buckets on a device with queues: a bucket's gradients are
// complete, its last reader has ended, it is reduced, its parameters are
// updated. Work of one queue that depends on work of another waits for them.
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
// Updates thus run after reductions, on their queue, and the compute queue
// waits for none of them before the next step's first reader:
//
//     compute   F .. B of bucket 0  a  B of bucket 1  b    (b') next F (a')
//     comm                     (a) reduce 0, update 0  a'  (b) reduce 1 ..  b'
//
// a, b: the bucket is ready and released; a', b': it is updated; (a): the queue
// waits for a.
//
// On a device that works at once all events are complete, and a call costs a
// branch.
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
  // `update_queue` is the queue of updates: kCompute, or the queue of the
  // reductions. `kernels` outlives it.
  BucketEvents(nn::Kernels& kernels, nn::Queue update_queue)
      : kernels_(kernels), update_queue_(update_queue) {}

  // Adds the rank's next chunk, which has `buckets` buckets.
  void AddChunk(int buckets) { chunks_.emplace_back(buckets); }
  nn::Queue update_queue() const { return update_queue_; }

  // Records that all work which adds to the bucket's gradients is enqueued in
  // the compute queue.
  void NoteReady(int chunk, int bucket);
  const base::Event& Ready(int chunk, int bucket) const {
    return chunks_[chunk][bucket].ready;
  }
  // Replaces the ready event of a bucket after a collective that comes before
  // the next one, of the stages that share it or of a round of its reduction:
  // what the next one reads is complete with `done`, an event of update_queue.
  void NoteSummed(int chunk, int bucket, const base::Event& done) {
    chunks_[chunk][bucket].ready = done;
  }
  // Records that all work which reads the bucket's parameters in this step is
  // enqueued in the compute queue.
  void NoteReleased(int chunk, int bucket);
  // Stores `done`, the event that completes with the bucket's reduction.
  void NoteReduced(int chunk, int bucket, const base::Event& done);

  // Makes later work of update_queue wait for the summed gradients of all
  // buckets.
  void AwaitAllGradients();
  // Enclose the enqueueing of the bucket's update in update_queue.
  void BeginUpdate(int chunk, int bucket);
  void EndUpdate(int chunk, int bucket);
  // Returns the event that completes with the update, for a collective that
  // brings slices of updated values together. Call it after EndUpdate().
  base::Event Updated(int chunk, int bucket) const;
  // Stores `done`, the event that completes with that collective: only then is
  // the bucket updated.
  void NoteGathered(int chunk, int bucket, const base::Event& done);

  // Makes later work of the compute queue wait until the bucket is updated: its
  // parameters may then be read, its gradients written. Call it as late as
  // possible, since the wait delays all later work of the queue.
  void AwaitUpdate(int chunk, int bucket);
  void AwaitAllUpdates();

 private:
  struct Bucket {
    base::Event ready, reduced, updated;
    base::Event last_use;  // the later of ready and released
  };

  bool apart() const { return update_queue_ != nn::Queue::kCompute; }

  nn::Kernels& kernels_;
  const nn::Queue update_queue_;
  std::vector<std::vector<Bucket>> chunks_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_BUCKET_EVENTS_H_
