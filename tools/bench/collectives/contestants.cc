#include "tools/bench/collectives/contestants.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/bench/report.h"

namespace troupe::bench {
namespace {

// Approximate time of a block and of a turn, in microseconds.
constexpr double kBlockUs = 5e3;
constexpr double kTurnUs = 300e3;

std::vector<std::string> UnderMpirun(int ranks,
                                     std::vector<std::string> program) {
  std::vector<std::string> words = {"mpirun",
                                    "--allow-run-as-root",
                                    "--oversubscribe",
                                    "--bind-to",
                                    "none",
                                    "--mca",
                                    "oob_tcp_if_include",
                                    "lo",
                                    "--mca",
                                    "btl_tcp_if_include",
                                    "lo",
                                    "-n",
                                    absl::StrCat(ranks)};
  for (std::string& word : program) words.push_back(std::move(word));
  return words;
}

}  // namespace

Contestants::Contestants(const std::string& program, int ranks)
    : self_(std::filesystem::read_symlink("/proc/self/exe").string()),
      raw_mpi_(FindScript(program, "tools/bench/collectives/mpi_all_reduce")),
      gloo_script_(FindScript(program, "tools/bench/comm/peer_all_reduce.py")),
      ranks_(ranks) {}

void Contestants::AddOurs(const std::string& name,
                          std::vector<std::string> arguments,
                          bool under_mpirun) {
  arguments.insert(arguments.begin(), self_);
  arguments.push_back(absl::StrCat("--ranks=", ranks_));
  if (under_mpirun) arguments = UnderMpirun(ranks_, std::move(arguments));
  Add(name, Peer::StartProgram(std::move(arguments)));
}

void Contestants::AddGloo(const std::string& python) {
  if (python.empty()) return;
  Add(kGloo,
      Peer::Start(python, gloo_script_, {absl::StrCat("--ranks=", ranks_)}));
}

void Contestants::AddRawMpi() {
  if (!std::filesystem::exists(raw_mpi_)) return;
  Add(kRawMpi, Peer::StartProgram(UnderMpirun(ranks_, {raw_mpi_})));
}

void Contestants::Add(const std::string& name,
                      absl::StatusOr<std::unique_ptr<Peer>> contestant) {
  if (contestant.ok()) {
    order_.push_back(name);
    contestants_[name] = *std::move(contestant);
  } else {
    std::fprintf(stderr, "%s: %s\n", name.c_str(),
                 contestant.status().ToString().c_str());
  }
}

std::optional<double> Contestants::Ask(const std::string& name,
                                       std::int64_t bytes, std::int64_t count,
                                       std::int64_t blocks) {
  std::unique_ptr<Peer>& contestant = contestants_[name];
  if (contestant == nullptr) return std::nullopt;
  const absl::StatusOr<double> us =
      contestant->Measure(absl::StrCat(bytes, " ", count, " ", blocks));
  if (us.ok()) return *us;
  std::fprintf(stderr, "%s: %s\n", name.c_str(),
               us.status().ToString().c_str());
  contestant.reset();
  return std::nullopt;
}

void Contestants::Measure(std::int64_t bytes, int rounds) {
  figures_.clear();
  std::map<std::string, double> one_us;
  for (const std::string& name : order_) {
    one_us[name] = Ask(name, bytes, 1, 3).value_or(kTurnUs);
  }
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& name : order_) {
      const std::int64_t count =
          std::clamp<std::int64_t>(kBlockUs / one_us[name], 1, 2000);
      const std::int64_t blocks =
          std::clamp<std::int64_t>(kTurnUs / (one_us[name] * count), 3, 20);
      const std::optional<double> us = Ask(name, bytes, count, blocks);
      if (us) figures_[name].push_back(*us);
    }
    std::reverse(order_.begin(), order_.end());
  }
}

std::optional<double> Contestants::MedianOf(const std::string& name) const {
  const auto found = figures_.find(name);
  if (found == figures_.end() || found->second.empty()) return std::nullopt;
  return Median(found->second);
}

}  // namespace troupe::bench
