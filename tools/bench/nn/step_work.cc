#include "tools/bench/nn/step_work.h"

#include <cstdint>
#include <memory>
#include <optional>

#include "base/check.h"
#include "nn/modules/module.h"
#include "tools/bench/cpu_info.h"

namespace troupe::bench {
namespace {

constexpr double kForwardsOfStep = 3;

double FirstLayerFlops(const nn::ShapeRecord& record) {
  for (const nn::ShapeRecord::Op& op : record.ops) {
    if (op.flops > 0) return op.flops;
  }
  return 0;
}

}  // namespace

absl::StatusOr<double> StepFlops(const actors::JobSpec& spec) {
  const data::SampleSpec& sample = spec.train->spec();
  const std::int64_t batch = spec.plan.global_batch_size / spec.plan.mesh.dp();
  const bool floats = nn::IsFloating(sample.input_dtype);
  const nn::DType dtype = floats ? spec.dtype : sample.input_dtype;
  const std::unique_ptr<nn::Module> model = spec.model();
  nn::ShapeRecord record;
  TROUPE_RETURN_IF_ERROR(nn::ShapeOnlyForward(*model, sample.InputShape(batch),
                                              dtype, nn::Device{}, record)
                             .status());
  const double flops = kForwardsOfStep * record.flops();
  // If the samples are tokens, the input of the first layer with products has
  // a gradient.
  return floats ? flops - FirstLayerFlops(record) : flops;
}

Peak MeasurePeak(bool bf16) {
  if (!bf16) return {F32PeakGflops(), /*native=*/true};
  const std::optional<double> peak = Bf16PeakGflops();
  if (peak) return {*peak, /*native=*/true};
  return {F32PeakGflops(), /*native=*/false};
}

}  // namespace troupe::bench
