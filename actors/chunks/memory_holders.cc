#include "actors/chunks/memory_holders.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format_bytes.h"

namespace troupe::actors {

void MemoryHolders::AddArena(const nn::ParameterArena& arena) {
  bytes_["parameters"] += arena.values().bytes();
  const nn::Tensor& grads = arena.grads();
  if (!grads.defined() || grads.device() == arena.values().device()) {
    bytes_["gradients"] += arena.lasting_grad_bytes();
  }
  for (const auto& named : arena.states()) {
    bytes_[named.first] += named.second.bytes();
  }
}

std::string MemoryHolders::ToString() const {
  using Holder = std::pair<std::string, std::size_t>;
  std::vector<Holder> holders(bytes_.begin(), bytes_.end());
  std::size_t named = 0;
  for (const Holder& holder : holders) named += holder.second;
  holders.emplace_back("activations and all else",
                       in_use_ - std::min(named, in_use_));
  std::stable_sort(
      holders.begin(), holders.end(),
      [](const Holder& a, const Holder& b) { return a.second > b.second; });
  return absl::StrJoin(holders, ", ", [](std::string* out, const Holder& h) {
    absl::StrAppend(out, h.first, " ", base::FormatBytes(h.second));
  });
}

}  // namespace troupe::actors
