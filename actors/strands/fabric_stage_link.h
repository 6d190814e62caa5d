// Sends transfers between stages of a replica in several processes. Each tensor
// of a transfer is a parcel (comm/fabric.h) of its own, whose header has the
// tensor's number, shape and dtype. The receiver reassembles the transfer.
//
//   TakeTransfers(process, computes);             // before any is sent
//   const ProcessLinks& links = process.links;
//   FabricStageLink link(links.fabric, links.roster, rank, stage_ranks,
//                        local);
//   link.Send(/*stage=*/1, std::move(transfer));
//
// A stage of the same process gets the tensors themselves, not copies.
//
// Each sending rank has a channel of its own, since the parcels of a channel
// leave in order. A rank with a GPU sends before a tensor is complete, and a
// tensor of the next step may wait for an update that depends on transfers of
// other ranks of this process: on one channel these would be stuck behind it.
//
// Threads: the same as StageLink.

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
  // `rank` is the sender. `ranks`: rank of each stage of its replica. `local`:
  // the link to the stages in this process.
  FabricStageLink(std::shared_ptr<comm::Fabric> fabric,
                  std::shared_ptr<const Roster> roster, int rank,
                  std::vector<int> ranks, std::shared_ptr<StageLink> local);
  void Send(int stage, Transfer transfer) override;
  // Returns whether the stage is in another process.
  bool NeedsHostMemory(int stage) const override;

 private:
  const std::shared_ptr<comm::Fabric> fabric_;
  const std::shared_ptr<const Roster> roster_;
  const int rank_;
  const std::vector<int> ranks_;  // one per stage
  const std::shared_ptr<StageLink> local_;
};

// Returns the channel on which `rank` sends.
inline std::uint32_t TransferChannel(int rank) {
  return 1 + static_cast<std::uint32_t>(rank);
}

// Makes the fabric pass transfers from other processes to the compute strands.
// `computes`: one strand per rank, null for ranks of other processes.
void TakeTransfers(const ProcessContext& process,
                   const std::vector<ComputeActor>& computes);
// Ends this. The fabric keeps the transfers that arrive later.
void RefuseTransfers(const ProcessContext& process);

// The header of a parcel: the fields of a transfer, the description of one of
// its tensors, and the receiving rank.
struct TransferHeader {
  int rank = 0;
  Transfer transfer;  // without tensors
  int tensors = 0;    // number in the transfer; 0: the parcel is all of it
  int number = 0;     // number of this tensor in the transfer
  // Whether the tensor is defined. A gradient is not, if the loss does not
  // depend on its activation.
  bool has_tensor = false;
  nn::Shape shape;
  nn::DType dtype = nn::DType::kF32;
};
// Returns the header of the parcel with tensor `number` of `transfer`.
std::string EncodeTransfer(int rank, const Transfer& transfer, int number);
// Returns the fields of a header from the wire, which may be malformed.
//   kInvalidArgument: a field is invalid; names it.
absl::StatusOr<TransferHeader> DecodeTransfer(absl::string_view header);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_FABRIC_STAGE_LINK_H_
