#include "tools/trainer/doctor/doctor_mesh.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace troupe::tools {
namespace {

// The narrowest place that has all ranks of a group.
enum class Reach { kProcess, kHost, kNetwork };

// The widest group along an axis.
struct Width {
  Reach reach = Reach::kProcess;
  std::set<std::string> hosts;
};

Width WidthOf(const MeshPlace& place, int axis) {
  const int processes = static_cast<int>(place.hosts.size()) * place.processes;
  const int each = place.mesh.size() / processes;
  Width widest;
  for (int rank = 0; rank < place.mesh.size(); ++rank) {
    std::set<int> used;
    std::set<std::string> hosts;
    for (const int member : place.mesh.Group(rank, axis)) {
      used.insert(member / each);
      hosts.insert(place.hosts[member / each / place.processes]);
    }
    const Reach reach = hosts.size() > 1  ? Reach::kNetwork
                        : used.size() > 1 ? Reach::kHost
                                          : Reach::kProcess;
    if (rank == 0 || reach > widest.reach) widest = {reach, std::move(hosts)};
  }
  return widest;
}

Finding Describe(const MeshPlace& place, const std::string& name, int axis) {
  const Width width = WidthOf(place, axis);
  Finding finding;
  finding.what = absl::StrCat("mesh ", name);
  finding.found = absl::StrCat(place.mesh.SizeOf(axis), " ranks, ");
  switch (width.reach) {
    case Reach::kProcess:
      absl::StrAppend(&finding.found, "in one process: its memory");
      break;
    case Reach::kHost:
      absl::StrAppend(&finding.found,
                      "in processes of one host: shared memory (shm)");
      break;
    case Reach::kNetwork:
      absl::StrAppend(&finding.found, "on ", absl::StrJoin(width.hosts, ", "),
                      ": the network (tcp)");
      if (axis != pipeline::kTpAxis) break;
      finding.health = Health::kWarning;
      finding.advice =
          "layers wait for sums over tp: let tp divide the ranks of a host";
  }
  return finding;
}

}  // namespace

absl::StatusOr<pipeline::Mesh> ParseMesh(const std::string& text) {
  std::map<std::string, int> sizes = {{"tp", 1}, {"dp", 1}, {"pp", 1}};
  std::set<std::string> seen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> axis =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto found = sizes.find(axis.first);
    int size = 0;
    if (found == sizes.end() || !seen.insert(axis.first).second ||
        !absl::SimpleAtoi(axis.second, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--mesh: \"", part,
                       "\" is no axis, or stands twice; write "
                       "--mesh=tp=2,dp=4,pp=2, say"));
    }
    found->second = size;
  }
  const pipeline::Mesh mesh(sizes["dp"], sizes["pp"], sizes["tp"]);
  TROUPE_RETURN_IF_ERROR(mesh.Check());
  return mesh;
}

std::vector<Finding> CheckMesh(const MeshPlace& place) {
  const int processes = static_cast<int>(place.hosts.size()) * place.processes;
  if (place.mesh.size() % processes != 0) {
    return {
        {"mesh", Health::kProblem,
         absl::StrCat(place.mesh.size(), " ranks in ", processes, " processes"),
         "take a mesh whose ranks the processes divide"}};
  }
  std::vector<Finding> findings;
  for (const auto& [name, axis] :
       {std::pair("tp", pipeline::kTpAxis), std::pair("dp", pipeline::kDpAxis),
        std::pair("pp", pipeline::kPpAxis)}) {
    if (place.mesh.SizeOf(axis) == 1) continue;
    findings.push_back(Describe(place, name, axis));
  }
  return findings;
}

}  // namespace troupe::tools
