#include "nn/optim/arena_optimizer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

// Size of the pieces of an update: the data of a piece stays in the
// second-level cache from one pass over it to the next.
constexpr std::int64_t kPieceElems = std::int64_t{1} << 15;

}  // namespace

absl::Status ArenaOptimizer::Attach(ParameterArena& arena) {
  const DType values = arena.values().dtype();
  const bool narrow = SizeOf(values) < SizeOf(DType::kF32);
  DType state = values;
  if (common_.stochastic_rounding && values == DType::kF16) {
    return absl::InvalidArgumentError(
        "OptimizerOptions.stochastic_rounding: parameters are f16, and only "
        "bf16 is rounded at random; take bf16, or f32_master");
  }
  rounds_at_random_ = common_.stochastic_rounding && values == DType::kBF16;
  if (rounds_at_random_) state = DType::kF32;
  if (common_.f32_master && narrow) {
    state = DType::kF32;
    TROUPE_ASSIGN_OR_RETURN(master_, arena.AddState(kMasterState, state));
  }
  TROUPE_RETURN_IF_ERROR(AttachStates(arena, state));
  if (common_.ema_decay > 0) {
    TROUPE_ASSIGN_OR_RETURN(
        average_, arena.AddState(kAverageState, narrow ? DType::kF32 : values));
  }
  SetGroups(arena, {});
  return absl::OkStatus();
}

void ArenaOptimizer::SetFirstUpdates(const ParameterArena& arena,
                                     absl::Span<const double> first) {
  if (CountsUpdates()) SetGroups(arena, first);
}

void ArenaOptimizer::SetGroups(const ParameterArena& arena,
                               absl::Span<const double> first) {
  const bool all_first = std::all_of(first.begin(), first.end(),
                                     [](double update) { return update == 0; });
  groups_ = GroupRanges();
  const bool parameters = per_parameter() || rounds_at_random_;
  if (common_.groups.empty() && !parameters && all_first) return;
  groups_ = GroupRanges(arena, common_.groups,
                        parameters ? GroupRanges::Parts::kParameters
                                   : GroupRanges::Parts::kNeighbours,
                        first);
}

absl::Status ArenaOptimizer::Begin(Kernels& kernels, ParameterArena& arena) {
  for (Tensor* copy : {&master_, &average_}) {
    if (!copy->defined()) continue;
    for (const ArenaRange& range : arena.owned().All()) {
      Tensor owned = arena.ViewState(*copy, range);
      TROUPE_RETURN_IF_ERROR(
          kernels.Copy(arena.View(arena.values(), range), owned));
    }
  }
  return absl::OkStatus();
}

absl::Status ArenaOptimizer::Inspect(Kernels& kernels, const Tensor& scalars,
                                     const ParameterArena& arena) {
  Tensor count = scalars.FlatView(kNonFiniteScalar, {1});
  Tensor squares = scalars.FlatView(kSquareSumScalar, {1});
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    if (arena.IsCopied(bucket)) continue;
    const Tensor grads = arena.OwnedGrads(bucket);
    if (common_.skip_nonfinite) {
      TROUPE_RETURN_IF_ERROR(kernels.CountNonFinite(grads, count));
    }
    if (common_.clip_grad_norm > 0) {
      TROUPE_RETURN_IF_ERROR(kernels.AddSquares(grads, squares));
    }
  }
  return absl::OkStatus();
}

absl::Status ArenaOptimizer::Conclude(Kernels& kernels, Tensor& scalars) {
  if (common_.clip_grad_norm == 0) return absl::OkStatus();
  return kernels.SetClipFactor(common_.clip_grad_norm, scalars);
}

absl::Status ArenaOptimizer::RunPart(Kernels& kernels, const Tensor& grads,
                                     const Part& part, Pass pass) {
  const ArenaRange whole = part.range;
  // Copies of a large range would take as much memory as the range, and pass it
  // through the cache. For a device with queues, few calls are better.
  const bool cuts = !per_parameter() && kernels.queues() == nullptr;
  const std::int64_t most = cuts ? kPieceElems : whole.size();
  for (std::int64_t begin = whole.begin; begin < whole.end;) {
    Part piece = part;
    piece.range = {begin, std::min(begin + most, whole.end)};
    TROUPE_RETURN_IF_ERROR(RunPiece(
        kernels, grads.FlatView(begin - whole.begin, Shape{piece.range.size()}),
        piece, pass));
    begin = piece.range.end;
  }
  return absl::OkStatus();
}

// Sets the sums of squares over the part's parameter, or this rank's part of
// them.
absl::Status ArenaOptimizer::SumUp(Kernels& kernels, Part& part, Pass pass) {
  if (pass == Pass::kWhole) {
    TROUPE_ASSIGN_OR_RETURN(
        part.squares, Tensor::Create({2}, DType::kF64, kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Fill(0, part.squares));
    return SumPart(kernels, part);
  }
  ParameterSums::Of& sums = sums_.At(part.arena, *part.slot);
  part.squares = sums.squares;
  if (pass == Pass::kUpdate) {
    part.direction = std::move(sums.direction);
    return absl::OkStatus();
  }
  TROUPE_RETURN_IF_ERROR(SumPart(kernels, part));
  sums.direction = std::move(part.direction);
  return absl::OkStatus();
}

// Runs one pass over the piece; before it conversions and clipping by value,
// after it the updates that need the new values.
absl::Status ArenaOptimizer::RunPiece(Kernels& kernels, const Tensor& grads,
                                      Part& part, Pass pass) {
  Tensor values = part.arena.View(part.arena.values(), part.range);
  part.values =
      master_.defined() ? part.arena.ViewState(master_, part.range) : values;
  if (rounds_at_random_) {
    TROUPE_ASSIGN_OR_RETURN(
        part.values,
        Tensor::Temporary(values.shape(), DType::kF32, kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Copy(values, part.values));
  }
  part.grads = grads;
  if (grads.dtype() != part.values.dtype()) {
    TROUPE_ASSIGN_OR_RETURN(
        part.grads, Tensor::Temporary(grads.shape(), part.values.dtype(),
                                      kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Copy(grads, part.grads));
  }
  if (common_.clip_grad_value > 0) {
    TROUPE_ASSIGN_OR_RETURN(Tensor clipped,
                            Tensor::Temporary(grads.shape(), part.grads.dtype(),
                                              kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.ClipGradient(
        common_.clip_grad_value, part.scalars, part.grads, clipped));
    part.grads = clipped;
  }
  if (per_parameter()) TROUPE_RETURN_IF_ERROR(SumUp(kernels, part, pass));
  if (pass == Pass::kSum) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(UpdatePart(kernels, part));
  if (rounds_at_random_) {
    const RoundingDraws draws = {
        RandomKey(common_.rounding_seed, Purpose::kRounding),
        HashName(part.slot->parameter->name),
        part.range.begin - part.slot->begin};
    TROUPE_RETURN_IF_ERROR(
        kernels.RoundAtRandom(draws, part.scalars, part.values, values));
    part.values = values;  // averages follow the rounded ones
  }
  if (average_.defined()) {
    Tensor average = part.arena.ViewState(average_, part.range);
    Tensor wide = part.values;
    if (wide.dtype() != average.dtype()) {
      TROUPE_ASSIGN_OR_RETURN(wide,
                              Tensor::Temporary(wide.shape(), average.dtype(),
                                                kernels.allocator()));
      TROUPE_RETURN_IF_ERROR(kernels.Copy(part.values, wide));
    }
    TROUPE_RETURN_IF_ERROR(
        kernels.EmaUpdate(common_.ema_decay, part.scalars, wide, average));
  }
  return master_.defined() ? kernels.Copy(part.values, values)
                           : absl::OkStatus();
}

absl::Status ArenaOptimizer::RunRange(Kernels& kernels, const Tensor& scalars,
                                      ParameterArena& arena,
                                      const ArenaRange& range,
                                      const Tensor& grads, Pass pass) {
  if (groups_.parts().empty()) {
    Part part = {scalars, arena, range, 1, weight_decay_, {}, {}};
    return RunPart(kernels, grads, part, pass);
  }
  return groups_.ForEach(
      range, [&](const GroupRanges::Part& of) -> absl::Status {
        Part part = {scalars, arena, of.range, 1, weight_decay_, {}, {}};
        if (of.group != GroupRanges::kNoGroup) {
          const ParameterGroup& group = common_.groups[of.group];
          part.lr_factor = group.lr_factor;
          part.weight_decay = group.weight_decay.value_or(weight_decay_);
        }
        if (of.first_update != 0) {
          TROUPE_ASSIGN_OR_RETURN(
              part.scalars, Tensor::Create(scalars.shape(), scalars.dtype(),
                                           kernels.allocator()));
          TROUPE_RETURN_IF_ERROR(
              kernels.CountFrom(of.first_update, scalars, part.scalars));
        }
        part.slot = of.slot;
        return RunPart(kernels,
                       grads.FlatView(of.range.begin - range.begin,
                                      Shape{of.range.size()}),
                       part, pass);
      });
}

}  // namespace troupe::nn
