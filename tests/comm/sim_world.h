// Simulates several processes of a job within one test. Each process has a
// fabric of its own; simulated links connect them.
//
//   SimWorld world(/*process_of=*/{0, 0, 1}, /*seed=*/7);
//   Group dp = world.MakeGroup({"dp", {0, 1, 2}});     // all ranks, whole
//   while (world.Progress()) {
//   }
//
// The options can make pieces and eager payloads small, so that little data
// suffices to reach every code path.

#ifndef TESTS_COMM_SIM_WORLD_H_
#define TESTS_COMM_SIM_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/fabric.h"
#include "comm/sim/sim_link.h"

namespace troupe::comm {

struct SimWorldOptions {
  std::vector<int> process_of;
  std::uint64_t seed = 1;
  std::optional<std::size_t> eager_bytes = 16 << 10;
  std::size_t piece_bytes = 256 << 10;
  // Memory that all processes share; null: nothing is sent by reference.
  std::shared_ptr<SharedMemory> shared_memory;
  std::function<void(int process, int lost, const absl::Status&)> on_lost;
  // Changes the options of the fabric of `process`. Null: all have the same.
  std::function<void(int process, FabricOptions& fabric)> edit;
  // Returns the link that `process` uses in place of `link`, its link to
  // `peer`. Null: all links are used as they are.
  std::function<std::unique_ptr<Link>(int process, int peer,
                                      std::unique_ptr<Link> link)>
      wrap_link;
};

class SimWorld {
 public:
  explicit SimWorld(SimWorldOptions options)
      : network_(1 + *std::max_element(options.process_of.begin(),
                                       options.process_of.end()),
                 options.seed) {
    const int processes = 1 + *std::max_element(options.process_of.begin(),
                                                options.process_of.end());
    for (int p = 0; p < processes; ++p) {
      FabricOptions fabric;
      fabric.process = p;
      fabric.process_of = options.process_of;
      fabric.links = network_.LinksOf(p);
      for (int q = 0; q < processes; ++q) {
        if (options.wrap_link && q != p) {
          fabric.links[q] = options.wrap_link(p, q, std::move(fabric.links[q]));
        }
        fabric.names.push_back(
            absl::StrCat("process ", q, " (host h", q, ", pid 1", q, ")"));
      }
      fabric.run_thread = false;
      fabric.abort_grace = absl::ZeroDuration();
      fabric.eager_bytes = options.eager_bytes;
      fabric.piece_bytes = options.piece_bytes;
      fabric.shared_memory = options.shared_memory;
      if (options.on_lost) {
        fabric.on_lost = [p, told = options.on_lost](int lost,
                                                     const absl::Status& why) {
          told(p, lost, why);
        };
      }
      if (options.edit) options.edit(p, fabric);
      auto made = Fabric::Make(std::move(fabric));
      TROUPE_CHECK(made.ok(), "the options are in order");
      fabrics_.push_back(*std::move(made));
    }
  }

  SimNetwork& network() { return network_; }
  Fabric& fabric(int process) { return *fabrics_[process]; }
  int processes() const { return static_cast<int>(fabrics_.size()); }

  // Destroys the fabric of a process, as if it had exited: the other processes
  // see their links to it end.
  void EndProcess(int process) { fabrics_[process].reset(); }

  Group MakeGroup(const FabricGroupOptions& options) {
    Group whole(options.ranks.size());
    for (const std::unique_ptr<Fabric>& fabric : fabrics_) {
      absl::StatusOr<Group> part = fabric->MakeGroup(options);
      TROUPE_CHECK(part.ok(), "the group is in order");
      for (std::size_t r = 0; r < whole.size(); ++r) {
        if ((*part)[r] != nullptr) whole[r] = std::move((*part)[r]);
      }
    }
    return whole;
  }

  // Calls Progress() on each fabric once; returns false when no fabric had
  // anything to do.
  bool Progress() {
    bool worked = false;
    for (const std::unique_ptr<Fabric>& fabric : fabrics_) {
      if (fabric != nullptr) worked |= fabric->Progress();
    }
    return worked;
  }

 private:
  SimNetwork network_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_SIM_WORLD_H_
