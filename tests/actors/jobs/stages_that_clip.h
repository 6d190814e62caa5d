// An edit of a small job: two replicas of two stages, whose optimizer looks at
// all gradients, for their norm and for elements that are not finite.
//
//   JobSpec spec = SmallJob(options);
//   CutIntoStagesThatClip(spec);

#ifndef TESTS_ACTORS_JOBS_STAGES_THAT_CLIP_H_
#define TESTS_ACTORS_JOBS_STAGES_THAT_CLIP_H_

#include <memory>

#include "actors/spec/job_spec.h"
#include "nn/optim/adam.h"
#include "pipeline/mesh.h"

namespace troupe::actors {

inline void CutIntoStagesThatClip(JobSpec& spec) {
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {2};
  spec.plan.micro_batch_size = 3;
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.common.skip_nonfinite = true;
    adam.common.clip_grad_norm = 0.1;
    return std::make_unique<nn::Adam>(adam);
  };
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_STAGES_THAT_CLIP_H_
