// Hashes what all replicas of a stage must have in common, bucket by bucket:
// parameters and optimizer states. Equal replicas have equal hashes, if their
// devices are of one kind.
//
//   ReplicaHash hash(parts);
//   TROUPE_ASSIGN_OR_RETURN(const std::optional<base::Event> copied,
//                           hash.Advance());
//   // While `copied` is set, Advance() is called again once it has completed.
//   hash.buckets();                   // of chunk 0, then of chunk 1, ...
//
// Memory of a device is copied to the host, a bucket's tensor at a time, in its
// queue kReadBack. No step may run meanwhile.
//
// Cost: it reads each byte once, from host memory at some 10 GB/s.
// Errors: kResourceExhausted if there is no host memory for a copy.
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_REPLICA_HASH_H_
#define ACTORS_ENGINE_REPLICA_HASH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/engine/engine_parts.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class ReplicaHash {
 public:
  // Work that kReadBack is given later reads the state to be hashed.
  explicit ReplicaHash(const EngineParts& parts);

  // Hashes what has been copied, and starts the next copy: returns its event,
  // after which to call again. Null: all is hashed.
  absl::StatusOr<std::optional<base::Event>> Advance();

  // Returns a hash for each bucket, in the order of the rank's chunks.
  const std::vector<std::uint64_t>& buckets() const { return buckets_; }

 private:
  struct Piece {
    std::size_t bucket;
    nn::Tensor tensor;
  };

  void Add(std::size_t bucket, const nn::Tensor& host);

  nn::Kernels& kernels_;
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;  // index in pieces_
  nn::Tensor copy_;       // copy of the piece before; undefined: none
  std::vector<std::uint64_t> buckets_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_REPLICA_HASH_H_
