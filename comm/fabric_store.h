// A Store over the links of a fabric: what one process sets, all may get. The
// processes of a program exchange NCCL's ids in it.
//
//   FabricStore store(fabric, /*channel=*/2);       // in all processes
//   TROUPE_RETURN_IF_ERROR(store.Set("id/0", "7f3a"));
//   TROUPE_ASSIGN_OR_RETURN(const std::string id,
//                           store.Get("id/0", absl::Seconds(30)));
//
// A value travels to all processes, as a parcel; one that arrives before a
// process has made its store is kept for it. Get() waits in the caller's
// thread, so other threads must drive the fabric meanwhile; the loss of a peer
// does not end it.
//
// Threads: any.

#ifndef COMM_FABRIC_STORE_H_
#define COMM_FABRIC_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm/fabric.h"
#include "comm/memory_store.h"
#include "comm/store.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::comm {

class FabricStore final : public Store {
 public:
  // Limit on the bytes of a key and its value together.
  static constexpr std::size_t kBytesMax = std::size_t{64} << 10;

  // Takes the parcels of `channel`, which nothing else may use.
  FabricStore(std::shared_ptr<Fabric> fabric, std::uint32_t channel);
  ~FabricStore() override;
  FabricStore(const FabricStore&) = delete;
  FabricStore& operator=(const FabricStore&) = delete;

  // Values for a process that is lost are dropped: its loss has a report of
  // its own.
  //   kInvalidArgument: they are larger than kBytesMax.
  absl::Status Set(const std::string& key, std::string value) override;
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override {
    return values_->Get(key, timeout);
  }

 private:
  class Receiver;

  const std::shared_ptr<Fabric> fabric_;
  const std::uint32_t channel_;
  const std::shared_ptr<MemoryStore> values_ = std::make_shared<MemoryStore>();
  nn::CachingAllocator memory_;
};

}  // namespace troupe::comm

#endif  // COMM_FABRIC_STORE_H_
