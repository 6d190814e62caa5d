// A device mesh: the ranks of a job laid out along an ordered list of named
// axes, fastest first: tp, then dp, then pp, and more by name.
//
//   const Mesh mesh(/*dp=*/2, /*pp=*/2);    // 4 ranks
//   mesh.CoordOf(3, "pp");                  // 1
//   mesh.Group(3, "dp");                    // {2, 3}: the same stage
//   mesh.RankOf({/*dp=*/0, /*pp=*/1});      // 2
//
//   const Mesh cube = Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}}).value();
//   cube.Group(5, "pp");                    // {1, 5}
//   cube.RankAt({/*tp=*/1, /*dp=*/0, /*pp=*/1});  // 5
//   cube.Group(5, GroupId::kDpPp);          // {1, 3, 5, 7}: the same tp
//   cube.SizeOf("ep");                      // 1: an axis that is not there
//
// An axis is named by text or by number. tp, dp and pp have the numbers of
// pipeline/group_id.h in every mesh, with size 1 if it does not list them;
// other axes have the numbers from 3 on, in the order of the list.
//
// A value type; threads may share a constant one. CoordOf by number is a
// division and a remainder; Group allocates its result.
// Limits: kMeshAxesMax axes, kMeshRanksMax ranks, names of kAxisNameMax
// letters. Create and Check return errors; the other functions require ranks
// and axis numbers that the mesh has.

#ifndef PIPELINE_MESH_H_
#define PIPELINE_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipeline/group_id.h"

namespace troupe::pipeline {

inline constexpr int kMeshAxesMax = 8;
inline constexpr std::int64_t kMeshRanksMax = std::int64_t{1} << 20;
inline constexpr int kAxisNameMax = 16;

// Returns the samples of the replica that has most of a global batch: shares
// differ by one sample at most.
inline std::int64_t LargestShare(std::int64_t global_batch_size, int dp) {
  return global_batch_size / dp + (global_batch_size % dp != 0);
}

struct Axis {
  std::string name;
  int size = 1;

  friend bool operator==(const Axis& a, const Axis& b) {
    return a.name == b.name && a.size == b.size;
  }
};

class Mesh {
 public:
  // Coordinates along the axes that every mesh has.
  struct Coords {
    int dp = 0;
    int pp = 0;
    int tp = 0;
  };

  // Makes a mesh of the axes dp and pp, behind tp if that is not 1. Sizes are
  // not checked: see Check.
  explicit Mesh(int dp = 1, int pp = 1, int tp = 1);

  // Makes a mesh of `axes`, fastest first.
  //   kInvalidArgument: a name that is empty, too long, there twice, or not of
  //   lower-case letters, digits and underscores; a size below 1; too many
  //   axes or ranks.
  static absl::StatusOr<Mesh> Create(std::vector<Axis> axes);
  // Returns the error that Create would return for these axes.
  absl::Status Check() const;

  // The axes as listed, fastest first.
  const std::vector<Axis>& axes() const { return axes_; }
  // Number of ranks.
  int size() const { return size_; }
  int tp() const { return SizeOf(kTpAxis); }
  int dp() const { return SizeOf(kDpAxis); }
  int pp() const { return SizeOf(kPpAxis); }

  // Returns the number of an axis, or -1 if the mesh does not list it and it is
  // none of tp, dp and pp.
  int AxisNumber(absl::string_view axis) const;
  // One more than the largest number of an axis.
  int axis_count() const { return static_cast<int>(strides_.size()); }
  int SizeOf(int axis) const { return strides_[axis].size; }
  int SizeOf(absl::string_view axis) const;

  int CoordOf(int rank, int axis) const {
    return rank / strides_[axis].stride % strides_[axis].size;
  }
  // Returns 0 if the mesh does not have the axis.
  int CoordOf(int rank, absl::string_view axis) const;
  Coords CoordsOf(int rank) const;

  // `coords`: a coordinate for each of axes().
  int RankAt(const std::vector<int>& coords) const;
  // Coordinates along axes besides tp, dp and pp are 0.
  int RankOf(const Coords& coords) const;
  // Returns the rank with the coordinates of `rank`, except `coord` along
  // `axis`.
  int RankWith(int rank, int axis, int coord) const {
    return rank + (coord - CoordOf(rank, axis)) * strides_[axis].stride;
  }

  // Returns the ranks that differ from `rank` in the coordinate along `axis`
  // alone, `rank` included, by coordinate; only `rank` if the mesh does not
  // have the axis.
  std::vector<int> Group(int rank, int axis) const;
  std::vector<int> Group(int rank, absl::string_view axis) const;
  // Returns the ranks of a collective: for kDpPp those that differ from `rank`
  // along dp and pp alone, for kTpDpPp those that differ along tp too, for
  // kTpDp those along tp and dp, ascending; else those along its axis.
  std::vector<int> Group(int rank, GroupId group) const;
  std::vector<int> DpGroup(int rank) const { return Group(rank, kDpAxis); }

  // Whether the coordinates of `rank` along all axes but dp and pp are 0. The
  // ranks for which it holds have the samples and parameters of a job once;
  // those along other axes have the same ones.
  bool IsFirstCopy(int rank) const;

  bool IsFirstStage(int rank) const { return CoordOf(rank, kPpAxis) == 0; }
  bool IsLastStage(int rank) const {
    return CoordOf(rank, kPpAxis) == pp() - 1;
  }

  // Returns "dp=2 pp=1", "tp=2 dp=2 pp=1 ep=4": in the order of the list, tp
  // only if it is above 1.
  std::string ToString() const;

  friend bool operator==(const Mesh& a, const Mesh& b) {
    return a.axes_ == b.axes_;
  }
  friend bool operator!=(const Mesh& a, const Mesh& b) { return !(a == b); }

 private:
  // Size of an axis, and the distance of two ranks that are neighbours on it.
  struct Stride {
    int size = 1;
    int stride = 1;
  };

  explicit Mesh(std::vector<Axis> axes);

  // Returns the rank with the coordinates of `rank`, except 0 along the axes of
  // kDpPp, kTpDpPp or kTpDp.
  int AtFirstOf(int rank, GroupId group) const;

  std::vector<Axis> axes_;
  std::vector<Stride> strides_;  // indexed by axis number
  int size_ = 1;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_MESH_H_
