#include "tests/nn/fronts/golden_fronts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/autograd/tape.h"
#include "nn/ops/loss.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Families of tools/golden/fronts.
constexpr const char* kFamilies[] = {
    "activation", "arithmetic", "attention", "basic", "conv", "index",
    "loop",       "loss",       "matmul",    "norm",  "pool", "shape"};

struct NoSink : GradientSink {
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

// Runs one case on one kernel set.
class GoldenFront {
 public:
  GoldenFront(const GoldenFile& golden, const FrontCase& front, DType dtype,
              Kernels& kernels)
      : golden_(golden), front_(front), dtype_(dtype), kernels_(kernels) {}

  void Run() {
    Tape tape;
    Context ctx(kernels_, &tape);
    Tensors given;
    for (const auto& shapes : {front_.inputs, front_.weights}) {
      for (const Shape& shape : shapes) {
        given.push_back(tape.Watch(Input(absl::StrCat(given.size()), shape)));
      }
    }
    const Tensor y = front_.forward(ctx, given);
    ASSERT_TRUE(ctx.ok()) << ctx.status();
    Expect("y", y);
    Backward(tape, y);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const absl::StatusOr<Tensor> gradient =
          tape.InputGradOrZeros(kernels_, given[i]);
      ASSERT_TRUE(gradient.ok()) << gradient.status();
      Expect(absl::StrCat("d", i), *gradient);
    }
  }

 private:
  Tensor Input(const std::string& what, const Shape& shape) {
    return MakeTensor(shape, dtype_,
                      GoldenInput(absl::StrCat(front_.name, "/", what),
                                  shape.numel(), /*scale=*/1),
                      kernels_.allocator());
  }

  void Backward(Tape& tape, const Tensor& y) {
    NoSink sink;
    BackwardPass backward(tape, kernels_, sink, BackwardPass::Mode::kWhole);
    if (ops::IsLoss(y)) {
      backward.Seed(y);
    } else {
      backward.Seed(y, Input("dy", y.shape()));
    }
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = backward.Next();
    EXPECT_TRUE(more.ok()) << more.status();
  }

  void Expect(const std::string& what, const Tensor& got) {
    const std::string name = absl::StrCat(front_.name, "/", what);
    ASSERT_TRUE(golden_.Has(name)) << "PyTorch has no " << name;
    EXPECT_TRUE(Near(ValuesOf(got), golden_.Values(name), OpTolerance(dtype_)))
        << what;
  }

  const GoldenFile& golden_;
  const FrontCase& front_;
  const DType dtype_;
  Kernels& kernels_;
};

}  // namespace

void ExpectGoldenFronts(Kernels& kernels, DType dtype) {
  absl::flat_hash_map<std::string, FrontCase> fronts;
  for (FrontCase& front : AllFrontCases()) fronts[front.name] = front;
  for (const char* family : kFamilies) {
    const std::string file =
        absl::StrCat("fronts_", family, "_", DTypeName(dtype));
    const absl::StatusOr<GoldenFile> golden = GoldenFile::Open(file);
    ASSERT_TRUE(golden.ok()) << golden.status();
    for (const auto& c : golden->spec()["cases"]) {
      const std::string name = c;
      SCOPED_TRACE(absl::StrCat(file, ": ", name));
      const auto front = fronts.find(name);
      if (front == fronts.end()) {
        ADD_FAILURE() << "AllFrontCases() has no case of this name";
        continue;
      }
      GoldenFront(*golden, front->second, dtype, kernels).Run();
    }
  }
}

}  // namespace troupe::nn
