// Modules one after another (torch.nn.Sequential), named "0", "1", ...
//
//   auto model = std::make_unique<Sequential>();
//   model->Append<Linear>(10, 10);
//   model->Append<ReLU>();
//   model->Append<Linear>(10, 5);
//
// A Sequential can be cut into stages at any child; the parts keep their names,
// so parameters are called the same however the model is cut.

#ifndef NN_MODULES_SEQUENTIAL_H_
#define NN_MODULES_SEQUENTIAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "nn/modules/module.h"

namespace troupe::nn {

class Sequential : public Module {
 public:
  template <typename M, typename... Args>
  M& Append(Args&&... args) {
    return Add<M>(absl::StrCat(NextNumber()), std::forward<Args>(args)...);
  }
  int size() const { return static_cast<int>(children().size()); }

  Tensor Forward(Context& ctx, const Tensor& x) override;
  // What one child gives, the next one takes.
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) override;

  // Cuts `whole` before each child numbered in `cuts` (ascending, inside
  // (0, size)): n cuts give n + 1 parts.
  //   kInvalidArgument: a cut that is not inside, or not ascending.
  static absl::StatusOr<std::vector<std::unique_ptr<Sequential>>> Cut(
      std::unique_ptr<Sequential> whole, absl::Span<const int> cuts);

 private:
  Tensor ForwardOne(Context& ctx, const Tensor& x);
  // Above those of all children: a part of a cut begins with another than 0.
  int NextNumber() const;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_SEQUENTIAL_H_
