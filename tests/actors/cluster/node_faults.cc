#include "tests/actors/cluster/node_faults.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status NodeFiles::Check() const {
  if (!is_gone_()) return absl::OkStatus();
  return absl::UnavailableError("the node has no power");
}

absl::Status NodeFiles::BeforeChange(const char* verb,
                                     const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Check());
  if (left_ < 0 || (left_ > 0 && --left_ >= 0)) return absl::OkStatus();
  // Removing files needs no space.
  if (std::string(verb) == "remove") return absl::OkStatus();
  was_full_ = true;
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot ", verb, " ", path, ": no space left on device"));
}

absl::Status NodeData::Gather(absl::Span<const std::int64_t> indices,
                              std::int64_t epoch, const nn::Tensor& inputs,
                              const nn::Tensor& targets) const {
  if (reads_++ == bad_read_) return absl::DataLossError("a bad sample");
  return good_->Fill(indices, epoch, inputs, targets);
}

}  // namespace troupe::actors
