#include "actors/dataflow/channel_wire.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Layout of a word on the wire; little-endian, as all machines that Troupe runs
// on.
struct Head {
  std::int64_t number;
  std::int64_t dims[nn::Shape::kMaxRank];
  std::uint8_t kind;
  std::uint8_t has_tensor;
  std::uint8_t dtype;
  std::uint8_t extents;
  std::uint8_t unused[4];
};
static_assert(sizeof(Head) == 64);
static_assert(std::is_trivially_copyable_v<Head>);

absl::Status WrongField(absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("a word of a dataflow with a wrong ", field));
}

}  // namespace

std::string EncodeWord(const WireWord& word, const nn::Tensor& tensor) {
  Head head = {};
  head.number = word.number;
  head.kind = static_cast<std::uint8_t>(word.kind);
  if (tensor.defined()) {
    head.has_tensor = 1;
    head.dtype = static_cast<std::uint8_t>(tensor.dtype());
    head.extents = static_cast<std::uint8_t>(tensor.shape().rank());
    for (int i = 0; i < tensor.shape().rank(); ++i) {
      head.dims[i] = tensor.dim(i);
    }
  }
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head));
}

absl::StatusOr<WireWord> DecodeWord(absl::string_view header) {
  Head head;
  if (header.size() != sizeof(head)) return WrongField("length");
  std::memcpy(&head, header.data(), sizeof(head));
  if (head.kind > static_cast<std::uint8_t>(WireWord::Kind::kBye)) {
    return WrongField("kind");
  }
  if (head.number < 0) return WrongField("number");
  if (head.has_tensor > 1) return WrongField("tensor");
  if (head.dtype > static_cast<std::uint8_t>(nn::DType::kU8)) {
    return WrongField("dtype");
  }
  if (head.extents > nn::Shape::kMaxRank) return WrongField("shape");
  const absl::Span<const std::int64_t> dims(head.dims, head.extents);
  if (!nn::Shape::Fits(dims)) return WrongField("shape");
  WireWord word;
  word.kind = static_cast<WireWord::Kind>(head.kind);
  word.number = head.number;
  word.has_tensor = head.has_tensor != 0;
  word.shape = nn::Shape(dims);
  word.dtype = static_cast<nn::DType>(head.dtype);
  return word;
}

absl::Status SendWord(comm::Fabric& fabric, int to, std::uint32_t channel,
                      const WireWord& word, const nn::Tensor& tensor) {
  if (tensor.defined() && !tensor.host_accessible()) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor.ToString(),
                     " goes to another process, but the host may not "
                     "touch it; copy it to the host first"));
  }
  const absl::StatusOr<comm::Event> sent = fabric.SendParcel(
      to, channel, EncodeWord(word, tensor), tensor, comm::Event());
  if (sent.ok()) sent->OnReady([tensor](const absl::Status&) {});
  return absl::OkStatus();
}

absl::StatusOr<nn::Tensor> WordReceiver::Receive(const comm::Parcel& parcel) {
  TROUPE_ASSIGN_OR_RETURN(const WireWord word, DecodeWord(parcel.header));
  TROUPE_RETURN_IF_ERROR(check_(parcel.from, word));
  const std::size_t bytes = word.has_tensor
                                ? static_cast<std::size_t>(word.shape.numel()) *
                                      nn::SizeOf(word.dtype)
                                : 0;
  if (bytes != parcel.bytes) return WrongField("size");
  if (!word.has_tensor) return nn::Tensor();
  return nn::Tensor::Create(word.shape, word.dtype, memory_);
}

void WordReceiver::Complete(const comm::Parcel& parcel,
                            const nn::Tensor& payload) {
  const absl::StatusOr<WireWord> word = DecodeWord(parcel.header);
  TROUPE_CHECK(word.ok(), "the header was read before");
  take_(parcel.from, *word, payload);
}

}  // namespace troupe::actors
