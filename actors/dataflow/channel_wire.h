// Channels between processes: tensors, their ends and credits, and what the
// conductors tell each other, as parcels (comm/fabric.h).
//
//   const WireWord word = {WireWord::Kind::kTensor, /*number=*/7};
//   const std::string head = EncodeWord(word, tensor);
//   fabric.SendParcel(to, WireChannel(channel), head, tensor, /*after=*/{});
//   // ... in the other process:
//   TROUPE_ASSIGN_OR_RETURN(WireWord came, DecodeWord(parcel.header));
//
// Threads: any.

#ifndef ACTORS_DATAFLOW_CHANNEL_WIRE_H_
#define ACTORS_DATAFLOW_CHANNEL_WIRE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/fabric.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// One word of the protocol, with the shape of the tensor that comes along.
struct WireWord {
  enum class Kind : std::uint8_t {
    kTensor,  // of a channel: number
    kEnd,     // of a channel: number is how many came
    kCredit,  // of a channel
    kAlive,   // of a process: number of handlers that have returned
    kDone,    // of a process
    kFailed,  // of a process: number is the status code, the tensor its text
    kBye,     // of a process
  };
  Kind kind = Kind::kTensor;
  std::int64_t number = 0;
  bool has_tensor = false;
  nn::Shape shape = {};
  nn::DType dtype = nn::DType::kF32;
};

// The parcels of a channel of the dataflow, and those of the conductors.
inline std::uint32_t WireChannel(int channel) {
  return 1 + static_cast<std::uint32_t>(channel);
}
inline constexpr std::uint32_t kConductorChannel = 0;

// The longest text of a failure that travels.
inline constexpr std::size_t kFailureBytesMax = 64 << 10;

std::string EncodeWord(const WireWord& word, const nn::Tensor& tensor);
// kInvalidArgument: no such word; names the field. It came over a wire.
absl::StatusOr<WireWord> DecodeWord(absl::string_view header);

// Sends a word, and keeps `tensor` as long as it is needed. A peer that is lost
// is no error: the fabric tells of it elsewhere.
//   kInvalidArgument: the tensor lies where the host may not touch it.
absl::Status SendWord(comm::Fabric& fabric, int to, std::uint32_t channel,
                      const WireWord& word, const nn::Tensor& tensor);

// Hands on what comes in one parcel channel. `take` is called in the fabric's
// thread and does not block.
class WordReceiver : public comm::ParcelHandler {
 public:
  // An error ends the link to the sender: it broke a rule.
  using Check = std::function<absl::Status(int from, const WireWord& word)>;
  using Take = std::function<void(int from, const WireWord& word,
                                  const nn::Tensor& tensor)>;

  WordReceiver(Check check, Take take)
      : check_(std::move(check)), take_(std::move(take)) {}

  absl::StatusOr<nn::Tensor> Receive(const comm::Parcel& parcel) override;
  void Complete(const comm::Parcel& parcel, const nn::Tensor& payload) override;

 private:
  const Check check_;
  const Take take_;
  nn::CachingAllocator memory_;
};

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_CHANNEL_WIRE_H_
