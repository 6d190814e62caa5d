// Trains the model on two ranks.
//
//   bazel run //:train

#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "actors/job.h"
#include "wide_and_deep.h"

int main() {
  const auto spec = outside::MakeJob(/*ranks=*/2);
  const auto result = spec.ok() ? troupe::actors::RunJob(*spec) : spec.status();
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(result.status().message()).c_str());
    return 1;
  }
  std::printf("test accuracy %.3f\n", result->evaluation.accuracy);
}
