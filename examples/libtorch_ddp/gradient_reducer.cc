#include "gradient_reducer.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/program/call_note.h"
#include "base/status_error.h"
#include "comm/reduction/reduce_op.h"
#include "pipeline/buckets.h"

namespace {

using troupe::actors::TraceEvent;
using troupe::actors::TraceKind;
using troupe::actors::TracePhase;
using troupe::actors::TraceTrack;

class Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Hook(std::function<void()> call) : call_(std::move(call)) {}
  void operator()(const at::Tensor& /*parameter*/) override { call_(); }

 private:
  const std::function<void()> call_;
};

[[noreturn]] void Refuse(const std::string& text) {
  throw troupe::base::StatusError(absl::InvalidArgumentError(text));
}

troupe::DType DTypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return troupe::DType::kF32;
    case at::kDouble:
      return troupe::DType::kF64;
    case at::kBFloat16:
      return troupe::DType::kBF16;
    case at::kHalf:
      return troupe::DType::kF16;
    default:
      Refuse(absl::StrCat("a parameter of ",
                          c10::toString(tensor.scalar_type()),
                          " must be of float, double, bfloat16 or half, which "
                          "can be averaged"));
  }
}

std::vector<int> AllRanks(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::int64_t Bytes(double mib) {
  return static_cast<std::int64_t>(mib * (1 << 20));
}

}  // namespace

GradientReducer::GradientReducer(troupe::Rank& rank,
                                 const Parameters& parameters,
                                 const ReducerOptions& options)
    : rank_(rank),
      trace_(options.trace),
      group_(troupe::base::OrThrow(
          rank.strand().MakeGroup(AllRanks(rank.size())))) {
  std::vector<std::int64_t> bytes;
  for (const auto& item : parameters) {
    const at::Tensor& parameter = item.value();
    if (!parameter.requires_grad()) continue;
    slots_.push_back({item.key(), parameter});
    if (!parameter.is_contiguous() || !parameter.is_cpu() ||
        parameter.scalar_type() != slots_.front().parameter.scalar_type()) {
      Refuse(
          absl::StrCat("parameter ", item.key(),
                       " must be contiguous, on the CPU and of the dtype of ",
                       slots_.front().name));
    }
    bytes.push_back(static_cast<std::int64_t>(parameter.nbytes()));
  }
  for (const std::vector<int>& slots : troupe::pipeline::AssignBuckets(
           bytes,
           {Bytes(options.first_bucket_mb), Bytes(options.bucket_cap_mb)})) {
    AddBucket(slots);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        slots_[i].parameter,
        std::make_unique<Hook>([this, i] { GradientReady(i); }));
  }
}

GradientReducer::~GradientReducer() {
  for (const Slot& slot : slots_) {
    torch::autograd::impl::set_post_acc_grad_hooks(slot.parameter, nullptr);
    // The bucket's memory ends here.
    at::Tensor& grad = slot.parameter.mutable_grad();
    if (grad.defined() && grad.is_alias_of(slot.place)) grad = at::Tensor();
  }
  if (in_backward_) {
    group_->Abort(absl::CancelledError(
        "the GradientReducer of a peer was destroyed during a backward"));
  }
}

void GradientReducer::AddBucket(const std::vector<int>& slots) {
  Bucket bucket;
  std::int64_t elements = 0;
  for (const int i : slots) elements += slots_[i].parameter.numel();
  bucket.memory =
      rank_.Zeros({elements}, DTypeOf(slots_[slots.front()].parameter))
          .tensor();
  auto* place = static_cast<char*>(bucket.memory.raw());
  for (const int i : slots) {
    Slot& slot = slots_[i];
    // No view of the bucket, which zero_grad() could not detach.
    slot.place =
        at::from_blob(place, slot.parameter.sizes(), slot.parameter.options());
    slot.bucket = buckets_.size();
    place += slot.parameter.nbytes();
    bucket.slots.push_back(i);
  }
  bucket.missing = bucket.slots.size();
  buckets_.push_back(std::move(bucket));
}

void GradientReducer::GradientReady(std::size_t index) {
  if (!in_backward_) {
    in_backward_ = true;
    torch::autograd::Engine::get_default_engine().queue_callback(
        [this] { Finish(); });
  }
  Slot& slot = slots_[index];
  MoveGradient(slot);
  slot.ready = true;
  troupe::actors::Note(trace_, EventOf(TraceKind::kGradientComplete,
                                       TracePhase::kInstant, slot.name, -1));
  if (--buckets_[slot.bucket].missing == 0) Launch();
}

void GradientReducer::MoveGradient(Slot& slot) {
  const at::NoGradGuard no_grad;
  at::Tensor& grad = slot.parameter.mutable_grad();
  if (!grad.defined()) {
    slot.place.zero_();
  } else if (!grad.is_alias_of(slot.place)) {
    slot.place.copy_(grad);
  }
  grad = slot.place;
}

void GradientReducer::Launch() {
  while (launched_ < buckets_.size() && buckets_[launched_].missing == 0) {
    const int number = static_cast<int>(launched_++);
    Bucket& bucket = buckets_[number];
    const std::string name = absl::StrCat("bucket ", number);
    troupe::actors::Note(trace_,
                         EventOf(TraceKind::kBucketReady, TracePhase::kInstant,
                                 absl::StrCat(name, " is ready"), number));
    const std::string text = absl::StrCat("all_reduce of ", name);
    troupe::actors::Note(trace_, EventOf(TraceKind::kCollective,
                                         TracePhase::kBegin, text, number));
    const troupe::base::Event done = rank_.strand().HandOver(
        group_, troupe::comm::AllReduce(troupe::ReduceOp::kAvg, bucket.memory),
        /*after=*/troupe::base::Event());
    // A second event: the trace has the end before the backward returns.
    const troupe::base::Event reduced = troupe::base::Event::Make();
    done.OnReady([trace = trace_, reduced,
                  end = EventOf(TraceKind::kCollective, TracePhase::kEnd, text,
                                number)](const absl::Status& status) {
      troupe::actors::Note(trace, end);
      reduced.Complete(status);
    });
    bucket.reduced = reduced;
  }
}

void GradientReducer::Finish() {
  Note(troupe::pipeline::ActionKind::kBackward, TracePhase::kEnd);
  for (Slot& slot : slots_) {
    if (!slot.ready) {
      MoveGradient(slot);
      --buckets_[slot.bucket].missing;
    }
    slot.ready = false;
  }
  Launch();
  const troupe::actors::CallNote::Scope call(rank_.strand().call(), "backward",
                                             troupe::actors::CallPlace::Here());
  for (Bucket& bucket : buckets_) {
    troupe::base::OrThrow(
        rank_.strand().AwaitHandedOver(*group_, bucket.reduced));
    bucket.missing = bucket.slots.size();
  }
  launched_ = 0;
  in_backward_ = false;
  ++step_;
}

void GradientReducer::Note(troupe::pipeline::ActionKind action,
                           TracePhase phase) const {
  const bool forward = action == troupe::pipeline::ActionKind::kForward;
  TraceEvent event =
      EventOf(TraceKind::kAction, phase, forward ? "forward" : "backward", -1);
  event.action = action;
  troupe::actors::Note(trace_, event);
}

TraceEvent GradientReducer::EventOf(TraceKind kind, TracePhase phase,
                                    std::string name, int bucket) const {
  TraceEvent event;
  event.rank = rank_.number();
  event.track =
      kind == TraceKind::kCollective ? TraceTrack::kComm : TraceTrack::kCompute;
  event.kind = kind;
  event.phase = phase;
  event.step = step_;
  event.action = troupe::pipeline::ActionKind::kReduceBucket;
  event.bucket = bucket;
  event.name = std::move(name);
  return event;
}
