// What the ddp_step benchmark trains: small models at which an engine's own
// cost shows, and one of 25 million parameters at which the reduction does.
//
//     toy_mlp     10-10-5, ReLU; MSE; batch 20
//     toy_cnn     LeNet on 3x32x32, 10 classes; cross entropy; batch 16
//     mnist_mlp   784-512-512-10, ReLU; cross entropy; batch 64
//     mlp_25m     5 linears of 2236x2236 without bias, ReLU between; cross
//                 entropy over 2236 classes; batch 64
//
// The batch is a rank's own. Plain SGD. peer_ddp.py has the same models.
// Samples are random numbers in memory and targets do not follow from them, so
// that nothing converges, and no number becomes denormal.

#ifndef TOOLS_BENCH_DDP_STEP_DDP_CASE_H_
#define TOOLS_BENCH_DDP_STEP_DDP_CASE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"

namespace troupe::bench {

std::vector<std::string> DdpCaseNames();

// A job of the case without an end in sight: `steps` is large.
//   kInvalidArgument: no such case.
absl::StatusOr<actors::JobSpec> MakeDdpJob(const std::string& name, int ranks);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_DDP_STEP_DDP_CASE_H_
