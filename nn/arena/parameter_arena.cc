#include "nn/arena/parameter_arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/arena/first_fill.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kAlignBytes = 64;

std::int64_t RoundUp(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// Returns the one dtype that all parameters of an arena have.
absl::StatusOr<DType> CommonDType(
    const std::vector<std::vector<Parameter*>>& buckets,
    const std::vector<Parameter*>& frozen) {
  std::vector<const Parameter*> all;
  for (const auto& bucket : buckets) {
    all.insert(all.end(), bucket.begin(), bucket.end());
  }
  all.insert(all.end(), frozen.begin(), frozen.end());
  for (const Parameter* parameter : all) {
    if (parameter->dtype == all[0]->dtype) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "parameters of one arena must have one dtype: ", all[0]->name, " is ",
        DTypeName(all[0]->dtype), ", ", parameter->name, " is ",
        DTypeName(parameter->dtype)));
  }
  return all.empty() ? DType::kF32 : all[0]->dtype;
}

}  // namespace

// Places of all parameters, computed before memory is allocated.
struct ParameterArena::Layout {
  void BeginBucket() { first_slot.push_back(static_cast<int>(slots.size())); }
  void Place(Parameter* parameter, int bucket) {
    end = RoundUp(end, kAlignBytes / static_cast<std::int64_t>(SizeOf(dtype)));
    slots.push_back({parameter, bucket, end});
    end += parameter->shape.numel();
  }

  DType dtype = DType::kF32;
  std::vector<ArenaSlot> slots;
  std::vector<int> first_slot;
  std::vector<ArenaRange> ranges;
  std::int64_t end = 0;
};

absl::StatusOr<std::unique_ptr<ParameterArena>> ParameterArena::Create(
    const std::vector<std::vector<Parameter*>>& buckets, const Options& options,
    Allocator& allocator) {
  if (options.pad_elems < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("ParameterArena: pad_elems must be at least 1, not ",
                     options.pad_elems));
  }
  TROUPE_RETURN_IF_ERROR(
      OwnedSlices::Check(options.owner, options.owners, options.pad_elems));
  Layout layout;
  TROUPE_ASSIGN_OR_RETURN(layout.dtype, CommonDType(buckets, options.frozen));
  for (const Parameter* parameter : options.frozen) {
    if (!parameter->requires_grad) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ParameterArena: ", parameter->name,
                     " is trained, so it must be in a bucket"));
  }
  std::vector<Parameter*> frozen = options.frozen;
  for (int bucket = 0; bucket < static_cast<int>(buckets.size()); ++bucket) {
    const std::int64_t begin = layout.end;
    layout.BeginBucket();
    for (Parameter* parameter : buckets[bucket]) {
      if (parameter->requires_grad) {
        layout.Place(parameter, bucket);
      } else {
        frozen.push_back(parameter);
      }
    }
    layout.end = begin + RoundUp(layout.end - begin, options.pad_elems);
    layout.ranges.push_back({begin, layout.end});
  }
  layout.BeginBucket();
  // The frozen parameters lie behind all buckets: reductions and updates work
  // on buckets only.
  for (Parameter* parameter : frozen) layout.Place(parameter, kNoBucket);
  const std::int64_t elems = layout.end;
  std::unique_ptr<ParameterArena> arena(
      new ParameterArena(std::move(layout), options, allocator));
  TROUPE_RETURN_IF_ERROR(arena->Init(elems));
  return arena;
}

ParameterArena::ParameterArena(Layout layout, const Options& options,
                               Allocator& allocator)
    : allocator_(allocator),
      options_(options),
      dtype_(layout.dtype),
      slots_(std::move(layout.slots)),
      first_slot_(std::move(layout.first_slot)),
      ranges_(std::move(layout.ranges)) {}

absl::Status ParameterArena::Init(std::int64_t elems) {
  owned_ = OwnedSlices(options_.owner, options_.owners, ranges_, elems);
  Allocator& memory =
      options_.value_allocator ? *options_.value_allocator : allocator_;
  absl::StatusOr<Tensor> values = Tensor::Create({elems}, dtype_, memory);
  if (!values.ok()) {
    return base::WithMessage(
        values.status(),
        absl::StrCat("parameters: ", values.status().message()));
  }
  values_ = *std::move(values);
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    Parameter& parameter = *slots_[i].parameter;
    parameter.value = View(values_, slots_[i]);
    parameter.grad = Tensor();
    parameter.index = options_.first_index + i;
    parameter.grad_written = false;
  }
  TROUPE_RETURN_IF_ERROR(ZeroPadding(slots_, {0, elems}, values_));
  BucketGradients::Options gradients =
      MemoryOf(options_.grad_dtype.value_or(dtype_),
               options_.grad_allocator != nullptr ? *options_.grad_allocator
                                                  : allocator_);
  gradients.way = options_.slice_grads  ? BucketGradients::Way::kSlices
                  : options_.keep_grads ? BucketGradients::Way::kAll
                                        : BucketGradients::Way::kShared;
  gradients.ahead = options_.grads_ahead;
  TROUPE_RETURN_IF_ERROR(gradients_.Init(gradients, ranges_, owned_));
  for (int bucket = 0; grads().defined() && bucket < num_buckets(); ++bucket) {
    BindGrads(bucket);
  }
  return absl::OkStatus();
}

BucketGradients::Options ParameterArena::MemoryOf(DType dtype,
                                                  Allocator& allocator) const {
  BucketGradients::Options options;
  options.dtype = dtype;
  options.threads = options_.threads;
  options.allocator = &allocator;
  options.kernels = options_.kernels;
  return options;
}

absl::Span<const ArenaSlot> ParameterArena::SlotsOf(int bucket) const {
  const int first = first_slot_[bucket];
  return absl::MakeConstSpan(slots_).subspan(first,
                                             first_slot_[bucket + 1] - first);
}

absl::Status ParameterArena::FillWithZeros(Tensor elems) const {
  if (elems.numel() == 0) return absl::OkStatus();
  if (!elems.host_accessible() && options_.kernels != nullptr) {
    return options_.kernels->Fill(0.0, elems);
  }
  std::memset(elems.raw(), 0, elems.bytes());
  return absl::OkStatus();
}

absl::Status ParameterArena::ZeroPadding(absl::Span<const ArenaSlot> slots,
                                         const ArenaRange& range,
                                         const Tensor& elems) const {
  std::int64_t end = range.begin;  // end of the slots so far
  const auto zero_until = [&](std::int64_t begin) {
    return FillWithZeros(elems.FlatView(end - range.begin, {begin - end}));
  };
  for (const ArenaSlot& slot : slots) {
    TROUPE_RETURN_IF_ERROR(zero_until(slot.begin));
    end = slot.begin + slot.parameter->shape.numel();
  }
  return zero_until(range.end);
}

absl::Status ParameterArena::HoldGrads(int bucket) {
  TROUPE_ASSIGN_OR_RETURN(const bool taken, gradients_.Hold(bucket));
  if (!taken) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(
      ZeroPadding(SlotsOf(bucket), ranges_[bucket], BucketGrads(bucket)));
  BindGrads(bucket);
  return absl::OkStatus();
}

void ParameterArena::BindGrads(int bucket) {
  const Tensor grads = BucketGrads(bucket);
  for (const ArenaSlot& slot : SlotsOf(bucket)) {
    slot.parameter->grad = grads.FlatView(slot.begin - ranges_[bucket].begin,
                                          slot.parameter->shape);
  }
}

void ParameterArena::ReleaseGrads(int bucket) {
  if (grads().defined() || !gradients_.IsHeld(bucket)) return;
  for (const ArenaSlot& slot : SlotsOf(bucket)) {
    slot.parameter->grad = Tensor();
  }
  gradients_.Release(bucket);
}

void ParameterArena::DetachGrads(int bucket) {
  for (const ArenaSlot& slot : SlotsOf(bucket)) {
    slot.parameter->grad = Tensor();
    Forget(*slot.parameter);
  }
  gradients_.Detach(bucket);
}

void ParameterArena::Forget(Parameter& parameter) {
  parameter.grad_written = false;
  parameter.first_use.written = false;
  parameter.first_use.grad = Tensor();
}

absl::Status ParameterArena::Initialize(std::uint64_t seed) {
  std::vector<const Parameter*> parameters;
  if (values_.host_accessible() || options_.kernels == nullptr) {
    for (const ArenaSlot& slot : slots_) parameters.push_back(slot.parameter);
    FillInitialValues(options_.threads, seed, parameters);
    return absl::OkStatus();
  }
  // The host draws the values in its own memory, then copies them.
  CachingAllocator host;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor values, Tensor::Create(values_.shape(), values_.dtype(), host));
  FillZeros(options_.threads, values);
  std::vector<Parameter> drawn;
  for (const ArenaSlot& slot : slots_) {
    drawn.push_back(*slot.parameter);
    drawn.back().value = View(values, slot);
  }
  for (const Parameter& parameter : drawn) parameters.push_back(&parameter);
  FillInitialValues(options_.threads, seed, parameters);
  CopyBytes(*options_.kernels, Queue::kCompute, values, values_);
  return absl::OkStatus();
}

void ParameterArena::InitializeBucket(std::uint64_t seed, int bucket) {
  TROUPE_CHECK(values_.host_accessible(), "the host fills single buckets");
  std::vector<const Parameter*> parameters;
  for (const ArenaSlot& slot : slots_) {
    if (slot.bucket == bucket) parameters.push_back(slot.parameter);
  }
  FillInitialValues(options_.threads, seed, parameters);
}

void ParameterArena::BeginStep() {
  gradients_.BeginStep();
  for (const ArenaSlot& slot : slots_) Forget(*slot.parameter);
}

absl::Status ParameterArena::ZeroUnwritten(int bucket) {
  for (const ArenaSlot& slot : SlotsOf(bucket)) {
    if (slot.parameter->grad_written) continue;
    TROUPE_RETURN_IF_ERROR(HoldGrads(bucket));
    TROUPE_RETURN_IF_ERROR(FillWithZeros(slot.parameter->grad));
    slot.parameter->grad_written = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ParameterArena::AddState(absl::string_view name,
                                                std::optional<DType> dtype) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor state,
      BucketGradients::Zeros(owned_.elems(), name,
                             MemoryOf(dtype.value_or(dtype_), allocator_)));
  states_.emplace_back(name, state);
  return state;
}

Tensor ParameterArena::View(const Tensor& arena,
                            const ArenaRange& range) const {
  return arena.FlatView(range.begin, {range.size()});
}

Tensor ParameterArena::View(const Tensor& arena, const ArenaSlot& slot) const {
  return arena.FlatView(slot.begin, slot.parameter->shape);
}

}  // namespace troupe::nn
