#include "troupe/internal/gather_numbers.h"

#include <algorithm>

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe {

absl::StatusOr<std::vector<std::int64_t>> GatherNumbers(
    Rank& rank, Group& group, absl::Span<const std::int64_t> own) {
  nn::Kernels& kernels = rank.kernels();
  const auto count = static_cast<std::int64_t>(own.size());
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor numbers,
      Tensor::Create({count}, DType::kI64, nn::HostAllocator(kernels)));
  std::copy(own.begin(), own.end(), numbers.data<std::int64_t>());
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor sent,
      nn::CopyToDevice(kernels, nn::Queue::kCompute, numbers));
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor received,
      Tensor::Create({group.size(), count}, DType::kI64, kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(
      rank.strand().Run(group.comm(), comm::AllGather(sent, received)));
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor all, nn::CopyToHost(kernels, nn::Queue::kCompute, received));
  TROUPE_RETURN_IF_ERROR(
      nn::Synchronize(kernels, nn::Record(kernels, nn::Queue::kCompute)));
  const absl::Span<const std::int64_t> values = all.span<std::int64_t>();
  return std::vector<std::int64_t>(values.begin(), values.end());
}

}  // namespace troupe
