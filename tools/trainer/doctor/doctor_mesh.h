// Tells over what the groups of a mesh would run: the memory of a process,
// shared memory between processes of a host, or the network between hosts.
//
//   MeshPlace place;
//   TROUPE_ASSIGN_OR_RETURN(place.mesh, ParseMesh("tp=2,dp=2"));
//   place.hosts = {"n1", "n2"};
//   std::cout << FormatFindings(CheckMesh(place));
//   // mesh tp  ok  2 ranks, in one process: its memory
//   // mesh dp  ok  2 ranks, on n1, n2: the network (tcp)
//
// Pure functions.

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_MESH_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_MESH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/mesh.h"
#include "tools/trainer/doctor/doctor_findings.h"

namespace troupe::tools {

// Ranks are numbered host by host and process by process, equally many in each
// process.
struct MeshPlace {
  pipeline::Mesh mesh;
  std::vector<std::string> hosts;  // at least one
  int processes = 1;               // on each host
};

// Parses "tp=2,dp=4,pp=2": axes in any order; 1 for those that are left out.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<pipeline::Mesh> ParseMesh(const std::string& text);

// Returns a row for each axis of more than one rank, by the widest of its
// groups; a problem if processes do not divide the ranks.
std::vector<Finding> CheckMesh(const MeshPlace& place);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_MESH_H_
