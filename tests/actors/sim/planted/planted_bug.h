// Switches on one of the bugs that plant.py has planted (bugs.txt). A folder's
// bug.h names them, from kNone to kEnd.
//
//   PlantedBug<Bug>() = Bug::kNeverIdle;
//   ... no rank says now that it wants to be woken ...
//   if (Planted(Bug::kNeverIdle)) return;        // in bugs.txt
//
// Threads: one.

#ifndef TESTS_ACTORS_SIM_PLANTED_PLANTED_BUG_H_
#define TESTS_ACTORS_SIM_PLANTED_PLANTED_BUG_H_

namespace troupe {

template <typename Bug>
Bug& PlantedBug() {
  static Bug bug = Bug::kNone;
  return bug;
}
template <typename Bug>
bool Planted(Bug bug) {
  return PlantedBug<Bug>() == bug;
}

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_PLANTED_BUG_H_
