#include "actors/engine/bucket_events.h"

#include <utility>

namespace troupe::actors {

void BucketEvents::NoteReady(int chunk, int bucket) {
  Bucket& events = chunks_[chunk][bucket];
  events.ready = nn::Record(kernels_, nn::Queue::kCompute);
  events.last_use = events.ready;
}

void BucketEvents::NoteReleased(int chunk, int bucket) {
  if (!apart()) return;
  chunks_[chunk][bucket].last_use = nn::Record(kernels_, nn::Queue::kCompute);
}

void BucketEvents::NoteReduced(int chunk, int bucket, const base::Event& done) {
  if (kernels_.queues() != nullptr) chunks_[chunk][bucket].reduced = done;
}

void BucketEvents::AwaitAllGradients() {
  for (const std::vector<Bucket>& chunk : chunks_) {
    for (const Bucket& bucket : chunk) {
      nn::Wait(kernels_, update_queue_, bucket.reduced);
      // A bucket without peers has no reduction to wait for.
      if (apart()) nn::Wait(kernels_, update_queue_, bucket.ready);
    }
  }
}

void BucketEvents::BeginUpdate(int chunk, int bucket) {
  const Bucket& events = chunks_[chunk][bucket];
  nn::Wait(kernels_, update_queue_, events.reduced);
  if (apart()) nn::Wait(kernels_, update_queue_, events.last_use);
}

void BucketEvents::EndUpdate(int chunk, int bucket) {
  if (!apart()) return;
  chunks_[chunk][bucket].updated = nn::Record(kernels_, update_queue_);
}

base::Event BucketEvents::Updated(int chunk, int bucket) const {
  return apart() ? chunks_[chunk][bucket].updated
                 : nn::Record(kernels_, update_queue_);
}

void BucketEvents::NoteGathered(int chunk, int bucket,
                                const base::Event& done) {
  if (kernels_.queues() != nullptr) chunks_[chunk][bucket].updated = done;
}

void BucketEvents::AwaitUpdate(int chunk, int bucket) {
  // Once is enough: what comes later is in order.
  nn::Wait(kernels_, nn::Queue::kCompute,
           std::exchange(chunks_[chunk][bucket].updated, base::Event()));
}

void BucketEvents::AwaitAllUpdates() {
  for (int chunk = 0; chunk < static_cast<int>(chunks_.size()); ++chunk) {
    const int buckets = static_cast<int>(chunks_[chunk].size());
    for (int bucket = 0; bucket < buckets; ++bucket) AwaitUpdate(chunk, bucket);
  }
}

}  // namespace troupe::actors
