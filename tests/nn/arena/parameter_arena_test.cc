#include "nn/arena/parameter_arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/random/philox.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

Parameter Make(const std::string& name, const Shape& shape,
               DType dtype = DType::kF32) {
  Parameter p;
  p.name = name;
  p.shape = shape;
  p.dtype = dtype;
  p.init = Initializer::Constant(1);
  return p;
}

// Returns one line per bucket: "[begin, end) name@begin ...", in elements.
std::string Layout(const ParameterArena& arena) {
  std::string text;
  for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
    const ArenaRange& range = arena.range(bucket);
    absl::StrAppend(&text, "[", range.begin, ", ", range.end, ")");
    for (const ArenaSlot& slot : arena.slots()) {
      if (slot.bucket != bucket) continue;
      absl::StrAppend(&text, " ", slot.parameter->name, "@", slot.begin);
    }
    text += "\n";
  }
  return text;
}

TEST(ParameterArena, LaysParametersOutInBucketOrder) {
  CachingAllocator allocator;
  Parameter a = Make("a", {10}), b = Make("b", {3, 7}), c = Make("c", {16});
  auto arena = *ParameterArena::Create({{&c, &b}, {}, {&a}}, {32}, allocator);
  EXPECT_EQ(Layout(*arena),
            "[0, 64) c@0 b@16\n"
            "[64, 64)\n"
            "[64, 96) a@64\n");
  EXPECT_EQ(c.index, 0);
  EXPECT_EQ(a.index, 2);
  EXPECT_EQ(arena->values().numel(), 96);
  EXPECT_EQ(arena->grads().numel(), 96);
  EXPECT_EQ(arena->BucketGrads(2).shape(), (Shape{32}));
}

TEST(ParameterArena, FrozenParametersLieBehindAllBuckets) {
  CachingAllocator allocator;
  Parameter a = Make("a", {10}), b = Make("b", {3, 7}), c = Make("c", {16});
  Parameter d = Make("d", {5});
  b.requires_grad = d.requires_grad = false;
  auto arena = *ParameterArena::Create({{&b, &c}, {&d}, {&a}}, {32}, allocator);
  EXPECT_EQ(Layout(*arena),
            "[0, 32) c@0\n"
            "[32, 32)\n"
            "[32, 64) a@32\n");
  ASSERT_EQ(arena->slots().size(), 4u);
  for (int i : {2, 3}) {
    const ArenaSlot& slot = arena->slots()[i];
    EXPECT_EQ(slot.parameter, i == 2 ? &b : &d);
    EXPECT_EQ(slot.parameter->index, i);
    EXPECT_EQ(slot.bucket, kNoBucket);
    EXPECT_EQ(slot.begin, i == 2 ? 64 : 96);
  }
  EXPECT_TRUE(arena->Initialize(1).ok());
  EXPECT_EQ(ValuesOf(b.value), std::vector<double>(21, 1.0));
  EXPECT_EQ(ValuesOf(d.value), std::vector<double>(5, 1.0));
  const Tensor state = *arena->AddState("momentum_buffer");
  EXPECT_EQ(arena->View(state, arena->slots()[3]).shape(), (Shape{5}));
}

TEST(ParameterArena, FrozenParametersNeedNoBucket) {
  CachingAllocator allocator;
  Parameter a = Make("a", {10}), b = Make("b", {3});
  b.requires_grad = false;
  ParameterArena::Options options;
  options.frozen = {&b};
  auto arena = *ParameterArena::Create({{&a}}, options, allocator);
  EXPECT_EQ(Layout(*arena), "[0, 16) a@0\n");
  EXPECT_EQ(arena->slots()[1].begin, 16);
  EXPECT_EQ(arena->slots()[1].bucket, kNoBucket);
  EXPECT_FALSE(b.grad.defined());
  EXPECT_EQ(arena->grads().numel(), 16);
  b.requires_grad = true;
  EXPECT_EQ(ParameterArena::Create({{&a}}, options, allocator).status(),
            absl::InvalidArgumentError(
                "ParameterArena: b is trained, so it must be in a bucket"));
}

TEST(ParameterArena, AlignsEveryParameterInEveryDType) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    CachingAllocator allocator;
    std::vector<Parameter> parameters;
    for (std::int64_t n : {1, 2, 31, 32, 33, 100}) {
      parameters.push_back(Make(absl::StrCat("p", n), {n}, dtype));
    }
    std::vector<std::vector<Parameter*>> buckets(2);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      buckets[i / 3].push_back(&parameters[i]);
    }
    auto arena = *ParameterArena::Create(buckets, {96}, allocator);
    for (const Parameter& p : parameters) {
      for (const Tensor& view : {p.value, p.grad}) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.raw()) % 64, 0u);
        EXPECT_EQ(view.shape(), p.shape);
        EXPECT_EQ(view.dtype(), dtype);
      }
    }
    for (int bucket = 0; bucket < 2; ++bucket) {
      EXPECT_EQ(arena->range(bucket).size() % 96, 0);
    }
  }
}

TEST(ParameterArena, ParametersAreViewsAndPaddingIsZero) {
  CachingAllocator allocator;
  // The allocator's cache returns a used block, full of other numbers.
  std::memset((*allocator.Allocate(4 * 48))->data(), 0xff, 4 * 48);
  Parameter a = Make("a", {10}), b = Make("b", {20});
  auto arena = *ParameterArena::Create({{&a, &b}}, {16}, allocator);
  EXPECT_TRUE(arena->Initialize(1).ok());
  std::vector<double> want(48, 0.0);
  for (int i = 0; i < 10; ++i) want[i] = 1;
  for (int i = 16; i < 36; ++i) want[i] = 1;
  EXPECT_EQ(ValuesOf(arena->values()), want);
  EXPECT_EQ(ValuesOf(arena->grads()), std::vector<double>(48, 0.0));
  b.grad.data<float>()[3] = 5;
  EXPECT_EQ(arena->BucketGrads(0).data<float>()[19], 5);
}

TEST(ParameterArena, StatesAreParallelAndKept) {
  CachingAllocator allocator;
  Parameter a = Make("a", {10}), b = Make("b", {20});
  auto arena = *ParameterArena::Create({{&a}, {&b}}, {16}, allocator);
  Tensor momentum = *arena->AddState("momentum_buffer");
  ASSERT_EQ(arena->states().size(), 1u);
  EXPECT_EQ(arena->states()[0].first, "momentum_buffer");
  EXPECT_EQ(ValuesOf(momentum), std::vector<double>(48, 0.0));
  arena->View(momentum, arena->slots()[1]).data<float>()[0] = 3;
  EXPECT_EQ(arena->View(momentum, 1).data<float>()[0], 3);
  EXPECT_EQ(arena->View(momentum, arena->slots()[1]).shape(), (Shape{20}));
}

TEST(ParameterArena, ZeroesOnlyWhatNothingHasWritten) {
  CachingAllocator allocator;
  Parameter a = Make("a", {2}), b = Make("b", {2}), c = Make("c", {2});
  auto arena = *ParameterArena::Create({{&a, &b}, {&c}}, {16}, allocator);
  for (Parameter* p : {&a, &b, &c}) {
    for (float& value : p->grad.span<float>()) value = 7;
    p->grad_written = true;
  }
  arena->BeginStep();
  EXPECT_FALSE(a.grad_written || b.grad_written || c.grad_written);
  EXPECT_EQ(a.grad.data<float>()[0], 7) << "touches no memory";
  b.grad_written = true;
  EXPECT_TRUE(arena->ZeroUnwritten(0).ok());
  EXPECT_EQ(ValuesOf(a.grad), (std::vector<double>{0, 0}));
  EXPECT_EQ(ValuesOf(b.grad), (std::vector<double>{7, 7}));
  EXPECT_EQ(ValuesOf(c.grad), (std::vector<double>{7, 7})) << "another bucket";
  EXPECT_TRUE(a.grad_written);
}

ParameterArena::Options LendingGrads() {
  ParameterArena::Options options;
  options.keep_grads = false;
  return options;
}

TEST(ParameterArena, GradientsHaveMemoryWhileTheyAreHeld) {
  CachingAllocator allocator;
  Parameter a = Make("a", {10}), b = Make("b", {20}), c = Make("c", {30});
  auto arena =
      *ParameterArena::Create({{&a, &b}, {&c}}, LendingGrads(), allocator);
  EXPECT_FALSE(arena->grads().defined());
  EXPECT_FALSE(a.grad.defined() || b.grad.defined() || c.grad.defined());
  EXPECT_TRUE(arena->HoldGrads(0).ok());
  EXPECT_EQ(a.grad.shape(), a.shape);
  EXPECT_EQ(b.grad.shape(), b.shape);
  EXPECT_FALSE(c.grad.defined()) << "another bucket";
  b.grad.data<float>()[3] = 5;
  EXPECT_TRUE(arena->HoldGrads(0).ok());  // already held
  EXPECT_EQ(arena->BucketGrads(0).data<float>()[19], 5);
  arena->ReleaseGrads(0);
  EXPECT_FALSE(a.grad.defined() || b.grad.defined());
  arena->ReleaseGrads(0);  // no longer held
}

TEST(ParameterArena, BucketsHoldTheSameMemoryOneAfterAnother) {
  CachingAllocator allocator;
  Parameter a = Make("a", {100}), b = Make("b", {60}), c = Make("c", {90});
  auto arena =
      *ParameterArena::Create({{&a}, {&b}, {&c}}, LendingGrads(), allocator);
  const auto allocations = [&allocator] {
    return allocator.stats().allocations;
  };
  const auto before = allocations();
  for (int step = 0; step < 3; ++step) {
    for (int bucket = 0; bucket < 3; ++bucket) {
      EXPECT_TRUE(arena->HoldGrads(bucket).ok());
      arena->ReleaseGrads(bucket);
    }
  }
  EXPECT_EQ(allocations(), before) << "the largest bucket's was there";
  // Each bucket allocates memory of its own size; later steps allocate nothing.
  for (int step = 0; step < 3; ++step) {
    for (int bucket : {0, 1, 2}) EXPECT_TRUE(arena->HoldGrads(bucket).ok());
    for (Parameter* p : {&a, &b, &c}) {
      for (float& value : p->grad.span<float>()) value = p->grad.numel();
    }
    EXPECT_EQ(ValuesOf(b.grad), std::vector<double>(60, 60.0));
    EXPECT_EQ(ValuesOf(c.grad), std::vector<double>(90, 90.0));
    for (int bucket : {2, 0, 1}) arena->ReleaseGrads(bucket);
  }
  EXPECT_EQ(allocations(), before + 2);
}

TEST(ParameterArena, ASmallBucketLeavesLargeMemoryToLargeOnes) {
  CachingAllocator allocator;
  Parameter small = Make("small", {1000}), large = Make("large", {100'000});
  auto arena =
      *ParameterArena::Create({{&small}, {&large}}, LendingGrads(), allocator);
  const std::size_t before = allocator.stats().bytes_in_use;
  EXPECT_TRUE(arena->HoldGrads(0).ok());
  EXPECT_TRUE(arena->HoldGrads(1).ok());
  EXPECT_LT(allocator.stats().bytes_in_use, before + 2 * 4 * 1000);
}

TEST(ParameterArena, WhatIsHeldHasZerosBetweenItsParameters) {
  CachingAllocator allocator;
  Parameter a = Make("a", {112}), b = Make("b", {20}), c = Make("c", {90});
  auto arena =
      *ParameterArena::Create({{&a}, {&b, &c}}, LendingGrads(), allocator);
  EXPECT_TRUE(arena->HoldGrads(0).ok());
  for (float& value : a.grad.span<float>()) value = 7;
  arena->ReleaseGrads(0);
  EXPECT_TRUE(arena->ZeroUnwritten(1).ok());  // calls HoldGrads(1)
  EXPECT_EQ(ValuesOf(arena->BucketGrads(1)), std::vector<double>(128, 0.0));
  arena->ReleaseGrads(1);
  EXPECT_TRUE(arena->HoldGrads(0).ok());
  for (float& value : a.grad.span<float>()) value = 7;
  arena->ReleaseGrads(0);
  arena->BeginStep();
  EXPECT_TRUE(arena->HoldGrads(1).ok());
  for (float& value : b.grad.span<float>()) value = 1;
  b.grad_written = true;
  EXPECT_TRUE(arena->ZeroUnwritten(1).ok());
  std::vector<double> want(128, 0.0);
  std::fill(want.begin(), want.begin() + 20, 1.0);
  EXPECT_EQ(ValuesOf(arena->BucketGrads(1)), want);
}

TEST(ParameterArena, RefusesMixedDTypesByName) {
  CachingAllocator allocator;
  Parameter a = Make("0.weight", {2}), b = Make("1.weight", {2}, DType::kF64);
  auto arena = ParameterArena::Create({{&a}, {&b}}, {16}, allocator);
  EXPECT_EQ(arena.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      arena.status().message(),
      "parameters of one arena must have one dtype: 0.weight is f32, 1.weight "
      "is f64");
}

TEST(ParameterArena, RefusesAPaddingThatIsNone) {
  CachingAllocator allocator;
  const auto arena = ParameterArena::Create({}, {/*pad_elems=*/0}, allocator);
  EXPECT_EQ(arena.status(),
            absl::InvalidArgumentError(
                "ParameterArena: pad_elems must be at least 1, not 0"));
}

// The sizes give several runs of one parameter.
TEST(ParameterArena, ThreadsDoNotChangeTheInitialValues) {
  CachingAllocator allocator;
  std::vector<double> one;
  for (int threads : {1, 2, 5}) {
    Parameter a = Make("a", {2'200'001}), b = Make("b", {300'000});
    a.init = Initializer::Uniform(0.5);
    b.init = Initializer::Normal(0, 1);
    ParameterArena::Options options;
    options.threads = threads;
    auto arena = *ParameterArena::Create({{&a}, {&b}}, options, allocator);
    EXPECT_TRUE(arena->Initialize(1).ok());
    EXPECT_EQ(ValuesOf(arena->grads()),
              std::vector<double>(arena->grads().numel(), 0));
    if (threads == 1) one = ValuesOf(arena->values());
    EXPECT_EQ(ValuesOf(arena->values()), one) << threads << " threads";
  }
  // The last uniform draw is the stream's.
  RandomStream stream(RandomKey(1, Purpose::kInitialize),
                      {0, 0, HashName("a")});
  std::uint32_t last = 0;
  for (int i = 0; i < 2'200'001; ++i) last = stream.Bits32();
  EXPECT_EQ(one[2'200'000],
            static_cast<float>(-0.5 + 0x1p-24 * static_cast<int>(last >> 8)));
}

// Draws a parameter by itself, one element after the other.
TEST(ParameterArena, CutsOfNormalValuesDoNotChangeThem) {
  CachingAllocator allocator;
  Parameter a = Make("a", {1'100'000});
  a.init = Initializer::Normal(1, 2);
  auto arena = *ParameterArena::Create({{&a}}, {}, allocator);
  EXPECT_TRUE(arena->Initialize(1).ok());
  RandomStream stream(RandomKey(1, Purpose::kInitialize),
                      {0, 0, HashName("a")});
  for (std::int64_t i = 0; i < a.shape.numel(); ++i) {
    ASSERT_EQ(a.value.data<float>()[i],
              static_cast<float>(1 + 2 * stream.Normal()))
        << i;
  }
}

// Returns the initial values of `parameter`.
std::vector<double> InitialValues(Parameter& parameter) {
  CachingAllocator allocator;
  auto arena = *ParameterArena::Create({{&parameter}}, {}, allocator);
  EXPECT_TRUE(arena->Initialize(/*seed=*/3).ok());
  return ValuesOf(parameter.value);
}

TEST(ParameterArena, APieceHasTheValuesOfTheWhole) {
  const Shape shape = {12, 30};
  Initializer rows = Initializer::Uniform(0.5);
  rows.zero_row = 7;
  const Initializer kinds[] = {rows, Initializer::Normal(0, 1),
                               Initializer::TruncatedNormal(0, 1, -1, 1),
                               Initializer::Integers(-3, 4),
                               Initializer::Constant(2)};
  const Sharding cuts[] = {SplitAlong(0), SplitAlong(0, {6, 3, 3}),
                           SplitAlong(1), SplitAlong(1, {18, 12})};
  for (const Initializer& init : kinds) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
      Parameter all = Make("a", shape, dtype);
      all.init = init;
      const std::vector<double> whole = InitialValues(all);
      for (const Sharding& cut : cuts) {
        std::vector<double> joined(whole.size());
        for (int coord = 0; coord < 3; ++coord) {
          Parameter piece = Make("a", shape, dtype);
          piece.init = init;
          piece.sharding = cut;
          ASSERT_TRUE(LocaliseParameter(piece, {{"tp", coord, 3}}).ok());
          EXPECT_EQ(piece.shape.numel(), shape.numel() / 3);
          const std::vector<double> values = InitialValues(piece);
          for (const ShardRange& range : RangesOf(piece)) {
            std::copy_n(values.begin() + range.local, range.count,
                        joined.begin() + range.global);
          }
        }
        EXPECT_EQ(joined, whole)
            << "kind " << static_cast<int>(init.kind) << ", dim " << cut.dim;
      }
    }
  }
}

// 7 rows in pieces of 3: the last has two rows of padding, which are 0 whatever
// the memory had.
TEST(ParameterArena, PaddingOfAPieceIsZero) {
  Parameter all = Make("a", {7, 5});
  all.init = Initializer::Normal(0, 1);
  const std::vector<double> whole = InitialValues(all);
  CachingAllocator allocator;
  const void* dirty = nullptr;
  {
    const Tensor used = Tensor::Empty({16}, DType::kF32, allocator);
    std::fill_n(used.data<float>(), 16, std::nanf(""));
    dirty = used.raw();
  }
  Parameter piece = Make("a", {7, 5});
  piece.init = all.init;
  piece.sharding = RowsOfVocabulary();
  ASSERT_TRUE(LocaliseParameter(piece, {{"tp", 2, 3}}).ok());
  ASSERT_EQ(piece.shape, (Shape{3, 5}));
  const auto arena = *ParameterArena::Create({{&piece}}, {}, allocator);
  ASSERT_EQ(piece.value.raw(), dirty) << "the memory is another's";
  ASSERT_TRUE(arena->Initialize(/*seed=*/3).ok());
  std::vector<double> want(whole.begin() + 2 * 3 * 5, whole.end());
  want.resize(3 * 5, 0.0);
  EXPECT_EQ(ValuesOf(piece.value), want);
}

TEST(ParameterArena, ARankMayOwnNothing) {
  CachingAllocator allocator;
  auto arena = *ParameterArena::Create({}, {16}, allocator);
  EXPECT_EQ(arena->num_buckets(), 0);
  EXPECT_EQ(arena->values().numel(), 0);
  EXPECT_TRUE(arena->Initialize(1).ok());
  arena->BeginStep();
}

TEST(ParameterArena, ParametersOutliveItWithTheirMemory) {
  CachingAllocator allocator;
  Parameter a = Make("a", {4});
  EXPECT_TRUE(
      (*ParameterArena::Create({{&a}}, {16}, allocator))->Initialize(1).ok());
  EXPECT_EQ(ValuesOf(a.value), std::vector<double>(4, 1.0));
}

}  // namespace
}  // namespace troupe::nn
