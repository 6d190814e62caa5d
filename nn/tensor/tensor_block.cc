#include "nn/tensor/tensor_block.h"

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "nn/tensor/storage.h"

namespace troupe::nn {
namespace {

// A piece of a block, which it keeps alive.
struct Part final : public Storage {
  Part(StorageOwner* owner, Tensor whole, std::size_t offset, std::size_t bytes)
      : Storage(owner, static_cast<char*>(whole.device_data()) + offset, bytes,
                whole.host_accessible()),
        block(std::move(whole)) {}

  const Tensor block;
};

// Deletes a piece when its last reference is dropped.
class PartOwner final : public StorageOwner {
 public:
  static PartOwner* Get() {
    static PartOwner owner;
    return &owner;
  }
  void Recycle(Storage* storage) override {
    delete static_cast<Part*>(storage);
  }
};

std::size_t RoundedUp(std::size_t bytes) {
  constexpr std::size_t kTo = TensorBlock::kPartAlignmentBytes;
  return (bytes + kTo - 1) / kTo * kTo;
}

// Hands out the pieces of one block, one after the other.
class Parts final : public Allocator {
 public:
  explicit Parts(Tensor whole) : whole_(std::move(whole)) {}

  Device device() const override { return whole_.device(); }
  absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) override {
    TROUPE_CHECK(offset_ + bytes <= whole_.bytes(), "BytesOf() counts all");
    Part* const part = new Part(PartOwner::Get(), whole_, offset_, bytes);
    offset_ += RoundedUp(bytes);
    return StoragePtr(part->HandOut(bytes));
  }
  void ReleaseCached() override {}
  Stats stats() const override { return {}; }

 private:
  const Tensor whole_;
  std::size_t offset_ = 0;
};

}  // namespace

std::size_t TensorBlock::BytesOf(const std::vector<Tensor>& like) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : like) bytes += RoundedUp(tensor.bytes());
  return bytes;
}

absl::StatusOr<TensorBlock> TensorBlock::Create(const std::vector<Tensor>& like,
                                                Allocator& allocator) {
  TensorBlock block;
  TROUPE_ASSIGN_OR_RETURN(
      block.bytes_, Tensor::Create({static_cast<std::int64_t>(BytesOf(like))},
                                   DType::kU8, allocator));
  Parts parts(block.bytes_);
  for (const Tensor& tensor : like) {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor part, Tensor::Create(tensor.shape(), tensor.dtype(), parts));
    block.tensors_.push_back(std::move(part));
  }
  return block;
}

}  // namespace troupe::nn
