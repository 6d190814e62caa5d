// LeNet, trained by hand on some ranks of one thread, on the cpu or on queued
// devices: all that a step engine has to wait for, in the open, and bugs that
// forget to.
//
//   const Trained want = Train({/*ranks=*/2});
//   Training on_device = {/*ranks=*/2};
//   on_device.seed = 7;                      // queued devices, in this order
//   EXPECT_EQ(Train(on_device), want);
//
// Nothing waits for the device on the way: three steps are enqueued, losses are
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
  kLoss,        // a copy to the host of statistics that are not there yet
};

struct Training {
  int ranks = 1;
  std::optional<std::uint64_t> seed = {};  // empty: on the cpu
  Forgotten forgotten = Forgotten::kNothing;
};

struct Trained {
  absl::Status status;         // of the run; with an error there is no more
  std::vector<double> losses;  // of all ranks and steps
  std::string parameters;      // of all ranks, bytes

  friend bool operator==(const Trained& a, const Trained& b);
};

Trained Train(const Training& training);

}  // namespace troupe::nn

#endif  // TESTS_NN_KERNELS_QUEUED_QUEUED_TRAINING_H_
