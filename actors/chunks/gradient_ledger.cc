#include "actors/chunks/gradient_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace troupe::actors {

GradientLedger::GradientLedger(const Setup& setup, Listener* listener)
    : setup_(setup),
      listener_(listener),
      buckets_(setup.parameters->num_buckets()) {}

void GradientLedger::BeginStep() {
  counting_ = last_ = updates_ = false;
  status_ = absl::OkStatus();
  for (int k = 0; k < static_cast<int>(buckets_.size()); ++k) {
    Bucket& bucket = buckets_[k];
    bucket.passes.assign(setup_.parameters->reduced_micro_batches(k), {});
    bucket.readers_left = 0;
    bucket.released = false;
  }
}

void GradientLedger::BeginPass(const std::vector<nn::Parameter*>& read,
                               Mode mode, bool last, int micro_batch) {
  last_ = last;
  micro_batch_ = micro_batch;
  counting_ = last || std::any_of(buckets_.begin(), buckets_.end(),
                                  [](const Bucket& bucket) {
                                    return bucket.passes.size() > 1;
                                  });
  if (!counting_) return;
  // The input half of a split backward adds to no parameter's gradient, and
  // weight halves of earlier backwards may follow: no bucket is complete.
  weights_begun_ = mode != Mode::kInputs;
  if (mode != Mode::kWeights) CountGradients(read);
  // A bucket that this backward does not touch is complete already.
  TellWhatIsDone();
}

void GradientLedger::CountGradients(const std::vector<nn::Parameter*>& read) {
  for (const nn::Parameter* parameter : read) {
    Bucket& bucket = buckets_[setup_.parameters->BucketOf(*parameter)];
    if (Pass* const pass = PassOf(bucket)) ++pass->grads_left;
    if (last_) ++bucket.readers_left;
  }
}

void GradientLedger::TellWhatIsDone() {
  for (int k = 0; k < static_cast<int>(buckets_.size()); ++k) TellIfDone(k);
}

void GradientLedger::TellIfDone(int k) {
  Bucket& bucket = buckets_[k];
  Pass* const pass = PassOf(bucket);
  if (pass != nullptr && pass->grads_left == 0 && weights_begun_ &&
      !pass->ready) {
    if (status_.ok()) status_ = CompleteBucket(k);
    if (!status_.ok()) return;
    pass->ready = true;
    setup_.trace->BucketReady(setup_.chunk, k);
    listener_->BucketReady(setup_.chunk, k,
                           bucket.passes.size() > 1 ? micro_batch_ : 0);
  }
  if (last_ && bucket.readers_left == 0 && !bucket.released) {
    bucket.released = true;
    listener_->BucketReleased(setup_.chunk, k);
  }
}

absl::Status GradientLedger::CompleteBucket(int k) {
  ChunkParameters& parameters = *setup_.parameters;
  // No forward has waited for the update if this step reads nothing of the
  // bucket.
  if (setup_.gated) {
    TROUPE_RETURN_IF_ERROR(listener_->AwaitUpdate(setup_.chunk, k));
  }
  TROUPE_RETURN_IF_ERROR(parameters.AddUses(k));
  if (setup_.uses != nullptr) setup_.uses->CompleteBucket(k);
  TROUPE_RETURN_IF_ERROR(parameters.ZeroUnwritten(k));
  if (parameters.HasParts(k)) TROUPE_RETURN_IF_ERROR(AddParts(k));
  return parameters.BeginReduction(k);
}

absl::Status GradientLedger::AddParts(int k) {
  for (const nn::AxisCollectives& along : setup_.axes) {
    if (along.axis != "tp") continue;
    return along.collectives->AllReduce(nn::ReduceOp::kSum,
                                        setup_.parameters->UnpaddedGrads(k));
  }
  return absl::InternalError(
      "gradients come in parts, and the rank has no group along tp; make the "
      "plan anew");
}

GradientLedger::Pass* GradientLedger::PassOf(Bucket& bucket) const {
  if (bucket.passes.size() > 1) return &bucket.passes[micro_batch_];
  return last_ ? &bucket.passes[0] : nullptr;
}

absl::Status GradientLedger::GradientNeeded(nn::Parameter& parameter) {
  ChunkParameters& parameters = *setup_.parameters;
  if (parameters.slices_grads() && !parameter.grad.defined()) {
    TROUPE_RETURN_IF_ERROR(listener_->AwaitMemory());
  }
  return parameters.HoldGrads(parameters.BucketOf(parameter));
}

void GradientLedger::GradientComplete(nn::Parameter& parameter) {
  if (setup_.uses != nullptr) setup_.uses->CompleteGradient(parameter);
  if (!counting_) return;
  const int bucket = setup_.parameters->BucketOf(parameter);
  Pass* const pass = PassOf(buckets_[bucket]);
  if (pass == nullptr) return;
  setup_.trace->GradientComplete(parameter.name, setup_.chunk, bucket);
  --pass->grads_left;
  TellIfDone(bucket);
}

void GradientLedger::LastReaderDone(nn::Parameter& parameter) {
  if (!last_) return;
  const int bucket = setup_.parameters->BucketOf(parameter);
  --buckets_[bucket].readers_left;
  TellIfDone(bucket);
}

absl::Status GradientLedger::AwaitValue(const nn::Parameter& parameter) {
  if (setup_.gated) {
    TROUPE_RETURN_IF_ERROR(listener_->AwaitUpdate(
        setup_.chunk, setup_.parameters->BucketOf(parameter)));
  }
  return AwaitGather(parameter);
}

absl::Status GradientLedger::AwaitGather(const nn::Parameter& parameter) {
  return setup_.parameters->gathers_values()
             ? listener_->AwaitGather(setup_.chunk, parameter)
             : absl::OkStatus();
}

}  // namespace troupe::actors
