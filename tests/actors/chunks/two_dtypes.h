// A model with parameters of two dtypes and its plan, for tests of buckets: a
// frozen layer, one in f32 and one in f64, whose three buckets are in two
// arenas.
//
//   TwoDTypes model({/*options of the plan=*/});
//   BucketArenas& arenas = *model.arenas;
//   model.Fill(arenas.BucketOf(model.Get("wide.bias")), 0.5);

#ifndef TESTS_ACTORS_CHUNKS_TWO_DTYPES_H_
#define TESTS_ACTORS_CHUNKS_TWO_DTYPES_H_

#include <memory>
#include <string>
#include <utility>

#include "actors/chunks/bucket_arenas.h"
#include "base/check.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "pipeline/parameter_plan.h"

namespace troupe::actors {

struct TwoDTypes {
  struct Model : nn::Module {
    Model() {
      Add<nn::Linear>("frozen", 2, 1);
      Add<nn::Linear>("plain", 2, 1);
      Add<nn::Linear>("wide", 2, 1,
                      nn::Linear::Options{/*bias=*/true, nn::DType::kF64});
      for (nn::Parameter* parameter : Parameters()) {
        parameter->requires_grad = parameter->name[0] != 'f';
      }
    }
    nn::Tensor Forward(nn::Context&, const nn::Tensor& x) override { return x; }
  };

  explicit TwoDTypes(
      pipeline::ParameterPlanOptions options = pipeline::ParameterPlanOptions(),
      bool keep_grads = true) {
    options.buckets = {/*first_bucket_bytes=*/12, /*bucket_bytes=*/12};
    plan = pipeline::MakeParameterPlan(options, module.Parameters(),
                                       kernels->device())
               .value();
    const ArenaLayout layout = LayOutArenas(plan.stages[0], /*number=*/0,
                                            /*copies=*/{}, module.Parameters())
                                   .value();
    BucketArenas::Options of_arenas;
    of_arenas.kernels = kernels.get();
    of_arenas.replicas = plan.mesh.dp();
    of_arenas.keep_grads = keep_grads;
    arenas = BucketArenas::Create(layout, of_arenas).value();
    arenas->BeginStep();
  }

  nn::Parameter& Get(const std::string& name) {
    for (nn::Parameter* parameter : module.Parameters()) {
      if (parameter->name == name) return *parameter;
    }
    TROUPE_CHECK(false, "the test asks for a parameter of the model");
  }
  int BucketOf(const std::string& name) { return arenas->BucketOf(Get(name)); }
  // Returns the first element of a value.
  double FirstOf(const std::string& name) { return First(Get(name).value); }
  static double First(const nn::Tensor& tensor) {
    return tensor.dtype() == nn::DType::kF64 ? tensor.data<double>()[0]
                                             : tensor.data<float>()[0];
  }
  // Sets all gradients of a bucket, which get memory.
  void Fill(int bucket, double gradient) {
    ASSERT_TRUE(arenas->HoldGrads(bucket).ok());
    nn::Tensor grads = arenas->Grads(bucket);
    ASSERT_TRUE(kernels->Fill(gradient, grads).ok());
  }

  const std::shared_ptr<nn::Kernels> kernels = nn::CreateReferenceKernels();
  Model module;
  pipeline::Plan plan;
  std::unique_ptr<BucketArenas> arenas;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CHUNKS_TWO_DTYPES_H_
