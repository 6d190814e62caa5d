// Types of the fields of a JobSpec that every user sets: model, optimizer, loss
// and data. Each is a std::function or std::shared_ptr that takes what is shown
// here; anything else is a compile error of a few lines that says what to
// write (tests/actors/spec/mistakes.cc).
//
//   JobSpec spec;
//   spec.model = [] { return nn::MakeMlp({784, 512, 10}, {}); };
//   spec.optimizer = nn::SgdOptions{/*lr=*/0.02, /*momentum=*/0.9};
//   spec.optimizer = [] { return std::make_unique<MyOptimizer>(); };
//   spec.loss = nn::ops::CrossEntropyLoss();
//   spec.loss = nn::ops::MeanSquaredError;
//   spec.train = data::OpenDataset({}).value().train;
//
// A model and an optimizer are given as functions or options, never as objects:
// each rank makes its own, in its own thread.

#ifndef ACTORS_SPEC_JOB_FIELDS_H_
#define ACTORS_SPEC_JOB_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "nn/autograd/context.h"
#include "nn/modules/module.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/sgd.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

using OptimizerFactory = std::function<std::unique_ptr<nn::Optimizer>()>;

namespace internal {

// False, but only once the compiler knows F: for a static_assert that fails in
// a branch for a wrong type.
template <typename F>
inline constexpr bool kNever = false;

template <typename T>
inline constexpr bool kIsStatusOr = false;
template <typename T>
inline constexpr bool kIsStatusOr<absl::StatusOr<T>> = true;

// Whether a call of F without arguments returns a StatusOr.
template <typename F, typename = void>
inline constexpr bool kReturnsStatusOr = false;
template <typename F>
inline constexpr bool
    kReturnsStatusOr<F, std::void_t<std::invoke_result_t<F&>>> =
        kIsStatusOr<std::decay_t<std::invoke_result_t<F&>>>;

// Whether F is the argument of a converting constructor of `Field`, and not of
// its copy or move constructor.
template <typename Field, typename F>
using IfOther = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Field>, int>;

}  // namespace internal

// Makes the model of a rank.
class JobModel : public nn::ModelFactory {
 public:
  JobModel() = default;

  // Takes a function without arguments that returns a std::unique_ptr of a
  // module. nullptr: none.
  template <typename F, internal::IfOther<JobModel, F> = 0>
  JobModel(F&& make) {  // NOLINT: implicit, so that it can be assigned
    using Make = std::decay_t<F>;
    if constexpr (std::is_same_v<Make, std::nullptr_t>) {
      // No function.
    } else if constexpr (internal::kReturnsStatusOr<Make>) {
      static_assert(internal::kNever<Make>,
                    "this function returns a StatusOr; take the model out of "
                    "it: spec.model = [] { return "
                    "nn::MakeLeNet({28, 28, 1}, 10, {}).value(); };");
    } else if constexpr (!std::is_invocable_r_v<std::unique_ptr<nn::Module>,
                                                Make&>) {
      static_assert(internal::kNever<Make>,
                    "each rank makes a model of its own, so JobSpec::model is "
                    "a function without arguments that returns a "
                    "std::unique_ptr: spec.model = [] { return "
                    "std::make_unique<MyModel>(); };");
    } else if constexpr (!std::is_copy_constructible_v<Make>) {
      static_assert(internal::kNever<Make>,
                    "this function cannot be copied, and a JobSpec can: "
                    "capture a std::shared_ptr in place of a std::unique_ptr");
    } else {
      nn::ModelFactory::operator=(std::forward<F>(make));
    }
  }
};

// Makes the optimizer of a rank.
class JobOptimizer : public OptimizerFactory {
 public:
  JobOptimizer() = default;

  // Take the options of an optimizer of the library, which CheckNumbers()
  // validates.
  JobOptimizer(nn::SgdOptions options);   // NOLINT
  JobOptimizer(nn::AdamOptions options);  // NOLINT
  JobOptimizer(nn::LambOptions options);  // NOLINT
  JobOptimizer(nn::LarsOptions options);  // NOLINT

  // Takes a function without arguments that returns a std::unique_ptr of an
  // optimizer. nullptr: none.
  template <typename F, internal::IfOther<JobOptimizer, F> = 0>
  JobOptimizer(F&& make) {  // NOLINT
    using Make = std::decay_t<F>;
    if constexpr (std::is_same_v<Make, std::nullptr_t>) {
      // No function.
    } else if constexpr (internal::kReturnsStatusOr<Make>) {
      static_assert(internal::kNever<Make>,
                    "this function returns a StatusOr; take the optimizer out "
                    "of it: spec.optimizer = [] { return "
                    "MakeMyOptimizer().value(); };");
    } else if constexpr (!std::is_invocable_r_v<std::unique_ptr<nn::Optimizer>,
                                                Make&>) {
      static_assert(internal::kNever<Make>,
                    "each rank makes an optimizer of its own, so give options: "
                    "spec.optimizer = nn::SgdOptions{/*lr=*/0.02}; or a "
                    "function: spec.optimizer = [] { return "
                    "std::make_unique<MyOptimizer>(); };");
    } else if constexpr (!std::is_copy_constructible_v<Make>) {
      static_assert(internal::kNever<Make>,
                    "this function cannot be copied, and a JobSpec can: "
                    "capture a std::shared_ptr in place of a std::unique_ptr");
    } else {
      OptimizerFactory::operator=(std::forward<F>(make));
    }
  }

  // Returns the result of the options' Validate(); ok for a function.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// Computes the loss of a rank's micro-batch (nn/ops/loss.h).
class JobLoss : public nn::ops::LossFn {
 public:
  JobLoss() = default;

  // Takes a loss function, which has the parameters of nn::ops::LossFn.
  // nullptr: none.
  template <typename F, internal::IfOther<JobLoss, F> = 0>
  JobLoss(F&& loss) {  // NOLINT
    using Loss = std::decay_t<F>;
    if constexpr (std::is_same_v<Loss, std::nullptr_t>) {
      // No function.
    } else if constexpr (std::is_invocable_v<Loss&, nn::Context&, nn::Tensor,
                                             const nn::Tensor&, double> &&
                         !std::is_invocable_v<Loss&, nn::Context&, nn::Tensor,
                                              const nn::Tensor&>) {
      static_assert(internal::kNever<Loss>,
                    "this loss has a fourth parameter; give it: spec.loss = "
                    "[](nn::Context& ctx, nn::Tensor y, const nn::Tensor& t) "
                    "{ return nn::ops::HuberLoss(ctx, y, t, /*delta=*/1); };");
    } else if constexpr (!std::is_invocable_r_v<nn::Tensor, Loss&, nn::Context&,
                                                nn::Tensor,
                                                const nn::Tensor&>) {
      static_assert(internal::kNever<Loss>,
                    "JobSpec::loss is a function of context, output and "
                    "target: spec.loss = nn::ops::CrossEntropyLoss(); or "
                    "nn::ops::MeanSquaredError; or [](nn::Context& ctx, "
                    "nn::Tensor y, const nn::Tensor& t) { return MyLoss(ctx, "
                    "y, t); };");
    } else if constexpr (!std::is_copy_constructible_v<Loss>) {
      static_assert(internal::kNever<Loss>,
                    "this function cannot be copied, and a JobSpec can: "
                    "capture a std::shared_ptr in place of a std::unique_ptr");
    } else {
      nn::ops::LossFn::operator=(std::forward<F>(loss));
    }
  }

  // Refuses nn::ops::SoftmaxCrossEntropy, an overloaded name, for which the
  // constructor above cannot find F.
  template <typename Index = std::int64_t>
  JobLoss(nn::Tensor (*)(nn::Context&, nn::Tensor, const nn::Tensor&,
                         std::int64_t)) {  // NOLINT
    static_assert(internal::kNever<Index>,
                  "cross entropy has options; write spec.loss = "
                  "nn::ops::CrossEntropyLoss();");
  }
};

// A dataset, which the ranks share.
class JobData : public data::DatasetPtr {
 public:
  JobData() = default;

  // Takes a std::shared_ptr of a dataset. nullptr: none.
  template <typename D, internal::IfOther<JobData, D> = 0>
  JobData(D&& dataset) {  // NOLINT
    if constexpr (internal::kIsStatusOr<std::decay_t<D>>) {
      static_assert(internal::kNever<D>,
                    "this is a StatusOr; take the dataset out of it: "
                    "spec.train = data::OpenDataset({}).value().train;");
    } else if constexpr (!std::is_convertible_v<D, data::DatasetPtr>) {
      static_assert(internal::kNever<D>,
                    "the ranks share a dataset, so give a std::shared_ptr: "
                    "spec.train = data::OpenDataset({}).value().train; or "
                    "spec.train = std::make_shared<MyDataset>();");
    } else {
      data::DatasetPtr::operator=(std::forward<D>(dataset));
    }
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_JOB_FIELDS_H_
