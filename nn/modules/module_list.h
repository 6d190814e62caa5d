// Modules in a list (torch.nn.ModuleList), named "0", "1", ...: for a module
// that calls them in an order of its own.
//
//   class DenselyConnected : public Module {
//    public:
//     explicit DenselyConnected(int depth)
//         : layers_(Add<ModuleList<Linear>>("layers")) {
//       for (int i = 0; i < depth; ++i) layers_.Append(8, 8);
//     }                                    // "layers.0.weight", ...
//     Tensor Forward(Context& ctx, const Tensor& x) override {
//       Tensor y = x;
//       for (Linear& layer : layers_) y = ops::Add(ctx, y, layer(ctx, x));
//       return y;
//     }
//    private:
//     ModuleList<Linear>& layers_;
//   };
//
// ModuleList<> holds modules of any kind: Append<Linear>(8, 8). The list has no
// forward of its own, unlike a Sequential.

#ifndef NN_MODULES_MODULE_LIST_H_
#define NN_MODULES_MODULE_LIST_H_

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/modules/module.h"

namespace troupe::nn {

template <typename M = Module>
class ModuleList : public Module {
 public:
  // Iterates over the modules in their order.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = M;
    using difference_type = std::ptrdiff_t;
    using pointer = M*;
    using reference = M&;

    explicit Iterator(const std::unique_ptr<Module>* at) : at_(at) {}
    M& operator*() const { return static_cast<M&>(**at_); }
    M* operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(Iterator a, Iterator b) { return a.at_ == b.at_; }
    friend bool operator!=(Iterator a, Iterator b) { return a.at_ != b.at_; }

   private:
    const std::unique_ptr<Module>* at_;
  };

  // Makes a module of type `N` at the end.
  template <typename N = M, typename... Args>
  N& Append(Args&&... args) {
    N& made = Add<N>(absl::StrCat(size()), std::forward<Args>(args)...);
    PutInList(made, *this);
    return made;
  }

  int size() const { return static_cast<int>(children().size()); }
  M& operator[](int i) const {
    TROUPE_CHECK(i >= 0 && i < size(), "the module is in the list");
    return static_cast<M&>(*children()[i]);
  }
  Iterator begin() const { return Iterator(children().data()); }
  Iterator end() const { return Iterator(children().data() + size()); }

  // Fails: the modules of the list are called, not the list.
  Tensor Forward(Context& ctx, const Tensor& /*x*/) final {
    return ctx.Fail(absl::InvalidArgumentError(
        "a ModuleList has no forward: call its modules, or use a Sequential"));
  }
};

}  // namespace troupe::nn

#endif  // NN_MODULES_MODULE_LIST_H_
