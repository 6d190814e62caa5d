// The values of an arena's buckets where owners have slices of them, and whole
// buckets only while they use them (ZeRO, stage 3). Meanwhile the memory of the
// other slices goes back to the system, and its addresses stay valid: tensors,
// and what a backward saves of them, go on pointing there.
//
//   ReleasedValues values(*arena, /*poisons=*/kPoisonsReleased);
//   values.Release(/*bucket=*/0);         // all but the owned slice is lost
//   values.Hold(0);                       // it is about to be written
//
// Only whole pages go back, so that values beside them stay; their elements
// read as zeros. Those on other pages read as NaN (all bits are 1). In builds
// with assertions or a sanitizer all do, and no page goes back: so a test finds
// a reader that comes too late.
//
// Blocks of 2 MiB stay with the process until FreeReused(), and Hold() gives
// them to the next bucket, as the system takes longer to clear new pages than a
// gather to fill them. Released and held values together never take more memory
// than Hold() has given at one time.
//
// Cost: a call of the system for each such block. Of other pages some 0.1 us a
// page, and a page fault for each one that is written again.
//
// Threads: any; nobody may use the bucket meanwhile.

#ifndef NN_ARENA_RELEASED_VALUES_H_
#define NN_ARENA_RELEASED_VALUES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "nn/arena/owned_slices.h"
#include "nn/arena/page_pool.h"
#include "nn/arena/parameter_arena.h"

namespace troupe::nn {

// Whether all released elements read as NaN, and no memory is given back.
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
inline constexpr bool kPoisonsReleased = true;
#else
inline constexpr bool kPoisonsReleased = false;
#endif

class ReleasedValues {
 public:
  // The arena outlives this. Its values are memory that the host may access,
  // private to the process.
  explicit ReleasedValues(const ParameterArena& arena,
                          bool poisons = kPoisonsReleased);

  // Declares that the values of a bucket outside of its owned slice are about
  // to be written. They are unspecified until then, if they were released.
  void Hold(int bucket);
  // Gives back the memory of the values of a bucket outside of its owned slice,
  // which nothing may read any more. No effect if they are released already.
  void Release(int bucket);
  // Gives released memory that Hold() would use again back to the system, after
  // more buckets were held than usual.
  void FreeReused() { pool_->Clear(); }
  // Returns whether the bucket's values are released.
  bool Has(int bucket) const { return released_[bucket]; }
  // Returns the bytes outside of owned slices that were released whenever
  // Hold() gave memory to others, but for parts of pages.
  std::size_t never_held_bytes() const { return all_ - most_held_; }

 private:
  std::size_t BytesOf(int bucket) const;
  // Gives the pages of the pool to blocks of the range.
  void HoldRange(const ArenaRange& range);
  void ReleaseRange(const ArenaRange& range);
  // Gives back the memory of whole pages.
  void ReleasePages(char* begin, char* end);

  const ParameterArena& arena_;
  const bool poisons_;
  std::unique_ptr<PagePool> pool_ = std::make_unique<PagePool>();
  std::vector<bool> released_;
  // Bytes outside of owned slices: all, held, and held at most after a Hold().
  std::size_t all_ = 0, held_ = 0, most_held_ = 0;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_RELEASED_VALUES_H_
