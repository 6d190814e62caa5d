#include "nn/kernels/op.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/families.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {
namespace {

// A device that binds one kernel, and counts its calls.
class OneOp : public Kernels {
 public:
  OneOp() : Kernels(Device{DeviceType::kCuda, 3}) {
    LinearBackwardWeight.Bind<Count>(this);
  }
  Allocator& allocator() override { return allocator_; }
  std::string Describe() const override { return "one op"; }

  int calls = 0;

 private:
  static absl::Status Count(OneOp& set, In x, In, bool accumulate, Tensor& dw,
                            Tensor& db) {
    ++set.calls;
    EXPECT_TRUE(accumulate);
    EXPECT_EQ(x.numel(), 4);
    EXPECT_FALSE(db.defined());
    dw = x;
    return absl::OkStatus();
  }

  CachingAllocator allocator_;
};

TEST(Op, CallsTheKernelThatIsBound) {
  OneOp set;
  Tensor x = Tensor::Zeros({2, 2}, DType::kF32, set.allocator());
  Tensor dw, none;
  EXPECT_TRUE(set.LinearBackwardWeight(x, x, true, dw, none).ok());
  EXPECT_EQ(set.calls, 1);
  EXPECT_EQ(dw.raw(), x.raw());
}

TEST(Op, WithoutAKernelNamesItselfAndTheDevice) {
  OneOp set;
  Tensor y;
  EXPECT_EQ(set.Fill(1, y), absl::UnimplementedError(
                                "cuda:3 has no kernel for Fill; use another "
                                "device for it"));
}

TEST(Op, VisitsEachOpOfEachFamilyOnce) {
  OneOp set;
  std::set<std::string> names;
  std::set<const void*> ops;
  int count = 0;
  Kernels::ForEachOp([&](auto op) {
    EXPECT_EQ((set.*op).device(), set.device());
    names.insert((set.*op).name());
    ops.insert(&(set.*op));
    ++count;
  });
  EXPECT_EQ(static_cast<int>(names.size()), count);
  EXPECT_EQ(static_cast<int>(ops.size()), count);
  EXPECT_EQ(names.count("LinearForward") + names.count("SgdUpdate"), 2u);
}

TEST(Families, AreVisitedInOrderAsTheirOwnTypes) {
  using Two = Families<LinearKernels, BiasKernels>;
  Two two;
  std::vector<const void*> visited;
  two.ForEachFamily([&](auto& family) { visited.push_back(&family); });
  EXPECT_EQ(visited,
            (std::vector<const void*>{static_cast<LinearKernels*>(&two),
                                      static_cast<BiasKernels*>(&two)}));
  std::vector<std::string> names;
  Two::ForEachOp([&](auto op) { names.push_back((two.*op).name()); });
  ASSERT_EQ(names.size(), 8u);
  EXPECT_EQ(names[0], "LinearForward");
  EXPECT_EQ(names[6], "BiasForward");
}

// A decorator of every op, written once: it counts calls and passes them on.
class Counting : public Kernels {
 public:
  explicit Counting(std::unique_ptr<Kernels> inner)
      : Kernels(inner->device()), inner_(std::move(inner)) {
    ForEachOp([&](auto op) { Wrap(this->*op, (*inner_).*op); });
  }
  Allocator& allocator() override { return inner_->allocator(); }
  std::string Describe() const override { return inner_->Describe(); }

  static int calls;

 private:
  template <typename... Args>
  void Wrap(Op<absl::Status(Args...)>& op, Op<absl::Status(Args...)>& inner) {
    using ThisOp = Op<absl::Status(Args...)>;
    op.BindFunction(
        [](const ThisOp& op, Args... args) -> absl::Status {
          ++calls;
          return op.template state<ThisOp>()(args...);
        },
        &inner);
  }

  std::unique_ptr<Kernels> inner_;
};
int Counting::calls = 0;

TEST(Op, ADecoratorHoldsForAllOps) {
  Counting set(std::make_unique<OneOp>());
  Tensor x = Tensor::Zeros({2, 2}, DType::kF32, set.allocator());
  Tensor dw, none;
  EXPECT_TRUE(set.LinearBackwardWeight(x, x, true, dw, none).ok());
  EXPECT_FALSE(set.Add(x, x, dw).ok());
  EXPECT_EQ(Counting::calls, 2);
}

TEST(NumbersOf, AreTheOperandsThatAnOpComputesWith) {
  CachingAllocator memory;
  Tensor t = Tensor::Zeros({1}, DType::kF32, memory);
  EXPECT_EQ(NumbersOf(t), &t);
  EXPECT_EQ(NumbersOf(Out(t)), &t);
  EXPECT_EQ(NumbersOf(InOut(t)), &t);
  EXPECT_EQ(NumbersOf(Grad(t)), &t);
  EXPECT_EQ(NumbersOf(FixedIn(t)), nullptr);
  EXPECT_EQ(NumbersOf(FixedOut(t)), nullptr);
  EXPECT_EQ(NumbersOf(true), nullptr);
  EXPECT_EQ(NumbersOf(Window2d()), nullptr);
}

}  // namespace
}  // namespace troupe::nn
