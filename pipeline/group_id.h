// Identifies the ranks that take part in a collective: those along the axes dp
// and pp, or tp, dp and pp, those along one axis of the mesh, or those whose
// stages share parameters.
//
//   GroupId group = GroupOf(action);   // GroupId::kDp for an AR
//   mesh.Group(rank, GroupId::kDpPp);  // all, if no other axis is above 1
//   if (AxisOf(group) >= 0) mesh.SizeOf(AxisOf(group));
//
// An axis is identified by its number (pipeline/mesh.h). tp, dp and pp have the
// same numbers in every mesh, so a table needs no mesh to name its groups. A
// tie is identified by its number among those of the plan (pipeline/ties.h).
//
// A plain value of two bytes, for messages and switches.

#ifndef PIPELINE_GROUP_ID_H_
#define PIPELINE_GROUP_ID_H_

#include <cstdint>

namespace troupe::pipeline {

// Numbers of the axes that every mesh has. Further axes are 3, 4, ...
inline constexpr int kTpAxis = 0;
inline constexpr int kDpAxis = 1;
inline constexpr int kPpAxis = 2;

// The values from 0 on are numbers of axes; those above kPp have no name here.
// kDpPp has the ranks with the same coordinates along all axes but dp and pp:
// together they hold each sample of a batch, and each parameter of a replica,
// once. A sum over them counts no copy that ranks along another axis have.
// kTpDpPp has those along tp too: together they hold each element of a
// parameter that is split along tp. It is kDpPp if a plan splits none.
// kTpDp has those of one stage among them: together they hold each element of
// the stage's parameters.
// Those from kTied downwards are ties: TiedGroup(0) is kTied.
enum class GroupId : std::int16_t {
  kTied = -4,
  kTpDp = -3,
  kTpDpPp = -2,
  kDpPp = -1,
  kTp = kTpAxis,
  kDp = kDpAxis,
  kPp = kPpAxis,
};

constexpr GroupId GroupAlong(int axis) { return static_cast<GroupId>(axis); }
// Returns the axis of a group; below 0 for one of several axes, and for ties.
constexpr int AxisOf(GroupId group) { return static_cast<int>(group); }

// Limit on the ties of a plan.
inline constexpr int kTiesMax = 1 << 10;
constexpr GroupId TiedGroup(int tie) {
  return static_cast<GroupId>(static_cast<int>(GroupId::kTied) - tie);
}
constexpr bool IsTied(GroupId group) { return group <= GroupId::kTied; }
// Returns the number of the tie. `group` must be IsTied().
constexpr int TieOf(GroupId group) {
  return static_cast<int>(GroupId::kTied) - static_cast<int>(group);
}

}  // namespace troupe::pipeline

#endif  // PIPELINE_GROUP_ID_H_
