#include "troupe/internal/hook_runner.h"

#include <exception>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/exception_text.h"
#include "base/status_error.h"
#include "troupe/internal/model_core.h"

namespace troupe {
namespace {

absl::Status ErrorOf(const GradBucket& bucket, absl::StatusCode code,
                     absl::string_view message) {
  return absl::Status(code, absl::StrCat("communication hook, ",
                                         bucket.ToString(), ": ", message));
}

}  // namespace

GradBucket HookRunner::Bucket(int bucket) const {
  const actors::LoopEngine& engine = core_.engine();
  const auto& buckets = engine.plan().stages[0].buckets;
  const std::vector<nn::Parameter*> all = core_.module().Parameters();
  std::vector<nn::Parameter*> own;
  for (const int i : buckets[bucket]) own.push_back(all[i]);
  return GradBucket(bucket, bucket + 1 == static_cast<int>(buckets.size()),
                    engine.parameters().BucketGrads(bucket),
                    engine.exact_mean() ? ReduceOp::kSum : ReduceOp::kAvg,
                    std::move(own));
}

absl::StatusOr<bool> HookRunner::Reduce(int action, int bucket) {
  GradBucket grads = Bucket(bucket);
  BucketFuture end;
  TROUPE_RETURN_IF_ERROR(Call(grads, [&] { end = hook_(group_, grads); }));
  Work work = end.work();
  comm::Communicator* const comm = work.comm();
  const std::function<void()> then = end.then();
  if (comm == nullptr) {
    if (then) TROUPE_RETURN_IF_ERROR(Call(grads, then));
    return true;
  }
  core_.Follow(action, *comm, work.event(),
               [this, grads, work, then]() mutable {
                 return Call(grads, [&] {
                   work.Wait();  // has ended, and gets to its tensor
                   if (then) then();
                 });
               });
  return false;
}

// Does not catch what unwinds a rank that was ended: that is no std::exception.
absl::Status HookRunner::Call(const GradBucket& bucket,
                              const std::function<void()>& part) {
  running_ = true;
  const absl::Cleanup ended = [this] { running_ = false; };
  const auto no_grad = core_.rank().NoGrad();
  try {
    part();
  } catch (const base::StatusError& error) {
    return ErrorOf(bucket, error.status().code(), error.what());
  } catch (const std::exception&) {
    return ErrorOf(bucket, absl::StatusCode::kInternal,
                   base::ExceptionText(std::current_exception()));
  }
  return absl::OkStatus();
}

}  // namespace troupe
