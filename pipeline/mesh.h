// The ranks of a job laid out as an ordered list of named axes: tp varies
// fastest, then dp, then pp.
//
//   Mesh mesh(/*dp=*/2, /*pp=*/2);          // 4 ranks, tp = 1
//   mesh.CoordsOf(3);                       // {dp 1, pp 1}
//   mesh.RankOf({/*dp=*/0, /*pp=*/1});      // 2
//   mesh.DpGroup(3);                        // {2, 3}: the same stage
//
// A value type; axis sizes are at least 1.

#ifndef PIPELINE_MESH_H_
#define PIPELINE_MESH_H_

#include <string>
#include <vector>

namespace troupe::pipeline {

class Mesh {
 public:
  struct Coords {
    int dp = 0;
    int pp = 0;
  };

  explicit Mesh(int dp = 1, int pp = 1) : dp_(dp), pp_(pp) {}

  int dp() const { return dp_; }
  int pp() const { return pp_; }
  int size() const { return dp_ * pp_; }

  Coords CoordsOf(int rank) const { return {rank % dp_, rank / dp_}; }
  int RankOf(const Coords& coords) const { return coords.pp * dp_ + coords.dp; }

  // The ranks that hold the same stage as `rank`, by dp coordinate.
  std::vector<int> DpGroup(int rank) const;

  bool IsFirstStage(int rank) const { return CoordsOf(rank).pp == 0; }
  bool IsLastStage(int rank) const { return CoordsOf(rank).pp == pp_ - 1; }

  // "dp=2 pp=1"
  std::string ToString() const;

 private:
  int dp_;
  int pp_;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_MESH_H_
