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

// Size of the piece that one thread fills at a time: a multiple of a Philox
// block's four words, and several huge pages, so that two threads seldom fault
// on the same page at once (each then clears 2 MiB, and one of them in vain).
constexpr std::int64_t kPieceElems = std::int64_t{1} << 20;
constexpr std::int64_t kPieceBytes = 4 * kPieceElems;

// Elements [begin, end) of a parameter.
struct Piece {
  const Parameter* parameter = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Each element takes one word: element i has 24 bits of draw i, in every dtype.
template <typename T>
void FillUniform(const Piece& piece, const RandomKey& key,
                 const RandomPosition& position) {
  const Initializer& init = piece.parameter->init;
  const auto block = static_cast<std::uint32_t>(piece.begin / 4);
  const auto count = static_cast<std::size_t>(piece.end - piece.begin);
  T* const values = piece.parameter->value.data<T>() + piece.begin;
  if constexpr (std::is_same_v<T, float>) {
    FillUniformF32(key, position, block, init.a, init.b,
                   absl::MakeSpan(values, count));
  } else {
    std::vector<std::uint32_t> words(count);
    FillBits32(key, position, block, absl::MakeSpan(words));
    const double scale = (init.b - init.a) * 0x1p-24;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = FromDouble<T>(init.a + scale * (words[i] >> 8));
    }
  }
}

template <typename T>
void Fill(const Piece& piece, std::uint64_t seed) {
  const Parameter& parameter = *piece.parameter;
  const RandomKey key(seed, Purpose::kInitialize);
  const RandomPosition position{0, 0, HashName(parameter.name)};
  if (parameter.init.kind == Initializer::Kind::kUniform) {
    return FillUniform<T>(piece, key, position);
  }
  RandomStream stream(key, position);
  for (T& value : parameter.value.span<T>()) {
    value = FromDouble<T>(Draw(parameter.init, stream));
  }
}

void Fill(const Piece& piece, std::uint64_t seed) {
  switch (piece.parameter->dtype) {
    case DType::kF32:
      return Fill<float>(piece, seed);
    case DType::kF64:
      return Fill<double>(piece, seed);
    case DType::kBF16:
      return Fill<bf16>(piece, seed);
    case DType::kF16:
      return Fill<f16>(piece, seed);
    default:
      TROUPE_CHECK(false, "parameters are of a floating dtype");
  }
}

// A RandomStream can only start at its beginning: only uniform parameters are
// cut.
void AppendPieces(const Parameter& parameter, std::vector<Piece>& pieces) {
  const std::int64_t elems = parameter.shape.numel();
  const bool cut = parameter.init.kind == Initializer::Kind::kUniform;
  const std::int64_t step = cut ? kPieceElems : elems;
  for (std::int64_t begin = 0; begin < elems; begin += step) {
    pieces.push_back({&parameter, begin, std::min(begin + step, elems)});
  }
}

}  // namespace

void FillInitialValues(int threads, std::uint64_t seed,
                       absl::Span<const Parameter* const> parameters) {
  std::vector<Piece> pieces;
  std::int64_t elems = 0;
  for (const Parameter* parameter : parameters) {
    AppendPieces(*parameter, pieces);
    elems += parameter->shape.numel();
  }
  // A few small parameters are not worth a thread.
  base::ParallelFor(elems > kPieceElems ? threads : 1,
                    static_cast<std::int64_t>(pieces.size()),
                    [&](std::int64_t i) { Fill(pieces[i], seed); });
  for (const Parameter* parameter : parameters) {
    const std::int64_t row = parameter->init.zero_row;
    if (row < 0) continue;
    const Tensor zeros = parameter->value.Slice(row, row + 1);
    std::memset(zeros.raw(), 0, zeros.bytes());
  }
}

void FillZeros(int threads, const Tensor& tensor) {
  char* const to = static_cast<char*>(tensor.raw());
  const auto bytes = static_cast<std::int64_t>(tensor.bytes());
  base::ParallelFor(
      threads, (bytes + kPieceBytes - 1) / kPieceBytes, [=](std::int64_t i) {
        const std::int64_t begin = i * kPieceBytes;
        const std::int64_t count = std::min(kPieceBytes, bytes - begin);
        std::memset(to + begin, 0, static_cast<std::size_t>(count));
      });
}

}  // namespace troupe::nn
