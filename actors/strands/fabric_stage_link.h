// The way between stages of a replica that live in several processes: each
// tensor of a transfer travels as a parcel (comm/fabric.h), whose header says
// which one it is and of what shape and dtype. The receiver puts them together.
//
//   TakeTransfers(process, computes);             // before any is sent
//   FabricStageLink link(process.fabric, process.roster, rank, stage_ranks,
//                        local);
//   link.Send(/*stage=*/1, std::move(transfer));
//
// A stage of this very process is handed the tensors themselves, not copies.
//
// Each rank that sends has a channel of its own. Parcels of a channel leave in
// order, and a rank with a GPU sends before the tensor is there: what it sends
// for the next step waits for an update, for which others of this process may
// have still to send.
//
// Threads: as StageLink.

#ifndef ACTORS_STRANDS_FABRIC_STAGE_LINK_H_
#define ACTORS_STRANDS_FABRIC_STAGE_LINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "actors/setup/process_context.h"
#include "actors/setup/roster.h"
#include "actors/strands/stage_link.h"
#include "comm/fabric.h"

namespace troupe::actors {

class FabricStageLink : public StageLink {
 public:
  // `rank` sends. `ranks`: who has each stage of its replica. `local`: the way
  // to those of this process.
  FabricStageLink(std::shared_ptr<comm::Fabric> fabric,
                  std::shared_ptr<const Roster> roster, int rank,
                  std::vector<int> ranks, std::shared_ptr<StageLink> local);
  void Send(int stage, Transfer transfer) override;
  // Where the stage lives in another process.
  bool NeedsHostMemory(int stage) const override;

 private:
  const std::shared_ptr<comm::Fabric> fabric_;
  const std::shared_ptr<const Roster> roster_;
  const int rank_;
  const std::vector<int> ranks_;  // by stage
  const std::shared_ptr<StageLink> local_;
};

// The channel of what `rank` sends.
inline std::uint32_t TransferChannel(int rank) {
  return 1 + static_cast<std::uint32_t>(rank);
}

// From now on, what other processes send to a rank of this one is handed to its
// compute strand; `computes` by rank, null for those that live elsewhere.
void TakeTransfers(const ProcessContext& process,
                   const std::vector<ComputeActor>& computes);
// What comes later stays with the fabric.
void RefuseTransfers(const ProcessContext& process);

// The header of a parcel: all of a transfer but its tensors, what one of these
// is, and the rank that it is for.
struct TransferHeader {
  int rank = 0;
  Transfer transfer;  // without tensors
  int tensors = 0;    // that it has; none: the parcel is the whole transfer
  int number = 0;     // of this one
  // A loss that does not reach a stage's input sends it no gradient.
  bool has_tensor = false;
  nn::Shape shape;
  nn::DType dtype = nn::DType::kF32;
};
// `number`: of the tensor that the parcel brings.
std::string EncodeTransfer(int rank, const Transfer& transfer, int number);
// kInvalidArgument: no such header; names the field. It came over a wire.
absl::StatusOr<TransferHeader> DecodeTransfer(absl::string_view header);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_FABRIC_STAGE_LINK_H_
