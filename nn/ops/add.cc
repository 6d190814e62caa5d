#include "nn/ops/add.h"

#include "base/check.h"
#include "nn/ops/binary.h"

namespace troupe::nn::ops {
namespace {

class AddNode final : public Node {
 public:
  AddNode(const Shape& a, const Shape& b) : shapes_{a, b} {}
  const char* name() const override { return "add"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    for (int i = 0; i < 2; ++i) {
      if (!wanted[i]) continue;
      TROUPE_ASSIGN_OR_RETURN(dx[i], SumTo(kernels, dy, shapes_[i]));
    }
    return absl::OkStatus();
  }

 private:
  const Shape shapes_[2];
};

}  // namespace

Tensor Add(Context& ctx, const Tensor& a, const Tensor& b) {
  return Binary(ctx, "add", BinaryFunction::kAdd, a, b, [&](const Tensor&) {
    return std::make_unique<AddNode>(a.shape(), b.shape());
  });
}

}  // namespace troupe::nn::ops
