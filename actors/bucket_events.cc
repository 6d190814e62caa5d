#include "actors/bucket_events.h"

#include "nn/kernels/device_queues.h"

namespace troupe::actors {

void BucketEvents::NoteReady(int chunk, int bucket) {
  chunks_[chunk][bucket].ready = nn::Record(kernels_, nn::Queue::kCompute);
}

void BucketEvents::NoteReduced(int chunk, int bucket, const base::Event& done) {
  if (kernels_.queues() != nullptr) chunks_[chunk][bucket].reduced = done;
}

void BucketEvents::NoteLossReduced(const base::Event& done) {
  if (kernels_.queues() != nullptr) loss_reduced_ = done;
}

void BucketEvents::Await(const base::Event& event) {
  nn::Wait(kernels_, nn::Queue::kCompute, event);
}

void BucketEvents::AwaitReduced(int chunk, int bucket) {
  Await(chunks_[chunk][bucket].reduced);
}

void BucketEvents::AwaitAllReduced() {
  for (const std::vector<Bucket>& chunk : chunks_) {
    for (const Bucket& bucket : chunk) Await(bucket.reduced);
  }
}

void BucketEvents::AwaitLossReduced() { Await(loss_reduced_); }

}  // namespace troupe::actors
