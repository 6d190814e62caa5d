// The values of an arena's buckets where owners have slices of them, and whole
// buckets only while they use them (ZeRO, stage 3). Meanwhile the memory of the
// other slices goes back to the system, and its addresses stay valid: tensors,
// and what a backward saves of them, go on pointing there.
//
//   ReleasedValues values(*arena);
//   values.Release(/*bucket=*/0);         // all but the owned slice is lost
//   values.Hold(0);                       // it is about to be written
//
// Only whole pages go back, so that values beside them stay; their elements
// read as zeros. Those on other pages read as NaN (all bits are 1). In builds
// with assertions or a sanitizer all do, and no page goes back: so a test finds
// a reader that comes too late.
//
// Blocks of 2 MiB, and of 256 KiB at the ends of slices, stay with the process
// until FreeReused(), and Hold() gives them to the next bucket, as the system
// takes longer to clear new pages than a gather to fill them. Of blocks of
// either size no more stay than Hold() has given at one time.
//
// Processes of a host read each other's slices where they are
// (docs/collectives.md, "By reference"), if the owned slices lie in memory that
// all of them have mapped:
//
//   ReleasedValues readable(*arena, kPoisonsReleased, share);
//
// Pages at the ends of a slice are shared whole, with the values beside it.
// Slices below 4 KiB stay private: they are sent with their announcement.
//
// Cost: a call of the system for each such block. Of other pages some 0.1 us a
// page, and a page fault for each one that is written again.
//
// Threads: any; nobody may use the bucket meanwhile.

#ifndef NN_ARENA_RELEASED_VALUES_H_
#define NN_ARENA_RELEASED_VALUES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
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

// Lets other processes of the host read whole pages of this one's memory, which
// keep their addresses and contents, as long as the result lives
// (comm::SharedMemory::Share). Null: they stay private.
using SharePages =
    std::function<std::shared_ptr<void>(absl::Span<const absl::Span<char>>)>;

class ReleasedValues {
 public:
  // The arena outlives this. Its values are memory that the host may access,
  // private to the process. The owned slices are shared by `share`, unless that
  // is null.
  explicit ReleasedValues(const ParameterArena& arena,
                          bool poisons = kPoisonsReleased,
                          const SharePages& share = nullptr);

  // Declares that the values of a bucket outside of its owned slice are about
  // to be written. They are unspecified until then, if they were released.
  void Hold(int bucket);
  // Gives back the memory of the values of a bucket outside of its owned slice,
  // which nothing may read any more. No effect if they are released already.
  void Release(int bucket);
  // Gives released memory that Hold() would use again back to the system, after
  // more buckets were held than usual.
  void FreeReused() {
    pools_->blocks.Clear();
    pools_->tails.Clear();
  }
  // Returns whether the bucket's values are released.
  bool Has(int bucket) const { return released_[bucket]; }
  // Returns the bytes outside of owned slices that had no memory whenever
  // Hold() gave memory to others, but for parts of pages.
  std::size_t never_held_bytes() const { return all_ - most_held_; }
  // Returns whether other processes can read owned slices.
  bool shares_slices() const { return shared_ != nullptr; }

 private:
  // Memory of released values that Hold() uses again.
  struct Pools {
    PagePool blocks;
    PagePool tails{std::size_t{256} << 10};
    std::size_t bytes() const { return blocks.bytes() + tails.bytes(); }
  };

  std::size_t BytesOf(int bucket) const;
  // Returns the pages of owned slices that may be shared.
  std::vector<absl::Span<char>> PagesOfSlices() const;
  // Gives the pages of the pool to blocks of the range.
  void HoldRange(const ArenaRange& range);
  void ReleaseRange(const ArenaRange& range);
  // Gives back the memory of whole pages, or keeps it.
  void ReleasePages(char* begin, char* end);
  // Calls `each` with every block within [begin, end), in order, and the pool
  // of its size.
  template <typename Each>
  void ForEachBlock(char* begin, char* end, const Each& each);

  const ParameterArena& arena_;
  const bool poisons_;
  std::unique_ptr<Pools> pools_ = std::make_unique<Pools>();
  std::vector<bool> released_;
  std::shared_ptr<void> shared_;  // null: owned slices are private
  // Bytes outside of owned slices: all, held, and held or kept in the pools at
  // most after a Hold().
  std::size_t all_ = 0, held_ = 0, most_held_ = 0;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_RELEASED_VALUES_H_
