// Runs a program in several processes that are threads of this one, and meet
// over TCP on the loopback.
//
//   EXPECT_THAT(Messages(RunIn(/*ranks=*/{2, 1}, program)), Each(""));

#ifndef TESTS_TROUPE_THREADS_AS_PROCESSES_H_
#define TESTS_TROUPE_THREADS_AS_PROCESSES_H_

#include <algorithm>
#include <cstddef>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/spec/cluster_options.h"
#include "troupe/program.h"

namespace troupe {

// Runs the program in as many processes as there are numbers, each with that
// many ranks, and with the other options. Returns their results.
inline std::vector<absl::Status> RunIn(const std::vector<int>& ranks,
                                       const Program& program,
                                       const SpawnOptions& others = {}) {
  std::promise<int> port;
  std::shared_future<int> listening = port.get_future().share();
  std::vector<absl::Status> results(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < ranks.size(); ++p) {
    threads.emplace_back([&, p] {
      SpawnOptions options = others;
      options.ranks = 0;
      for (int count : ranks) options.ranks += count;
      options.timeout = std::min(options.timeout, absl::Minutes(1));
      actors::ClusterOptions cluster;
      cluster.process = static_cast<int>(p);
      cluster.processes = static_cast<int>(ranks.size());
      cluster.ranks = ranks[p];
      cluster.insecure = true;
      cluster.transport = actors::Transport::kTcp;
      if (p == 0) {
        cluster.on_listening = [&port](int number) {
          port.set_value(number);
          return absl::OkStatus();
        };
      } else {
        cluster.master_port = listening.get();
      }
      options.cluster = cluster;
      results[p] = Spawn(program, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

inline std::vector<std::string> Messages(
    const std::vector<absl::Status>& results) {
  std::vector<std::string> messages;
  for (const absl::Status& result : results) {
    messages.emplace_back(result.message());
  }
  return messages;
}

}  // namespace troupe

#endif  // TESTS_TROUPE_THREADS_AS_PROCESSES_H_
