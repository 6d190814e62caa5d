// LeNet, trained by hand on some ranks of one thread, on the cpu or on queued
// devices: every wait that a step engine needs, written out, and bugs that omit
// one.
//
//   const Trained want = Train({/*ranks=*/2});
//   Training on_device = {/*ranks=*/2};
//   on_device.seed = 7;                      // queued devices, in this order
//   EXPECT_EQ(Train(on_device), want);
//
// No call waits for the device in between: three steps are enqueued, losses are
// read at the end.

#ifndef TESTS_NN_KERNELS_QUEUED_QUEUED_TRAINING_H_
#define TESTS_NN_KERNELS_QUEUED_QUEUED_TRAINING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::nn {

enum class Forgotten {
  kNothing,
  kReduction,   // an update that does not wait for the sum of its gradients
  kGradients,   // a reduction that does not wait for its bucket's gradients
  kLastReader,  // a copy of the next batch into memory that is still read
  kBatch,       // a forward that does not wait for the copy of its batch
  kLoss,        // a copy to the host of statistics before they are written
};

struct Training {
  int ranks = 1;
  std::optional<std::uint64_t> seed = {};  // empty: on the cpu
  Forgotten forgotten = Forgotten::kNothing;
};

struct Trained {
  absl::Status status;         // the run's; an error leaves the rest empty
  std::vector<double> losses;  // for all ranks and steps
  std::string parameters;      // bytes of all ranks' parameters

  friend bool operator==(const Trained& a, const Trained& b);
};

Trained Train(const Training& training);

}  // namespace troupe::nn

#endif  // TESTS_NN_KERNELS_QUEUED_QUEUED_TRAINING_H_
