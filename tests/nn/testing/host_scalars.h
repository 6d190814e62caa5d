// The scalars of a step, set as an engine does for `optimizer`.

#ifndef TESTS_NN_TESTING_HOST_SCALARS_H_
#define TESTS_NN_TESTING_HOST_SCALARS_H_

#include <cstdint>

#include "nn/kernels/step_scalars.h"
#include "nn/optim/optimizer.h"

namespace troupe::nn {

inline Tensor ScalarsFor(const Optimizer& optimizer, std::int64_t step,
                         double loss_count, Allocator& allocator) {
  StepScalars values;
  optimizer.FillScalars(step, values);
  values.loss_count = loss_count;
  return HostScalars(values, allocator);
}

}  // namespace troupe::nn

#endif  // TESTS_NN_TESTING_HOST_SCALARS_H_
