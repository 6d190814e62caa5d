// A handler of parcels that keeps all headers and payloads that arrive.
//
//   const auto shelf = std::make_shared<Shelf>();
//   fabric.SetParcelHandler(/*channel=*/3, shelf);
//   // ... drives the fabric ...
//   shelf->headers;                              // "one", "two"

#ifndef TESTS_COMM_SHELF_H_
#define TESTS_COMM_SHELF_H_

#include <cstddef>
#include <string>
#include <vector>

#include "comm/fabric.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::comm {

class Shelf final : public ParcelHandler {
 public:
  // Limit on the payload of one parcel: a size read from the wire is not
  // trusted.
  static constexpr std::size_t kBytesMax = 1 << 20;

  absl::StatusOr<nn::Tensor> Receive(const Parcel& parcel) override {
    if (parcel.header == "refused" || parcel.bytes > kBytesMax) {
      return absl::NotFoundError("no room");
    }
    return nn::Tensor::Empty({static_cast<std::int64_t>(parcel.bytes)},
                             nn::DType::kU8, allocator_);
  }
  void Complete(const Parcel& parcel, const nn::Tensor& payload) override {
    headers.push_back(parcel.header);
    payloads.push_back(payload);
  }

  std::vector<std::string> headers;
  std::vector<nn::Tensor> payloads;

 private:
  nn::CachingAllocator allocator_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_SHELF_H_
