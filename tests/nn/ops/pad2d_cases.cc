#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddPad2d(const std::string& name, const Shape& x, Padding2d padding,
              std::vector<OpCase>& all) {
  const Shape y = {x[0], x[1] + padding.top + padding.bottom,
                   x[2] + padding.left + padding.right, x[3]};
  const std::pair<const char*, PadMode> modes[] = {
      {"zeros", PadMode::kZeros},
      {"reflect", PadMode::kReflect},
      {"replicate", PadMode::kReplicate},
      {"circular", PadMode::kCircular}};
  for (const auto& [mode, value] : modes) {
    padding.mode = value;
    all.push_back(
        {absl::StrCat("pad2d_", mode, "_", name),
         {Normal(x), Normal(y)},
         {Poison(y), Poison(x)},
         [padding](Kernels& k, Inputs in, Outputs out) -> absl::Status {
           TROUPE_RETURN_IF_ERROR(k.Pad2dForward(padding, in[0], out[0]));
           return k.Pad2dBackward(padding, in[1], out[1]);
         }});
  }
}

}  // namespace

void AddPad2dCases(std::vector<OpCase>& all) {
  AddPad2d("1", {2, 5, 4, 16}, {1, 1, 1, 1}, all);
  AddPad2d("uneven", {3, 4, 6, 5}, {2, 0, 1, 5}, all);
  AddPad2d("row", {2, 1, 9, 3}, {0, 0, 3, 4}, all);
  AddPad2d("most", {1, 4, 5, 21}, {3, 3, 4, 4}, all);
  AddPad2d("none", {1, 2, 3, 2}, {0, 0, 0, 0}, all);
  AddPad2d("empty_batch", {0, 4, 5, 3}, {1, 1, 1, 1}, all);
}

}  // namespace troupe::nn
