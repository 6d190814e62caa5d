#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

// Place of the elements of a sample in the whole (DropoutMask).
struct Part {
  std::int64_t first = 0, row = 0, stride = 0;
};

void AddDropout(const Shape& x, std::vector<OpCase>& all,
                const Part& part = {}) {
  DropoutMask mask{{RandomKey(/*seed=*/7, Purpose::kDropout), {5, 6, 7}}};
  mask.drop_below = 0x60000000;
  mask.scale = 1.6;
  mask.first = part.first;
  mask.row = part.row;
  mask.stride = part.stride;
  all.push_back({absl::StrCat("dropout_", x[0], "x", x.numel(),
                              part.row > 0 ? "_rows" : ""),
                 {Normal(x)},
                 {Poison(x), Normal(x)},
                 [mask](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Dropout(mask, in[0], out[0]));
                   return k.Dropout(mask, out[1], out[1]);
                 }});
}

}  // namespace

void AddDropoutCases(std::vector<OpCase>& all) {
  AddDropout({0, 5}, all);
  AddDropout({3, 7}, all);
  AddDropout({2, 33, 70}, all);
  AddDropout({3, 4096}, all);
  AddDropout({2, 6, 5}, all, {/*first=*/5, /*row=*/5, /*stride=*/15});
  AddDropout({2, 4, 64}, all, {/*first=*/64, /*row=*/64, /*stride=*/128});
  AddDropout({2, 3, 1500}, all, {/*first=*/3, /*row=*/1500, /*stride=*/4501});
}

}  // namespace troupe::nn
