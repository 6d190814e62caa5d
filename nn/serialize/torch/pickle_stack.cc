#include "nn/serialize/torch/pickle_stack.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

absl::Status CheckPairs(PickleKind kind, std::size_t count) {
  if (kind != PickleKind::kDict || count % 2 == 0) return absl::OkStatus();
  return PickleDamaged("a key has no value");
}

}  // namespace

absl::Status PickleDamaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("is a damaged pickle: ", what));
}

absl::Status PickleBeyondLimit(absl::string_view what, std::size_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("has a pickle of more than ", limit, " ", what));
}

absl::StatusOr<PickleId> PickleStack::Make(PickleKind kind, Items items) {
  if (tree_.values.size() >= kPickleValuesMax) {
    return PickleBeyondLimit("values", kPickleValuesMax);
  }
  PickleValue& value = tree_.values.emplace_back();
  value.kind = kind;
  value.items = std::move(items);
  return static_cast<PickleId>(tree_.values.size() - 1);
}

absl::Status PickleStack::Push(PickleId id) {
  if (stack_.size() >= kPickleStackMax) {
    return PickleBeyondLimit("values on its stack", kPickleStackMax);
  }
  stack_.push_back(id);
  return absl::OkStatus();
}

absl::Status PickleStack::PushNew(PickleKind kind, Items items) {
  TROUPE_ASSIGN_OR_RETURN(const PickleId id, Make(kind, std::move(items)));
  return Push(id);
}

absl::Status PickleStack::PushNumber(PickleKind kind, std::int64_t number) {
  TROUPE_RETURN_IF_ERROR(PushNew(kind));
  tree_.values[stack_.back()].number = number;
  return absl::OkStatus();
}

absl::Status PickleStack::PushText(PickleKind kind, absl::string_view text) {
  TROUPE_RETURN_IF_ERROR(PushNew(kind));
  tree_.values[stack_.back()].text = text;
  return absl::OkStatus();
}

absl::Status PickleStack::PushCollected(PickleKind kind,
                                        absl::StatusOr<Items> items) {
  TROUPE_RETURN_IF_ERROR(items.status());
  TROUPE_RETURN_IF_ERROR(CheckPairs(kind, items->size()));
  return PushNew(kind, *std::move(items));
}

absl::Status PickleStack::Extend(PickleKind kind,
                                 const absl::StatusOr<Items>& items) {
  TROUPE_RETURN_IF_ERROR(items.status());
  TROUPE_RETURN_IF_ERROR(CheckHas(1));
  TROUPE_RETURN_IF_ERROR(CheckPairs(kind, items->size()));
  PickleValue& to = tree_.values[stack_.back()];
  if (to.kind == PickleKind::kCall) return absl::OkStatus();
  if (to.kind != kind) {
    return PickleDamaged("items are added to what is no container");
  }
  to.items.insert(to.items.end(), items->begin(), items->end());
  return absl::OkStatus();
}

absl::Status PickleStack::Duplicate() {
  TROUPE_RETURN_IF_ERROR(CheckHas(1));
  return Push(stack_.back());
}

absl::Status PickleStack::CheckHas(std::size_t count) const {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() >= floor + count) return absl::OkStatus();
  return PickleDamaged("its stack is empty");
}

absl::StatusOr<PickleId> PickleStack::Pop() {
  TROUPE_RETURN_IF_ERROR(CheckHas(1));
  const PickleId id = stack_.back();
  stack_.pop_back();
  return id;
}

absl::StatusOr<PickleStack::Items> PickleStack::PopFrom(std::size_t begin) {
  const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(begin);
  Items items(from, stack_.end());
  stack_.erase(from, stack_.end());
  return items;
}

absl::StatusOr<PickleStack::Items> PickleStack::PopSome(std::size_t count) {
  TROUPE_RETURN_IF_ERROR(CheckHas(count));
  return PopFrom(stack_.size() - count);
}

absl::StatusOr<PickleStack::Items> PickleStack::PopToMark() {
  if (marks_.empty()) return PickleDamaged("a mark is missing");
  const std::size_t begin = marks_.back();
  marks_.pop_back();
  return PopFrom(begin);
}

absl::Status PickleStack::PopOrMark() {
  if (marks_.empty() || stack_.size() != marks_.back()) return Pop().status();
  marks_.pop_back();
  return absl::OkStatus();
}

absl::Status PickleStack::Mark() {
  if (marks_.size() >= kPickleMarksMax) {
    return PickleBeyondLimit("nested marks", kPickleMarksMax);
  }
  marks_.push_back(stack_.size());
  return absl::OkStatus();
}

absl::Status PickleStack::Remember(std::uint64_t place) {
  TROUPE_RETURN_IF_ERROR(CheckHas(1));
  if (memo_.size() >= kPickleValuesMax) {
    return PickleBeyondLimit("values in its memo", kPickleValuesMax);
  }
  memo_[place] = stack_.back();
  return absl::OkStatus();
}

absl::Status PickleStack::Recall(std::uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) return PickleDamaged("its memo lacks a value");
  return Push(found->second);
}

}  // namespace troupe::nn
