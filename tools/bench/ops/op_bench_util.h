// Small parts that the cases share: a parsed line, and tensors of numbers.

#ifndef TOOLS_BENCH_OPS_OP_BENCH_UTIL_H_
#define TOOLS_BENCH_OPS_OP_BENCH_UTIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "nn/kernels/kernels.h"

namespace troupe::bench {

// A parsed line: "conv f 16 32 3" has words {"conv", "f"} and numbers
// {16, 32, 3}.
struct Line {
  std::string op, direction;
  std::vector<std::int64_t> n;

  explicit Line(const std::string& text) {
    for (absl::string_view word :
         absl::StrSplit(text, ' ', absl::SkipWhitespace())) {
      std::int64_t value;
      if (absl::SimpleAtoi(word, &value)) {
        n.push_back(value);
      } else if (op.empty()) {
        op = std::string(word);
      } else {
        direction = std::string(word);
      }
    }
  }
  bool Is(const char* name, std::size_t numbers) const {
    return op == name && n.size() == numbers;
  }
};

// Returns numbers between -0.5 and 0.5 times `scale`, the same at each call.
inline nn::Tensor Numbers(const nn::Shape& shape, nn::Kernels& kernels,
                          float scale = 1.0f) {
  nn::Tensor t = nn::Tensor::Empty(shape, nn::DType::kF32, kernels.allocator());
  std::uint32_t state = 1;
  for (float& v : t.span<float>()) {
    state = state * 1664525u + 1013904223u;
    v = scale * (static_cast<float>(state >> 8) / 16777216.0f - 0.5f);
  }
  return t;
}

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OPS_OP_BENCH_UTIL_H_
