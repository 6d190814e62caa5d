#include "comm/spanning/group_context.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::comm::internal {
namespace {

std::vector<int> ProcessesOf(const FabricGroupOptions& options,
                             const FabricOptions& fabric) {
  std::vector<int> processes;
  for (int rank : options.ranks) processes.push_back(fabric.process_of[rank]);
  return processes;
}

TransferSettings SettingsOf(const FabricOptions& fabric,
                            const GroupLayout& layout) {
  TransferSettings settings;
  for (int m = 0; m < layout.members(); ++m) {
    const Link* const link = fabric.links[layout.process_of(m)].get();
    const std::size_t of_link = link == nullptr ? 0 : link->eager_bytes();
    settings.eager_bytes.push_back(fabric.eager_bytes.value_or(of_link));
  }
  settings.piece_bytes = fabric.piece_bytes;
  settings.two_step = fabric.two_step;
  return settings;
}

}  // namespace

GroupContext::GroupContext(std::shared_ptr<Switchboard> board,
                           std::uint32_t number, FabricGroupOptions options)
    : board_(std::move(board)),
      number_(number),
      options_(std::move(options)),
      layout_(ProcessesOf(options_, board_->options()), board_->process()),
      settings_(SettingsOf(board_->options(), layout_)),
      tree_(&layout_) {}

std::string GroupContext::NameOf(int member) const {
  return board_->NameOf(layout_.process_of(member));
}

absl::Status GroupContext::Broke(int member, absl::string_view rule) const {
  return absl::InvalidArgumentError(absl::StrCat(
      NameOf(member), " broke the protocol of group ", name(), ": ", rule));
}

void GroupContext::Send(int member, const Frame& frame, const char* payload,
                        SendDone* done, bool copy) const {
  board_->Send(layout_.process_of(member), frame, payload, done, copy);
}

void GroupContext::SendToAll(Frame frame, absl::string_view text) const {
  frame.bytes = static_cast<std::uint32_t>(text.size());
  for (int m = 0; m < layout_.members(); ++m) {
    if (m == self()) continue;
    Send(m, frame, text.data(), /*done=*/nullptr, /*copy=*/true);
  }
}

}  // namespace troupe::comm::internal
