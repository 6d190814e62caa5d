#include "actors/chunks/pieces.h"

#include <cstring>

#include "base/check.h"
#include "nn/autograd/sharding.h"
#include "nn/tensor/dtype.h"

namespace troupe::actors {

void CopyIntoWhole(const nn::Parameter& parameter, int coord,
                   const nn::Tensor& piece, const nn::Tensor& whole) {
  TROUPE_CHECK(whole.dtype() == piece.dtype(), "a piece has the whole's dtype");
  const nn::AxisPlace place = {parameter.sharding.axis, coord,
                               parameter.sharding.size};
  const std::size_t size = nn::SizeOf(piece.dtype());
  const auto* const from = static_cast<const char*>(piece.raw());
  auto* const to = static_cast<char*>(whole.raw());
  for (const nn::ShardRange& range : nn::RangesOf(parameter, {&place, 1})) {
    std::memcpy(to + range.global * size, from + range.local * size,
                range.count * size);
  }
}

}  // namespace troupe::actors
