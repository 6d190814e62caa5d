// The events of a step on a device with queues: when a bucket's gradients are
// complete, and when the reductions of buckets and of the loss are done. What
// reads their results waits for them here.
//
//   BucketEvents events(kernels);
//   events.AddChunk(/*buckets=*/3);
//   events.NoteReady(/*chunk=*/0, /*bucket=*/2);   // its last gradient
//   TROUPE_ASSIGN_OR_RETURN(auto done, comm->Start(sum, events.Ready(0, 2)));
//   events.NoteReduced(0, 2, done);
//   events.AwaitReduced(0, 2);         // what the device gets from here on
//
// On a device that works at once all of them are done, and this costs a branch.
//
// Threads: the compute strand's.

#ifndef ACTORS_BUCKET_EVENTS_H_
#define ACTORS_BUCKET_EVENTS_H_

#include <vector>

#include "base/event.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

class BucketEvents {
 public:
  // `kernels` outlives it.
  explicit BucketEvents(nn::Kernels& kernels) : kernels_(kernels) {}

  // The rank's next chunk has so many buckets.
  void AddChunk(int buckets) { chunks_.emplace_back(buckets); }

  // The device has been given all that adds to the bucket's gradients.
  void NoteReady(int chunk, int bucket);
  const base::Event& Ready(int chunk, int bucket) const {
    return chunks_[chunk][bucket].ready;
  }

  // `done`: when the reduction's result is there.
  void NoteReduced(int chunk, int bucket, const base::Event& done);
  void NoteLossReduced(const base::Event& done);

  // Lets the device's further work wait for a reduction that was enqueued. Not
  // before something needs it: what waits holds up all that comes after.
  void AwaitReduced(int chunk, int bucket);
  void AwaitAllReduced();
  void AwaitLossReduced();

 private:
  struct Bucket {
    base::Event ready, reduced;
  };

  void Await(const base::Event& event);

  nn::Kernels& kernels_;
  std::vector<std::vector<Bucket>> chunks_;
  base::Event loss_reduced_;
};

}  // namespace troupe::actors

#endif  // ACTORS_BUCKET_EVENTS_H_
