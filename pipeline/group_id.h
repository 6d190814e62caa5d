// Which ranks take part in a collective: all ranks of the job, or those along
// one axis of the mesh.
//
//   GroupId group = GroupOf(ActionKind::kReduceBucket);   // GroupId::kDp
//   if (group != GroupId::kWorld) mesh.Group(rank, AxisOf(group));
//
// An axis is known by its number (pipeline/mesh.h). tp, dp and pp have the
// same numbers in every mesh, so a table needs no mesh to name its groups.
//
// A plain value of one byte, for messages and switches.

#ifndef PIPELINE_GROUP_ID_H_
#define PIPELINE_GROUP_ID_H_

#include <cstdint>

namespace troupe::pipeline {

// Numbers of the axes that every mesh has. Further axes are 3, 4, ...
inline constexpr int kTpAxis = 0;
inline constexpr int kDpAxis = 1;
inline constexpr int kPpAxis = 2;

// The values from 0 on are numbers of axes; those above kPp have no name here.
enum class GroupId : std::int8_t {
  kWorld = -1,
  kTp = kTpAxis,
  kDp = kDpAxis,
  kPp = kPpAxis,
};

constexpr GroupId GroupAlong(int axis) { return static_cast<GroupId>(axis); }
// The axis of a group; -1 for the world.
constexpr int AxisOf(GroupId group) { return static_cast<int>(group); }

}  // namespace troupe::pipeline

#endif  // PIPELINE_GROUP_ID_H_
