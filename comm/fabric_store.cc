#include "comm/fabric_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/event.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

// A parcel's header is the length of the key; its payload is the key, followed
// by the value.
class FabricStore::Receiver : public ParcelHandler {
 public:
  explicit Receiver(std::shared_ptr<MemoryStore> values)
      : values_(std::move(values)) {}

  absl::StatusOr<nn::Tensor> Receive(const Parcel& parcel) override {
    std::size_t key_bytes = 0;
    if (!absl::SimpleAtoi(parcel.header, &key_bytes) ||
        key_bytes > parcel.bytes || parcel.bytes > kBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a value of the store has ", parcel.bytes, " bytes with a key of \"",
          parcel.header, "\"; run the same build in all processes"));
    }
    return nn::Tensor::Create({static_cast<std::int64_t>(parcel.bytes)},
                              nn::DType::kU8, memory_);
  }

  void Complete(const Parcel& parcel, const nn::Tensor& payload) override {
    std::size_t key_bytes = 0;
    if (!absl::SimpleAtoi(parcel.header, &key_bytes)) return;
    const std::string all(
        reinterpret_cast<const char*>(payload.data<std::uint8_t>()),
        parcel.bytes);
    values_->Set(all.substr(0, key_bytes), all.substr(key_bytes)).IgnoreError();
  }

 private:
  const std::shared_ptr<MemoryStore> values_;
  nn::CachingAllocator memory_;
};

FabricStore::FabricStore(std::shared_ptr<Fabric> fabric, std::uint32_t channel)
    : fabric_(std::move(fabric)), channel_(channel) {
  fabric_->SetParcelHandler(channel_, std::make_shared<Receiver>(values_));
}

FabricStore::~FabricStore() { fabric_->SetParcelHandler(channel_, nullptr); }

absl::Status FabricStore::Set(const std::string& key, std::string value) {
  const std::size_t bytes = key.size() + value.size();
  if (bytes == 0 || bytes > kBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a key of ", key.size(), " bytes and a value of ", value.size(),
        " are none, or too large; set 1 to ", kBytesMax, " bytes together"));
  }
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor payload,
                          nn::Tensor::Create({static_cast<std::int64_t>(bytes)},
                                             nn::DType::kU8, memory_));
  std::uint8_t* const to = payload.data<std::uint8_t>();
  std::copy(key.begin(), key.end(), to);
  std::copy(value.begin(), value.end(), to + key.size());
  TROUPE_RETURN_IF_ERROR(values_->Set(key, std::move(value)));
  for (int p = 0; p < fabric_->processes(); ++p) {
    if (p == fabric_->process()) continue;
    fabric_
        ->SendParcel(p, channel_, absl::StrCat(key.size()), payload,
                     base::Event())
        .status()
        .IgnoreError();
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm
