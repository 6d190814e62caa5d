#include "actors/spec/job_fields.h"

namespace troupe::actors {
namespace {

template <typename Optimizer, typename Options>
OptimizerFactory FactoryOf(const Options& options) {
  return [options] { return std::make_unique<Optimizer>(options); };
}

}  // namespace

JobOptimizer::JobOptimizer(nn::SgdOptions options)
    : OptimizerFactory(FactoryOf<nn::Sgd>(options)),
      status_(options.Validate()) {}

JobOptimizer::JobOptimizer(nn::AdamOptions options)
    : OptimizerFactory(FactoryOf<nn::Adam>(options)),
      status_(options.Validate()) {}

JobOptimizer::JobOptimizer(nn::LambOptions options)
    : OptimizerFactory(FactoryOf<nn::Lamb>(options)),
      status_(options.Validate()) {}

JobOptimizer::JobOptimizer(nn::LarsOptions options)
    : OptimizerFactory(FactoryOf<nn::Lars>(options)),
      status_(options.Validate()) {}

}  // namespace troupe::actors
