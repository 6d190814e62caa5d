#include "tools/bench/collectives/turns.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "tools/bench/report.h"

namespace troupe::bench {

bool ReadTurn(Turn* turn) {
  *turn = Turn();
  return std::scanf("%" SCNd64 " %" SCNd64 " %" SCNd64, &turn->bytes,
                    &turn->count, &turn->blocks) == 3 &&
         turn->bytes > 0;
}

void Answer(double microseconds) {
  std::printf("%.4f\n", microseconds);
  std::fflush(stdout);
}

double MedianOfBlocks(const Turn& turn, absl::FunctionRef<void()> run) {
  std::vector<double> us;
  for (std::int64_t block = 0; block <= turn.blocks; ++block) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < turn.count; ++i) run();
    const std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - begin;
    if (block > 0) us.push_back(time.count() / turn.count);
  }
  return Median(us);
}

}  // namespace troupe::bench
