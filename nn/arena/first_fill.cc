#include "nn/arena/first_fill.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/parallel_for.h"
#include "nn/random/philox.h"

namespace troupe::nn {
namespace {

// Limit on the draws for one value: a normal draw outside the bounds is drawn
// again; after this many, the value is the bound that the last draw missed.
constexpr int kDrawsMax = 1000;

double DrawTruncated(const Initializer& init, RandomStream& stream) {
  double value = 0;
  for (int i = 0; i < kDrawsMax; ++i) {
    value = init.a + init.b * stream.Normal();
    if (value >= init.low && value <= init.high) return value;
  }
  return std::min(std::max(value, init.low), init.high);
}

double Draw(const Initializer& init, RandomStream& stream) {
  switch (init.kind) {
    case Initializer::Kind::kConstant:
      return init.a;
    case Initializer::Kind::kUniform:
      break;  // FillUniform()
    case Initializer::Kind::kNormal:
      return init.a + init.b * stream.Normal();
    case Initializer::Kind::kTruncatedNormal:
      return DrawTruncated(init, stream);
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

// Size of the run that one thread fills at a time: a multiple of a Philox
// block's four words, and several huge pages, so that two threads seldom fault
// on the same page at once (each then clears 2 MiB, and one of them in vain).
constexpr std::int64_t kRunElems = std::int64_t{1} << 20;
constexpr std::int64_t kRunBytes = 4 * kRunElems;
constexpr std::int64_t kBlockWords = 4;

// Whether element i has the draws of block i, or word i, so that a run of
// elements can be drawn by itself. The other kinds draw again what they reject,
// so that an element's draws depend on those before it.
bool CanBeginAnywhere(const Initializer& init) {
  return init.kind != Initializer::Kind::kTruncatedNormal &&
         init.kind != Initializer::Kind::kIntegers;
}

// Elements of a parameter that one call fills: one run of them, or all, which
// are drawn in order.
struct Run {
  const Parameter* parameter = nullptr;
  ShardRange range;
  bool in_order = false;
};

// Key and position of the draws of one parameter.
struct Place {
  RandomKey key;
  RandomPosition position;
};

// Fills the first elements, which begin within a block of four words, so that
// the rest begins with a block. Each element takes one word: element i has 24
// bits of draw i, in every dtype.
void FillUniform(const Initializer& init, const Place& at, std::int64_t first,
                 absl::Span<float> values) {
  const auto block = static_cast<std::uint32_t>(first / kBlockWords);
  const auto begun = static_cast<std::size_t>(first % kBlockWords);
  if (begun == 0) {
    return FillUniformF32(at.key, at.position, block, init.a, init.b, values);
  }
  float words[kBlockWords];
  FillUniformF32(at.key, at.position, block, init.a, init.b,
                 absl::MakeSpan(words));
  const std::size_t count = std::min(kBlockWords - begun, values.size());
  std::copy_n(words + begun, count, values.begin());
  FillUniformF32(at.key, at.position, block + 1, init.a, init.b,
                 values.subspan(count));
}

template <typename T>
void FillUniform(const Initializer& init, const Place& at, std::int64_t first,
                 absl::Span<T> values) {
  const auto begun = static_cast<std::size_t>(first % kBlockWords);
  std::vector<std::uint32_t> words(begun + values.size());
  FillBits32(at.key, at.position,
             static_cast<std::uint32_t>(first / kBlockWords),
             absl::MakeSpan(words));
  const double scale = (init.b - init.a) * 0x1p-24;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = FromDouble<T>(init.a + scale * (words[begun + i] >> 8));
  }
}

// Draws the whole parameter and keeps the elements that are here.
template <typename T>
void FillInOrder(const Parameter& parameter, const Place& at) {
  RandomStream stream(at.key, at.position);
  std::int64_t next = 0;
  for (const ShardRange& range : RangesOf(parameter)) {
    for (; next < range.global; ++next) Draw(parameter.init, stream);
    T* const values = parameter.value.data<T>() + range.local;
    for (std::int64_t i = 0; i < range.count; ++i, ++next) {
      values[i] = FromDouble<T>(Draw(parameter.init, stream));
    }
  }
}

template <typename T>
void Fill(const Run& run, std::uint64_t seed) {
  const Parameter& parameter = *run.parameter;
  const Place at{RandomKey(seed, Purpose::kInitialize),
                 {0, 0, HashName(parameter.name)}};
  if (run.in_order) return FillInOrder<T>(parameter, at);
  const absl::Span<T> values =
      absl::MakeSpan(parameter.value.data<T>() + run.range.local,
                     static_cast<std::size_t>(run.range.count));
  if (parameter.init.kind == Initializer::Kind::kUniform) {
    return FillUniform(parameter.init, at, run.range.global, values);
  }
  RandomStream stream(at.key, at.position,
                      static_cast<std::uint32_t>(run.range.global));
  for (T& value : values) value = FromDouble<T>(Draw(parameter.init, stream));
}

void Fill(const Run& run, std::uint64_t seed) {
  switch (run.parameter->dtype) {
    case DType::kF32:
      return Fill<float>(run, seed);
    case DType::kF64:
      return Fill<double>(run, seed);
    case DType::kBF16:
      return Fill<bf16>(run, seed);
    case DType::kF16:
      return Fill<f16>(run, seed);
    default:
      TROUPE_CHECK(false, "parameters are of a floating dtype");
  }
}

void AppendRuns(const Parameter& parameter, std::vector<Run>& runs) {
  if (!CanBeginAnywhere(parameter.init)) {
    return runs.push_back({&parameter, {}, /*in_order=*/true});
  }
  for (const ShardRange& range : RangesOf(parameter)) {
    for (std::int64_t begin = 0; begin < range.count; begin += kRunElems) {
      runs.push_back({&parameter,
                      {range.global + begin, range.local + begin,
                       std::min(kRunElems, range.count - begin)}});
    }
  }
}

// Writes zeros over the elements of the initialiser's zero row that are here.
void ZeroRow(const Parameter& parameter) {
  const std::int64_t row = parameter.init.zero_row;
  if (row < 0) return;
  const Shape& whole = WholeShape(parameter);
  const std::int64_t elems = whole.numel() / whole[0];
  const std::size_t elem_bytes = SizeOf(parameter.dtype);
  for (const ShardRange& range : RangesOf(parameter)) {
    const std::int64_t begin = std::max(range.global, row * elems);
    const std::int64_t end =
        std::min(range.global + range.count, (row + 1) * elems);
    if (begin >= end) continue;
    char* const values = static_cast<char*>(parameter.value.raw());
    const std::int64_t at = range.local + begin - range.global;
    std::memset(values + at * elem_bytes, 0, (end - begin) * elem_bytes);
  }
}

// Writes zeros over the elements of a piece that are none of the whole's.
void ZeroPadding(const Parameter& parameter) {
  const std::size_t elem_bytes = SizeOf(parameter.dtype);
  char* const values = static_cast<char*>(parameter.value.raw());
  std::int64_t end = 0;  // end of the ranges so far
  const auto zero_until = [&](std::int64_t begin) {
    std::memset(values + end * elem_bytes, 0, (begin - end) * elem_bytes);
  };
  for (const ShardRange& range : RangesOf(parameter)) {
    zero_until(range.local);
    end = range.local + range.count;
  }
  zero_until(parameter.shape.numel());
}

}  // namespace

void FillInitialValues(int threads, std::uint64_t seed,
                       absl::Span<const Parameter* const> parameters) {
  std::vector<Run> runs;
  std::int64_t elems = 0;
  for (const Parameter* parameter : parameters) {
    AppendRuns(*parameter, runs);
    elems += parameter->shape.numel();
  }
  // A few small parameters are not worth a thread.
  base::ParallelFor(elems > kRunElems ? threads : 1,
                    static_cast<std::int64_t>(runs.size()),
                    [&](std::int64_t i) { Fill(runs[i], seed); });
  for (const Parameter* parameter : parameters) {
    ZeroRow(*parameter);
    if (parameter->sharding.pads) ZeroPadding(*parameter);
  }
}

void FillZeros(int threads, const Tensor& tensor) {
  char* const to = static_cast<char*>(tensor.raw());
  const auto bytes = static_cast<std::int64_t>(tensor.bytes());
  base::ParallelFor(
      threads, (bytes + kRunBytes - 1) / kRunBytes, [=](std::int64_t i) {
        const std::int64_t begin = i * kRunBytes;
        const std::int64_t count = std::min(kRunBytes, bytes - begin);
        std::memset(to + begin, 0, static_cast<std::size_t>(count));
      });
}

}  // namespace troupe::nn
