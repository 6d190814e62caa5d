#include "nn/arena/released_values.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

Parameter OnesOf(const std::string& name, std::int64_t elems) {
  Parameter p;
  p.name = name;
  p.shape = {elems};
  p.init = Initializer::Constant(1);
  return p;
}

// Returns the number of bytes of memory that pages of `elems` take.
std::int64_t ResidentBytes(const Tensor& elems) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<std::uintptr_t>(elems.raw());
  const std::uintptr_t first = begin / page * page;
  const std::size_t bytes = begin + elems.bytes() - first;
  std::vector<unsigned char> in_memory((bytes + page - 1) / page);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), bytes, in_memory.data()),
            0);
  return page * std::count_if(in_memory.begin(), in_memory.end(),
                              [](unsigned char c) { return (c & 1) != 0; });
}

// An arena of two buckets, of which owner 1 of 4 has slices.
struct ReleasingArena {
  explicit ReleasingArena(bool poisons) {
    ParameterArena::Options options;
    options.pad_elems = 64;
    options.owner = 1;
    options.owners = 4;
    arena = *ParameterArena::Create({{&a}, {&b}}, options, allocator);
    EXPECT_TRUE(arena->Initialize(/*seed=*/1).ok());
    values = std::make_unique<ReleasedValues>(*arena, poisons);
  }

  CachingAllocator allocator;
  Parameter a = OnesOf("a", 1 << 20), b = OnesOf("b", 1 << 18);
  std::unique_ptr<ParameterArena> arena;
  std::unique_ptr<ReleasedValues> values;
};

TEST(ReleasedValues, TakeNoMemory) {
  ReleasingArena made(/*poisons=*/false);
  ParameterArena& arena = *made.arena;
  const Tensor handle = made.a.value;
  const void* const at = handle.raw();
  const Tensor values = arena.BucketValues(0);
  EXPECT_EQ(ResidentBytes(values), 4 << 20);
  made.values->Release(0);
  EXPECT_TRUE(made.values->Has(0));
  EXPECT_FALSE(made.values->Has(1));
  // The owned slice, and what lies on its pages.
  EXPECT_LE(ResidentBytes(values), (1 << 20) + (1 << 14));
  const ArenaRange owned = arena.Owned(0);
  EXPECT_EQ(ValuesOf(arena.View(arena.values(), owned)),
            std::vector<double>(owned.size(), 1.0));
  // The bucket beside it is untouched.
  EXPECT_EQ(ValuesOf(made.b.value),
            std::vector<double>(made.b.shape.numel(), 1.0));
  made.values->Hold(0);
  EXPECT_FALSE(made.values->Has(0));
  std::fill_n(values.data<float>(), values.numel(), 2.0f);
  EXPECT_EQ(handle.raw(), at);
  EXPECT_EQ(ValuesOf(handle), std::vector<double>(handle.numel(), 2.0));
}

TEST(ReleasedValues, ReadAsNaNWherePoisoned) {
  ReleasingArena made(/*poisons=*/true);
  made.values->Release(1);
  const std::vector<double> values = ValuesOf(made.b.value);
  const std::int64_t begin = made.arena->range(1).begin;
  const ArenaRange owned = made.arena->Owned(1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t element = begin + static_cast<std::int64_t>(i);
    const bool own = element >= owned.begin && element < owned.end;
    ASSERT_EQ(std::isnan(values[i]), !own) << i;
  }
}

// Returns whether every byte of `elems` is `expected`.
bool AllBytesAre(const Tensor& elems, unsigned char expected) {
  const auto* const begin = static_cast<const unsigned char*>(elems.raw());
  return std::all_of(begin, begin + elems.bytes(),
                     [&](unsigned char c) { return c == expected; });
}

// Owner 0 of 2 has 8 MiB of each of two buckets; the other 8 MiB contain three
// blocks at least.
TEST(ReleasedValues, GiveTheirPagesToTheNextBucket) {
  constexpr std::int64_t kElems = 4 << 20;
  CachingAllocator allocator;
  Parameter a = OnesOf("a", kElems), b = OnesOf("b", kElems);
  ParameterArena::Options options;
  options.pad_elems = 64;
  options.owners = 2;
  const auto arena = *ParameterArena::Create({{&a}, {&b}}, options, allocator);
  ASSERT_TRUE(arena->Initialize(/*seed=*/1).ok());
  ReleasedValues values(*arena, /*poisons=*/false);
  const Tensor of_a = arena->values().FlatView(kElems / 2, {kElems / 2});
  const Tensor of_b = arena->values().FlatView(kElems * 3 / 2, {kElems / 2});
  const Tensor own_b = arena->values().FlatView(kElems, {kElems / 2});
  // Nothing is kept of the values with which an arena begins.
  values.Release(0);
  values.Release(1);
  values.Hold(1);
  EXPECT_EQ(ResidentBytes(of_b), 0);
  values.Release(1);
  values.Hold(0);
  std::memset(of_a.raw(), 5, of_a.bytes());
  values.Release(0);
  EXPECT_EQ(ResidentBytes(of_a), 0);
  EXPECT_EQ(ValuesOf(own_b), std::vector<double>(kElems / 2, 1.0));
  values.Hold(1);
  const std::int64_t reused = ResidentBytes(of_b);
  if (reused == 0) GTEST_SKIP() << "Linux before 5.7 cannot move pages";
  // All but the ends of the range, below 256 KiB each.
  EXPECT_GE(reused, (8 << 20) - (1 << 19));
  std::memset(of_b.raw(), 7, of_b.bytes());
  EXPECT_TRUE(AllBytesAre(of_b, 7));
  EXPECT_EQ(ValuesOf(own_b), std::vector<double>(kElems / 2, 1.0));
  // Nor of values that were held beside the usual ones.
  values.Release(1);
  values.FreeReused();
  values.Hold(0);
  EXPECT_EQ(ResidentBytes(of_a), 0);
  EXPECT_TRUE(AllBytesAre(of_a, 0));
}

// Counted from the first Hold(): an arena begins with all values.
TEST(ReleasedValues, CountWhatHadNoMemory) {
  ReleasingArena made(/*poisons=*/false);
  constexpr std::size_t kOfA = 3 << 20,
                        kOfB = 3 << 18;  // bytes of 3 other owners
  for (const int bucket : {0, 1}) made.values->Release(bucket);
  EXPECT_EQ(made.values->never_held_bytes(), kOfA + kOfB);
  made.values->Hold(1);
  made.values->Hold(1);
  EXPECT_EQ(made.values->never_held_bytes(), kOfA);
  made.values->Release(1);
  made.values->Hold(0);
  EXPECT_EQ(made.values->never_held_bytes(), kOfB);
  made.values->Hold(1);
  EXPECT_EQ(made.values->never_held_bytes(), 0);
}

// Replaces pages by shared ones at the same addresses, as comm::SharedMemory
// does, and remembers where.
class Sharer {
 public:
  std::shared_ptr<void> operator()(absl::Span<const absl::Span<char>> pages) {
    for (const absl::Span<char>& part : pages) {
      const std::string before(part.data(), part.size());
      EXPECT_EQ(mmap(part.data(), part.size(), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS, -1, 0),
                part.data());
      std::memcpy(part.data(), before.data(), part.size());
    }
    pages_.assign(pages.begin(), pages.end());
    return std::make_shared<int>(0);
  }
  bool Has(const Tensor& elems) const {
    const char* const begin = static_cast<const char*>(elems.raw());
    return std::any_of(pages_.begin(), pages_.end(), [&](auto part) {
      return begin >= part.data() &&
             begin + elems.bytes() <= part.data() + part.size();
    });
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const absl::Span<char>& part : pages_) sum += part.size();
    return sum;
  }

 private:
  std::vector<absl::Span<char>> pages_;
};

// A bucket of 8 MiB, one of 1 MiB and one of 4 KiB, at no multiples of pages.
TEST(ReleasedValues, ShareTheOwnedSlices) {
  for (const int owner : {0, 1, 2}) {
    SCOPED_TRACE(owner);
    CachingAllocator allocator;
    Parameter a = OnesOf("a", (2 << 20) + 5), b = OnesOf("b", (1 << 18) + 7),
              c = OnesOf("c", 1 << 10);
    ParameterArena::Options options;
    options.pad_elems = 48;
    options.owner = owner;
    options.owners = 3;
    const auto arena =
        *ParameterArena::Create({{&a}, {&b}, {&c}}, options, allocator);
    ASSERT_TRUE(arena->Initialize(/*seed=*/1).ok());
    Sharer sharer;
    ReleasedValues values(*arena, /*poisons=*/false,
                          [&](absl::Span<const absl::Span<char>> pages) {
                            return sharer(pages);
                          });
    EXPECT_TRUE(values.shares_slices());
    const auto owned = [&](int k) {
      return arena->View(arena->values(), arena->Owned(k));
    };
    EXPECT_TRUE(sharer.Has(owned(0)) && sharer.Has(owned(1)));
    EXPECT_FALSE(sharer.Has(owned(2)));
    EXPECT_LT(sharer.bytes(), owned(0).bytes() + owned(1).bytes() + (4 << 12));
    for (int round = 0; round < 3; ++round) {
      for (const int k : {0, 1, 2}) {
        values.Hold(k);
        const Tensor bucket = arena->BucketValues(k);
        const ArenaRange mine = arena->Owned(k), all = arena->range(k);
        float* const data = bucket.data<float>();
        std::fill_n(data, mine.begin - all.begin, 2.0f);
        std::fill(data + (mine.end - all.begin), data + bucket.numel(), 2.0f);
        values.Release(k);
      }
      for (const int k : {0, 1, 2}) {
        const Parameter& parameter = *arena->slots()[k].parameter;
        const std::vector<double> slice = ValuesOf(owned(k));
        const auto ones = std::count(slice.begin(), slice.end(), 1.0);
        const ArenaRange mine = arena->Owned(k);
        const std::int64_t end =
            arena->slots()[k].begin + parameter.shape.numel();
        ASSERT_EQ(ones, std::min(mine.end, end) - mine.begin) << k;
      }
    }
  }
}

TEST(ReleasedValues, OfTheOnlyOwnerAreNotShared) {
  CachingAllocator allocator;
  Parameter a = OnesOf("a", 1 << 20);
  const auto arena = *ParameterArena::Create({{&a}}, {}, allocator);
  Sharer sharer;
  const ReleasedValues values(
      *arena, /*poisons=*/false,
      [&](absl::Span<const absl::Span<char>> pages) { return sharer(pages); });
  EXPECT_FALSE(values.shares_slices());
  EXPECT_EQ(sharer.bytes(), 0u);
}

}  // namespace
}  // namespace troupe::nn
