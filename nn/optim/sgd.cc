#include "nn/optim/sgd.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::nn {
namespace {

template <auto kField>
absl::Status CheckFactor(const SgdOptions& options, bool may_be_negative) {
  const double value = options.*kField;
  const char* wanted = !std::isfinite(value)           ? "must be finite"
                       : value < 0 && !may_be_negative ? "must be at least 0"
                                                       : nullptr;
  if (wanted == nullptr) return absl::OkStatus();
  return base::FieldError<kField>(
      absl::StrCat(base::FieldName<kField>(), " = ", value, ": ", wanted));
}

}  // namespace

absl::Status SgdOptions::Validate() const {
  for (const absl::Status& status : {
           CheckFactor<&SgdOptions::lr>(*this, /*may_be_negative=*/false),
           CheckFactor<&SgdOptions::momentum>(*this, false),
           CheckFactor<&SgdOptions::weight_decay>(*this, false),
           CheckFactor<&SgdOptions::dampening>(*this, true),
       }) {
    if (!status.ok()) return status;
  }
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    return base::FieldError<&SgdOptions::nesterov, &SgdOptions::momentum,
                            &SgdOptions::dampening>(
        absl::StrCat(base::FieldName<&SgdOptions::nesterov>(), " = true needs ",
                     base::FieldName<&SgdOptions::momentum>(), " above 0 and ",
                     base::FieldName<&SgdOptions::dampening>(), " = 0"));
  }
  for (const ParameterGroup& group : groups) {
    TROUPE_RETURN_IF_ERROR(group.Validate());
  }
  return schedule.Validate();
}

absl::Status Sgd::Attach(ParameterArena& arena) {
  DType state = arena.values().dtype();
  if (options_.f32_master && SizeOf(state) < SizeOf(DType::kF32)) {
    state = DType::kF32;
    TROUPE_ASSIGN_OR_RETURN(master_, arena.AddState("master_value", state));
  }
  if (options_.momentum != 0) {
    TROUPE_ASSIGN_OR_RETURN(momentum_,
                            arena.AddState("momentum_buffer", state));
  }
  if (!options_.groups.empty()) groups_ = GroupRanges(arena, options_.groups);
  return absl::OkStatus();
}

absl::Status Sgd::Begin(Kernels& kernels, ParameterArena& arena) {
  return master_.defined() ? kernels.Copy(arena.values(), master_)
                           : absl::OkStatus();
}

absl::Status Sgd::Inspect(Kernels& kernels, const Tensor& scalars,
                          const ParameterArena& arena) {
  if (!options_.skip_nonfinite) return absl::OkStatus();
  Tensor count = scalars.FlatView(kNonFiniteScalar, {1});
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    TROUPE_RETURN_IF_ERROR(
        kernels.CountNonFinite(arena.BucketGrads(bucket), count));
  }
  return absl::OkStatus();
}

// One kernel call; where there are master values, a conversion behind it.
absl::Status Sgd::UpdatePart(Kernels& kernels, const SgdRule& rule,
                             const Tensor& scalars, ParameterArena& arena,
                             const ArenaRange& range, const Tensor& grads) {
  Tensor values = arena.View(arena.values(), range);
  Tensor updated = master_.defined() ? arena.View(master_, range) : values;
  Tensor momentum;
  if (momentum_.defined()) momentum = arena.View(momentum_, range);
  Tensor converted;
  if (grads.dtype() != updated.dtype()) {
    TROUPE_ASSIGN_OR_RETURN(
        converted,
        Tensor::Create(grads.shape(), updated.dtype(), kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Copy(grads, converted));
  }
  TROUPE_RETURN_IF_ERROR(
      kernels.SgdUpdate(rule, scalars, converted.defined() ? converted : grads,
                        updated, momentum));
  return master_.defined() ? kernels.Copy(updated, values) : absl::OkStatus();
}

absl::Status Sgd::UpdateRange(Kernels& kernels, const Tensor& scalars,
                              ParameterArena& arena, const ArenaRange& range,
                              const Tensor& grads) {
  if (options_.momentum != 0 && !momentum_.defined()) {
    return absl::FailedPreconditionError(
        absl::StrCat("SGD: momentum is ", options_.momentum,
                     " but there is no buffer for it: call Attach() first"));
  }
  SgdRule rule;
  rule.momentum = options_.momentum;
  rule.dampening = options_.dampening;
  rule.weight_decay = options_.weight_decay;
  rule.nesterov = options_.nesterov;
  if (options_.groups.empty()) {
    return UpdatePart(kernels, rule, scalars, arena, range, grads);
  }
  return groups_.ForEach(range, [&](const ArenaRange& part, int number) {
    static const ParameterGroup& none = *new ParameterGroup;
    const ParameterGroup& group =
        number == GroupRanges::kNoGroup ? none : options_.groups[number];
    rule.lr_factor = group.lr_factor;
    rule.weight_decay = group.weight_decay.value_or(options_.weight_decay);
    return UpdatePart(
        kernels, rule, scalars, arena, part,
        grads.FlatView(part.begin - range.begin, Shape{part.size()}));
  });
}

}  // namespace troupe::nn
