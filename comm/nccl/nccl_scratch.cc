#include "comm/nccl/nccl_scratch.h"

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/algorithm/container.h"

namespace troupe::comm::internal {
namespace {

ncclResult_t ResultOf(cudaError_t error) {
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace

absl::StatusOr<std::shared_ptr<GatheredWords>> GatheredWords::Of(
    absl::Span<const Collective> collectives, int size,
    nn::Allocator& host_memory) {
  auto words = std::make_shared<GatheredWords>();
  TROUPE_ASSIGN_OR_RETURN(
      words->mine,
      nn::Tensor::Create({kStartWords}, nn::DType::kI64, host_memory));
  TROUPE_ASSIGN_OR_RETURN(
      words->all,
      nn::Tensor::Create({size, kStartWords}, nn::DType::kI64, host_memory));
  absl::c_copy(WordsOf(collectives), words->mine.span<std::int64_t>().begin());
  return words;
}

NcclScratch::~NcclScratch() {
  if (bytes_ != nullptr) cudaFree(bytes_);
}

ncclResult_t NcclScratch::Allocate(void* stream) {
  const std::size_t bytes = bytes_of_words() + sizeof(int);
  void* memory = nullptr;
  const ncclResult_t made = ResultOf(cudaMalloc(&memory, bytes));
  if (made != ncclSuccess) return made;
  bytes_ = static_cast<char*>(memory);
  return ResultOf(
      cudaMemsetAsync(bytes_, 0, bytes, static_cast<cudaStream_t>(stream)));
}

ncclResult_t NcclScratch::Gather(const GatheredWords& words, ncclComm_t comm,
                                 void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  char* const mine = bytes_ + rank_ * kBytesOfRank;
  const ncclResult_t copied =
      ResultOf(cudaMemcpyAsync(mine, words.mine.device_data(), kBytesOfRank,
                               cudaMemcpyHostToDevice, on));
  if (copied != ncclSuccess) return copied;
  return ncclAllGather(mine, bytes_, kStartWords, ncclInt64, comm, on);
}

ncclResult_t NcclScratch::CopyBack(GatheredWords& words, void* stream) {
  words.copied = true;
  return ResultOf(cudaMemcpyAsync(words.all.device_data(), bytes_,
                                  bytes_of_words(), cudaMemcpyDeviceToHost,
                                  static_cast<cudaStream_t>(stream)));
}

}  // namespace troupe::comm::internal
