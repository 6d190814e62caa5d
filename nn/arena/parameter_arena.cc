#include "nn/arena/parameter_arena.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "nn/random/philox.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kAlignBytes = 64;

std::int64_t RoundUp(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

double Draw(const Initializer& init, RandomStream& stream) {
  switch (init.kind) {
    case Initializer::Kind::kConstant:
      return init.a;
    case Initializer::Kind::kUniform:
      break;  // FillUniform()
    case Initializer::Kind::kNormal:
      return init.a + init.b * stream.Normal();
    case Initializer::Kind::kIntegers:
      return init.a + static_cast<double>(stream.Below(
                          static_cast<std::uint64_t>(init.b - init.a) + 1));
  }
  return 0;
}

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    return T::FromFloat(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// One word per element, in pieces that stay in the first-level cache: element i
// has 24 bits of draw i, in every dtype.
template <typename T>
void FillUniform(const Initializer& init, const RandomKey& key,
                 const RandomPosition& position, absl::Span<T> values) {
  constexpr std::size_t kPiece = 1024;
  std::uint32_t words[kPiece];
  const double scale = (init.b - init.a) * 0x1p-24;
  for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
    const std::size_t count = std::min(kPiece, values.size() - begin);
    FillBits32(key, position, static_cast<std::uint32_t>(begin / 4),
               absl::MakeSpan(words, count));
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<std::int32_t>(words[i] >> 8);
      values[begin + i] = FromDouble<T>(init.a + scale * bits);
    }
  }
}

template <typename T>
void FillParameter(const Parameter& parameter, std::uint64_t seed) {
  const RandomKey key(seed, Purpose::kInitialize);
  const RandomPosition position{0, 0, HashName(parameter.name)};
  if (parameter.init.kind == Initializer::Kind::kUniform) {
    FillUniform(parameter.init, key, position, parameter.value.span<T>());
    return;
  }
  RandomStream stream(key, position);
  for (T& value : parameter.value.span<T>()) {
    value = FromDouble<T>(Draw(parameter.init, stream));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterArena>> ParameterArena::Create(
    const std::vector<std::vector<Parameter*>>& buckets, const Options& options,
    CachingAllocator& allocator) {
  if (options.pad_elems < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ParameterArena: pad_elems is ", options.pad_elems, ", at least 1"));
  }
  std::vector<ArenaSlot> slots;
  std::vector<ArenaRange> ranges;
  DType dtype = DType::kF32;
  const Parameter* first = nullptr;
  std::int64_t end = 0;
  for (int bucket = 0; bucket < static_cast<int>(buckets.size()); ++bucket) {
    ArenaRange range{end, end};
    for (Parameter* parameter : buckets[bucket]) {
      if (first == nullptr) {
        first = parameter;
        dtype = parameter->dtype;
      }
      if (parameter->dtype != dtype) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameters of one rank have one dtype: ", first->name,
                         " is ", DTypeName(dtype), ", ", parameter->name,
                         " is ", DTypeName(parameter->dtype)));
      }
      const std::int64_t align =
          kAlignBytes / static_cast<std::int64_t>(SizeOf(dtype));
      end = RoundUp(end, align);
      slots.push_back({parameter, bucket, end});
      end += parameter->shape.numel();
    }
    end = range.begin + RoundUp(end - range.begin, options.pad_elems);
    range.end = end;
    ranges.push_back(range);
  }
  return std::unique_ptr<ParameterArena>(new ParameterArena(
      std::move(slots), std::move(ranges), dtype, allocator));
}

ParameterArena::ParameterArena(std::vector<ArenaSlot> slots,
                               std::vector<ArenaRange> ranges, DType dtype,
                               CachingAllocator& allocator)
    : allocator_(allocator),
      slots_(std::move(slots)),
      ranges_(std::move(ranges)) {
  const std::int64_t size = ranges_.empty() ? 0 : ranges_.back().end;
  values_ = Tensor::Zeros({size}, dtype, allocator_);
  grads_ = Tensor::Zeros({size}, dtype, allocator_);
  for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
    Parameter& parameter = *slots_[i].parameter;
    parameter.value = View(values_, slots_[i]);
    parameter.grad = View(grads_, slots_[i]);
    parameter.index = i;
    parameter.grad_written = false;
  }
}

void ParameterArena::Initialize(std::uint64_t seed) {
  for (const ArenaSlot& slot : slots_) {
    const Parameter& parameter = *slot.parameter;
    switch (parameter.dtype) {
      case DType::kF32:
        FillParameter<float>(parameter, seed);
        break;
      case DType::kF64:
        FillParameter<double>(parameter, seed);
        break;
      case DType::kBF16:
        FillParameter<bf16>(parameter, seed);
        break;
      case DType::kF16:
        FillParameter<f16>(parameter, seed);
        break;
      default:
        TROUPE_CHECK(false, "parameters are of a floating dtype");
    }
  }
}

void ParameterArena::BeginStep() {
  for (const ArenaSlot& slot : slots_) slot.parameter->grad_written = false;
}

void ParameterArena::ZeroUnwritten(int bucket) {
  for (const ArenaSlot& slot : slots_) {
    if (slot.bucket != bucket || slot.parameter->grad_written) continue;
    std::memset(slot.parameter->grad.raw(), 0, slot.parameter->grad.bytes());
    slot.parameter->grad_written = true;
  }
}

Tensor ParameterArena::AddState(absl::string_view name) {
  states_.emplace_back(
      name, Tensor::Zeros(values_.shape(), values_.dtype(), allocator_));
  return states_.back().second;
}

Tensor ParameterArena::View(const Tensor& arena,
                            const ArenaRange& range) const {
  return arena.FlatView(range.begin, {range.size()});
}

Tensor ParameterArena::View(const Tensor& arena, const ArenaSlot& slot) const {
  return arena.FlatView(slot.begin, slot.parameter->shape);
}

}  // namespace troupe::nn
