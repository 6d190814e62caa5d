// Wire format of a dataflow between processes: tensors, ends and credits of
// channels, and the messages of conductors, travel as parcels (comm/fabric.h).
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

// A *word* is one message of the protocol, with the shape of its tensor.
struct WireWord {
  enum class Kind : std::uint8_t {
    kTensor,  // channel: a tensor and its number
    kEnd,     // channel: number is the count of its tensors
    kCredit,  // channel
    kAlive,   // process: number of handlers that have returned
    kDone,    // process
    kFailed,  // process: number is the status code, the tensor its text
    kBye,     // process
  };
  Kind kind = Kind::kTensor;
  std::int64_t number = 0;
  bool has_tensor = false;
  nn::Shape shape = {};
  nn::DType dtype = nn::DType::kF32;
};

// Fabric channels of a dataflow's channels, and of the conductors.
inline std::uint32_t WireChannel(int channel) {
  return 1 + static_cast<std::uint32_t>(channel);
}
inline constexpr std::uint32_t kConductorChannel = 0;

// Limit on the text of a failure; a longer one is cut.
inline constexpr std::size_t kFailureBytesMax = 64 << 10;

std::string EncodeWord(const WireWord& word, const nn::Tensor& tensor);
// Decodes a word, which may come from the network.
//   kInvalidArgument: a field is wrong; names it.
absl::StatusOr<WireWord> DecodeWord(absl::string_view header);

// Sends a word, and keeps `tensor` alive as long as needed. A lost peer is not
// an error here: the fabric reports it by FabricOptions::on_lost.
//   kInvalidArgument: the host may not access the tensor's memory.
absl::Status SendWord(comm::Fabric& fabric, int to, std::uint32_t channel,
                      const WireWord& word, const nn::Tensor& tensor);

// Receives the words of one parcel channel. `take` is called with each, in the
// fabric's thread, and must not block.
class WordReceiver : public comm::ParcelHandler {
 public:
  // Checks a word. An error, for a sender that broke the protocol, ends the
  // link to it.
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
