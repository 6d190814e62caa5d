// Facts about one spanning group that never change, as one of its processes
// sees them: name, number, placement of the ranks, settings.
//
//   const GroupContext context(board, /*number=*/2, std::move(options));
//   const Frame frame = context.FrameOf(FrameType::kLetGo, seq);
//   context.SendToAll(frame, /*text=*/"");
//   return context.Broke(member, "a frame without bytes");
//
// Terms: see layout.h. Threads: any.

#ifndef COMM_SPANNING_GROUP_CONTEXT_H_
#define COMM_SPANNING_GROUP_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "comm/fabric.h"
#include "comm/spanning/frames/switchboard.h"
#include "comm/spanning/frames/wire.h"
#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/node_tree.h"
#include "comm/spanning/plan/transfer_plan.h"

namespace troupe::comm::internal {

class GroupContext {
 public:
  // `number` is the group's endpoint on the board.
  GroupContext(std::shared_ptr<Switchboard> board, std::uint32_t number,
               FabricGroupOptions options);
  GroupContext(const GroupContext&) = delete;  // the tree refers to the layout
  GroupContext& operator=(const GroupContext&) = delete;

  Switchboard& board() const { return *board_; }
  const FabricGroupOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }
  const GroupLayout& layout() const { return layout_; }
  const TransferSettings& settings() const { return settings_; }
  const NodeTree& tree() const { return tree_; }

  // Returns the member that is this process, and its ranks.
  int self() const { return layout_.self(); }
  const std::vector<int>& ranks_here() const {
    return layout_.ranks_of(layout_.self());
  }

  // Returns "process 1 (host a, pid 4711)".
  std::string NameOf(int member) const;
  // Returns the error of a member that broke a rule of the protocol.
  absl::Status Broke(int member, absl::string_view rule) const;

  // Returns a frame of this group.
  Frame FrameOf(FrameType type, std::uint64_t seq) const {
    return MakeFrame(type, number_, seq);
  }
  // Sends a frame to one member, as Switchboard::Send() does.
  void Send(int member, const Frame& frame, const char* payload, SendDone* done,
            bool copy = false) const;
  // Sends a frame with a copy of `text` to all other members.
  void SendToAll(Frame frame, absl::string_view text) const;

 private:
  const std::shared_ptr<Switchboard> board_;
  const std::uint32_t number_;
  const FabricGroupOptions options_;
  const GroupLayout layout_;
  const TransferSettings settings_;
  const NodeTree tree_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_GROUP_CONTEXT_H_
