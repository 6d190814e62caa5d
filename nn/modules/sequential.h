// Modules one after another (torch.nn.Sequential), named "0", "1", ... or by
// their user (torch.nn.Sequential of an OrderedDict).
//
//   auto model = std::make_unique<Sequential>();
//   model->Append<Linear>(10, 10);                   // "0.weight", "0.bias"
//   model->Append<ReLU>();
//   model->AppendNamed<Linear>("head", 10, 5);       // "head.weight", ...
//
// A Sequential can be cut into stages before any child, or before any child of
// a Sequential in it; the parts keep their names, so the names of parameters do
// not depend on the cuts. That is why Forward() is final: a module that does
// more, such as a residual block, holds a Sequential instead.

#ifndef NN_MODULES_SEQUENTIAL_H_
#define NN_MODULES_SEQUENTIAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/modules/module.h"

namespace troupe::nn {

class Sequential : public Module {
 public:
  template <typename M, typename... Args>
  M& Append(Args&&... args) {
    return Add<M>(absl::StrCat(NextNumber()), std::forward<Args>(args)...);
  }
  template <typename M, typename... Args>
  M& AppendNamed(absl::string_view name, Args&&... args) {
    return Add<M>(name, std::forward<Args>(args)...);
  }
  // Appends an existing module; an empty `name` means its number.
  Module& AppendModule(std::unique_ptr<Module> module,
                       absl::string_view name = "");
  int size() const { return static_cast<int>(children().size()); }

  Tensor Forward(Context& ctx, const Tensor& x) final;
  // Passes the outputs of each child to the next one.
  TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs) final;

  // Start of a part: the numbers of children that lead to a module, from the
  // outside in. {4, 2} is child 2 of child 4, which is a Sequential too.
  using Path = std::vector<int>;

  // Cuts `whole` before each module of `cuts` (ascending): n cuts give n + 1
  // parts. A Sequential that is cut is in both parts, with some of its children
  // in each.
  //   kInvalidArgument: a cut names no module after the previous cut, a module
  //     on its path is no Sequential, or no module precedes it.
  static absl::StatusOr<std::vector<std::unique_ptr<Sequential>>> Cut(
      std::unique_ptr<Sequential> whole, absl::Span<const Path> cuts);

 private:
  Tensor ForwardOne(Context& ctx, const Tensor& x);
  // Whether modules remain on both sides of `cut`.
  bool CanCut(absl::Span<const int> cut) const;
  // Moves all modules from `cut` on into the Sequential that is returned.
  std::unique_ptr<Sequential> TakeFrom(absl::Span<const int> cut);
  // Returns a number above those of all children: a part of a cut may begin
  // with another than 0.
  int NextNumber() const;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_SEQUENTIAL_H_
