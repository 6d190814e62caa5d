#include "troupe/internal/model_layout.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fnv_hash.h"
#include "base/status_error.h"
#include "troupe/internal/gather_numbers.h"

namespace troupe {
namespace {

// Hash of names, shapes and dtypes of what the module trains and saves.
std::int64_t LayoutOf(nn::Module& module) {
  base::FnvHash hash;
  const auto add = [&hash](const std::string& name, const Shape& shape,
                           DType dtype) {
    hash.AddBlock(name.data(), name.size());
    for (std::int64_t extent : shape.dims()) {
      hash.Add(static_cast<std::uint64_t>(extent));
    }
    hash.Add(static_cast<std::uint64_t>(dtype));
  };
  for (const nn::Parameter* parameter : module.Parameters()) {
    add(parameter->name, parameter->value.shape(), parameter->value.dtype());
  }
  for (const nn::Buffer* buffer : module.Buffers()) {
    add(buffer->name, buffer->value.shape(), buffer->value.dtype());
  }
  return static_cast<std::int64_t>(hash.value());
}

}  // namespace

void CompareModels(Rank& rank, Group& group, nn::Module& module,
                   const char* call) {
  const actors::CallNote::Scope scope(rank.strand().call(), call, {});
  const std::vector<std::int64_t> hashes =
      base::OrThrow(GatherNumbers(rank, group, {LayoutOf(module)}));
  for (int r = 1; r < group.size(); ++r) {
    if (hashes[r] == hashes[0]) continue;
    throw base::StatusError(absl::InvalidArgumentError(absl::StrCat(
        "rank ", group.ranks()[r], " has another model than rank ",
        group.ranks()[0],
        ": the names, shapes or dtypes of its parameters or buffers differ; "
        "all ranks of a DDP, and all devices of a DataParallel, must make the "
        "same model")));
  }
}

}  // namespace troupe
