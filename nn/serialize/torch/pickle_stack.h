// The values, the stack and the memo of the machine that a pickle drives
// (pickle.h).
//
//   PickleStack stack;
//   TROUPE_RETURN_IF_ERROR(stack.Mark());
//   TROUPE_RETURN_IF_ERROR(stack.PushNumber(PickleKind::kInteger, 3));
//   TROUPE_RETURN_IF_ERROR(
//       stack.PushCollected(PickleKind::kTuple, stack.PopToMark()));   // (3,)
//
// Marks begin parts of the stack; only values above the newest mark can be
// popped. Every error is one of ParsePickle().

#ifndef NN_SERIALIZE_TORCH_PICKLE_STACK_H_
#define NN_SERIALIZE_TORCH_PICKLE_STACK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/serialize/torch/pickle.h"

namespace troupe::nn {

// Return the errors for a damaged pickle and for one beyond a limit.
absl::Status PickleDamaged(absl::string_view what);
absl::Status PickleBeyondLimit(absl::string_view what, std::size_t limit);

class PickleStack {
 public:
  using Items = std::vector<PickleId>;

  // Adds a value to the tree alone.
  absl::StatusOr<PickleId> Make(PickleKind kind, Items items = {});

  absl::Status Push(PickleId id);
  absl::Status PushNew(PickleKind kind, Items items = {});
  absl::Status PushNumber(PickleKind kind, std::int64_t number);
  absl::Status PushText(PickleKind kind, absl::string_view text);
  // Pushes a container of these values. Returns their error, if they are one.
  absl::Status PushCollected(PickleKind kind, absl::StatusOr<Items> items);
  // Adds values to the container at the top. Results of calls discard them.
  absl::Status Extend(PickleKind kind, const absl::StatusOr<Items>& items);
  absl::Status Duplicate();

  absl::StatusOr<PickleId> Pop();
  absl::StatusOr<Items> PopSome(std::size_t count);
  // Pops the newest mark and all values above it.
  absl::StatusOr<Items> PopToMark();
  // Pops a value, or a mark if that is at the top.
  absl::Status PopOrMark();
  absl::Status Mark();

  // Stores the value at the top in the memo, or pushes one from there.
  absl::Status Remember(std::uint64_t place);
  absl::Status Recall(std::uint64_t place);
  std::size_t remembered() const { return memo_.size(); }

  PickleTree& tree() { return tree_; }

 private:
  absl::Status CheckHas(std::size_t count) const;
  absl::StatusOr<Items> PopFrom(std::size_t begin);

  Items stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  absl::flat_hash_map<std::uint64_t, PickleId> memo_;
  PickleTree tree_;
};

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_PICKLE_STACK_H_
