#include "base/cuda/emulated/report.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

namespace emulated_cuda {
namespace {

// Limit on the characters for the threads of one place; the rest is "...".
constexpr std::size_t kThreadsTextMax = 60;

std::string PlaceOf(const CudaThread& thread) {
  switch (thread.state) {
    case ThreadState::kDone:
      return "have returned";
    case ThreadState::kReady:
      return "can run";
    case ThreadState::kAtBarrier:
      return std::string("wait at ") + NameOf(thread.call.op) + " " +
             TextOf(thread.site);
    case ThreadState::kInWarpOp:
      break;
  }
  return std::string("wait at ") + NameOf(thread.call.op) + "(mask " +
         MaskText(thread.call.mask) + ") " + TextOf(thread.site);
}

}  // namespace

const char* NameOf(Op op) {
  static const char* const kNames[] = {
      "__syncthreads",     "__syncthreads_count", "__syncthreads_and",
      "__syncthreads_or",  "__syncwarp",          "__shfl_sync",
      "__shfl_up_sync",    "__shfl_down_sync",    "__shfl_xor_sync",
      "__ballot_sync",     "__any_sync",          "__all_sync",
      "__match_any_sync",  "__reduce_add_sync",   "__reduce_min_sync",
      "__reduce_max_sync", "__reduce_and_sync",   "__reduce_or_sync",
      "__reduce_xor_sync"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) ==
                    static_cast<std::size_t>(Op::kReduceXor) + 1,
                "a name for each Op");
  return kNames[static_cast<std::size_t>(op)];
}

std::string TextOf(CodeSite site) {
  const bool from_root = site.file[0] == '.' && site.file[1] == '/';
  return std::string(site.file + (from_root ? 2 : 0)) + ":" +
         std::to_string(site.line);
}

std::string TextOf(dim3 size) {
  return "(" + std::to_string(size.x) + "," + std::to_string(size.y) + "," +
         std::to_string(size.z) + ")";
}

std::string MaskText(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

std::string ThreadText(const CudaThread& thread) {
  return "thread " + std::to_string(thread.id) + " (lane " +
         std::to_string(thread.id % kWarpLanes) + ")";
}

std::string ReportOf(const std::string& what, const Grid& grid, uint3 block) {
  return "emulated_cuda: " + what + "\n  in " + grid.site.name +
         ", launched at " + TextOf(CodeSite{grid.site.file, grid.site.line}) +
         ", block " + TextOf(dim3(block.x, block.y, block.z)) + " of grid " +
         TextOf(grid.grid);
}

std::string ThreadsByPlace(const CudaThread* threads, unsigned count) {
  std::vector<std::pair<std::string, std::string>> groups;  // place, threads
  unsigned end = 0;
  for (unsigned begin = 0; begin < count; begin = end) {
    const std::string place = PlaceOf(threads[begin]);
    end = begin + 1;
    while (end < count && PlaceOf(threads[end]) == place) ++end;
    std::string ids = std::to_string(begin);
    if (end - begin > 1) ids += "-" + std::to_string(end - 1);
    const auto group =
        std::find_if(groups.begin(), groups.end(),
                     [&](const auto& g) { return g.first == place; });
    if (group == groups.end()) {
      groups.emplace_back(place, ids);
    } else if (group->second.size() < kThreadsTextMax) {
      group->second += ", " + ids;
    } else if (group->second.back() != '.') {
      group->second += ", ...";
    }
  }
  std::string text;
  for (const auto& [place, ids] : groups) {
    text += "\n  threads " + ids + " " + place;
  }
  return text;
}

}  // namespace emulated_cuda
