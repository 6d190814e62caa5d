// The elements of an arena whose states one of several owners has: of each
// bucket one of equal slices, whole parameters or not; and all that lies behind
// the buckets. States have these elements without gaps.
//
//   OwnedSlices owned(/*owner=*/1, /*owners=*/4, /*buckets=*/{{0, 64}},
//                     /*elems=*/70);
//   owned.Of(/*bucket=*/0);             // [16, 32)
//   owned.All();                        // [16, 32), [64, 70)
//   owned.elems();                      // 22, the length of a state
//   owned.PlaceOf(65);                  // 17, in a state
//
// A state of the only owner has all elements at their own places.
//
// Threads: const calls from any thread.

#ifndef NN_ARENA_OWNED_SLICES_H_
#define NN_ARENA_OWNED_SLICES_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {

struct ArenaRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

class OwnedSlices {
 public:
  OwnedSlices() = default;
  // The buckets follow each other from element 0 on, and `owners` divides the
  // length of each. The arena has `elems` elements.
  OwnedSlices(int owner, int owners, std::vector<ArenaRange> buckets,
              std::int64_t elems)
      : owner_(owner),
        owners_(owners),
        buckets_(std::move(buckets)),
        buckets_end_(buckets_.empty() ? 0 : buckets_.back().end),
        arena_elems_(elems) {}

  //   kInvalidArgument: buckets padded to `pad_elems` elements have no equal
  //     slices for all owners, or there is no owner of that number.
  static absl::Status Check(int owner, int owners, std::int64_t pad_elems) {
    if (owner >= 0 && owner < owners && pad_elems % owners == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "ParameterArena: owner ", owner, " of ", owners,
        " cannot have an equal slice of buckets padded to ", pad_elems,
        " elements; number owners from 0, and let them divide pad_elems"));
  }

  int owner() const { return owner_; }
  int owners() const { return owners_; }
  // Returns the length of a state.
  std::int64_t elems() const {
    return buckets_end_ / owners_ + (arena_elems_ - buckets_end_);
  }

  // Returns the slice of a bucket that belongs to this owner, or to another.
  ArenaRange Of(int bucket) const { return Slice(bucket, owner_); }
  ArenaRange Slice(int bucket, int owner) const {
    const std::int64_t elems = buckets_[bucket].size() / owners_;
    const std::int64_t begin = buckets_[bucket].begin + owner * elems;
    return {begin, begin + elems};
  }
  // Returns all ranges that this owner has, in ascending order; the last one is
  // what lies behind the buckets, unless there is one owner.
  std::vector<ArenaRange> All() const {
    if (owners_ == 1) return {{0, arena_elems_}};
    std::vector<ArenaRange> owned;
    for (int bucket = 0; bucket < static_cast<int>(buckets_.size()); ++bucket) {
      owned.push_back(Of(bucket));
    }
    owned.push_back({buckets_end_, arena_elems_});
    return owned;
  }
  // Returns the place in a state of an element that this owner has.
  std::int64_t PlaceOf(std::int64_t element) const {
    if (owners_ == 1) return element;
    if (element >= buckets_end_) {
      return buckets_end_ / owners_ + (element - buckets_end_);
    }
    const auto bucket = std::upper_bound(
        buckets_.begin(), buckets_.end(), element,
        [](std::int64_t i, const ArenaRange& range) { return i < range.end; });
    const ArenaRange owned = Of(static_cast<int>(bucket - buckets_.begin()));
    TROUPE_CHECK(element >= owned.begin && element <= owned.end,
                 "the element is in the owned slice of its bucket");
    return bucket->begin / owners_ + (element - owned.begin);
  }

 private:
  int owner_ = 0, owners_ = 1;
  std::vector<ArenaRange> buckets_;
  std::int64_t buckets_end_ = 0, arena_elems_ = 0;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_OWNED_SLICES_H_
