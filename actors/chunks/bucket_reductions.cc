#include "actors/chunks/bucket_reductions.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "actors/chunks/plain_reduction.h"
#include "actors/chunks/rounded_reduction.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Returns a bucket as a reduction is made for it.
GradientBucket DescribeBucket(const BucketReductions::Options& options,
                              const nn::ParameterArena& arena, int k) {
  const nn::ArenaRange range = arena.range(k);
  GradientBucket bucket;
  bucket.kernels = options.kernels;
  bucket.memory = options.memory;
  bucket.dtype = options.plan->grad_dtype.value_or(arena.values().dtype());
  bucket.elems = range.size();
  for (const nn::ArenaSlot& slot : arena.slots()) {
    if (slot.bucket != k) continue;
    bucket.parameters.push_back({slot.parameter->name, slot.parameter->shape,
                                 slot.begin - range.begin});
  }
  bucket.replica = options.replica;
  bucket.replicas = options.plan->mesh.dp();
  return bucket;
}

// Returns the reduction of the bucket that the plan names.
//   kInvalidArgument: the hook is not the plan's.
absl::StatusOr<std::unique_ptr<BucketReduction>> MakeReduction(
    const BucketReductions::Options& options, const GradientBucket& bucket) {
  const comm::ReduceOp op =
      options.averages ? comm::ReduceOp::kAvg : comm::ReduceOp::kSum;
  if (bucket.replicas == 1) return std::make_unique<PlainReduction>(op);
  const pipeline::Plan& plan = *options.plan;
  const std::string name = options.hook == nullptr ? "" : options.hook->name;
  if (plan.hook != name) {
    return base::FieldError<&JobSpec::hook>(absl::StrCat(
        base::FieldName<&JobSpec::hook>(), " = \"", name,
        "\", and the plan has \"", plan.hook, "\"; use the plan's"));
  }
  if (!name.empty()) return options.hook->make(bucket);
  const int owners = plan.owners();
  if (plan.reduction_dtype.value_or(bucket.dtype) != bucket.dtype) {
    const bool lasts =
        !plan.SlicesGradients() || options.kernels->queues() != nullptr;
    return RoundedReduction::Create(bucket, *plan.reduction_dtype, op, owners,
                                    lasts);
  }
  if (owners == 1) return std::make_unique<PlainReduction>(op);
  return std::make_unique<PlainReduction>(op, bucket.replica, owners);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BucketReductions>> BucketReductions::Create(
    const Options& options, const BucketArenas& arenas) {
  std::unique_ptr<BucketReductions> all(new BucketReductions(arenas));
  for (int bucket = 0; bucket < arenas.num_buckets(); ++bucket) {
    TROUPE_ASSIGN_OR_RETURN(
        std::unique_ptr<BucketReduction> reduction,
        MakeReduction(options, DescribeBucket(options, arenas.ArenaOf(bucket),
                                              arenas.PlaceOf(bucket).k)));
    all->reductions_.push_back(std::move(reduction));
  }
  return all;
}

// The gradients of a bucket that is reduced in place may have no memory yet.
absl::Status BucketReductions::Begin(int bucket, int round) {
  if (in_place(bucket)) return absl::OkStatus();
  return reductions_[bucket]->Begin(round, arenas_.Grads(bucket));
}

std::optional<comm::Collective> BucketReductions::Exchange(int bucket,
                                                           int round) const {
  return reductions_[bucket]->Exchange(round, arenas_.Grads(bucket));
}

absl::Status BucketReductions::End(int bucket) {
  if (in_place(bucket)) return absl::OkStatus();
  return reductions_[bucket]->End(arenas_.Grads(bucket));
}

void BucketReductions::AddRanges(std::vector<nn::Tensor>& ranges) const {
  for (int i = 0; i < arenas_.num_arenas(); ++i) {
    bool uses_grads = false;
    for (int bucket = 0; bucket < arenas_.num_buckets(); ++bucket) {
      if (arenas_.PlaceOf(bucket).arena != i) continue;
      uses_grads |= reductions_[bucket]->uses_grads();
      reductions_[bucket]->AddRanges(ranges);
    }
    const nn::Tensor& grads = arenas_.arena(i).grads();
    if (uses_grads && grads.defined()) ranges.push_back(grads);
  }
}

}  // namespace troupe::actors
