#include "actors/engine/replica_hash.h"

#include "base/check.h"
#include "base/xx_hash.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

ReplicaHash::ReplicaHash(const EngineParts& parts) : kernels_(parts.kernels()) {
  for (const auto& chunk : parts.chunks) {
    const ChunkParameters& parameters = chunk->parameters();
    for (int bucket = 0; bucket < parameters.num_buckets(); ++bucket) {
      for (const nn::Tensor& tensor : parameters.StateOf(bucket)) {
        if (tensor.bytes() > 0) pieces_.push_back({buckets_.size(), tensor});
      }
      buckets_.push_back(0);
    }
  }
}

void ReplicaHash::Add(std::size_t bucket, const nn::Tensor& host) {
  buckets_[bucket] =
      base::XxHash64(host.raw(), host.bytes(), /*seed=*/buckets_[bucket]);
}

absl::StatusOr<std::optional<base::Event>> ReplicaHash::Advance() {
  if (copy_.defined()) Add(pieces_[next_ - 1].bucket, copy_);
  copy_ = nn::Tensor();
  while (next_ < pieces_.size()) {
    const Piece& piece = pieces_[next_++];
    if (kernels_.queues() == nullptr) {
      Add(piece.bucket, piece.tensor);
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(
        copy_, nn::CopyToHost(kernels_, nn::Queue::kReadBack, piece.tensor));
    return nn::Record(kernels_, nn::Queue::kReadBack);
  }
  return std::nullopt;
}

}  // namespace troupe::actors
