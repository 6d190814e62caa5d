// The named schedules: producers of tables for all ranks of a pipeline, with
// forwards and backwards alone.
//
//   std::vector<StepTable> tables =
//       OneForwardOneBackward(/*pp=*/4, /*micro_batches=*/8).value();
//   tables[3].ToString();                          // "F0 B0 F1 B1 ..."
//
//   PlanOptions options;                           // or by name, for a plan
//   options.mesh = Mesh(/*dp=*/1, /*pp=*/4);
//   status = SetSchedule("zb_v", options);         // placement and tables
//
// p: ranks of the pipeline, m: micro-batches, v: chunks of a rank. F, I and W:
// times of a stage's forward and the two halves of its backward, for v = 1. The
// bubble is the time in a step during which a rank does not compute, with equal
// stages and transfers that take no time; in rows marked *, it counts from the
// rank's first action to its last. Activations are counted in chunks, each
// 1 / v of a rank's part of the model.
//
//     name              v   bubble                    activations, at most
//     gpipe             1   (p - 1) (F + I + W)       m
//     1f1b              1   (p - 1) (F + I + W)       p
//     interleaved_1f1b  v   (p - 1) (F + I + W) / v   p (v + 1) - 1
//     breadth_first     v   (p - 1) (F + I + W) / v   m v
//     zb_h1             1   (p - 1) (F + I - W)       p
//     zb_h2             1   0 where F = I = W *       2 p - 1
//     zb_v              2   0 where F = I = W *       2 p
//     dualpipe_v        2   p - 1 chunks' F           2 p + 1
//     v_half            2   about 1/2 of 1f1b's       p + 3
//     v_min             2   about 2/3 of 1f1b's       (2 p + 8) / 3
//
// Sources:
//     gpipe             Huang et al. 2019, arXiv:1811.06965
//     1f1b              Fan et al. 2021 (DAPPLE), arXiv:2007.01045, sec. 3
//     interleaved_1f1b  Narayanan et al. 2021, arXiv:2104.04473, sec. 2.2
//     breadth_first     Lamy-Poirier 2022, arXiv:2211.05953
//     zb_h1, zb_h2      Qi et al. 2023, arXiv:2401.10241, sec. 2
//     zb_v              the same, sec. 6: stages in the shape of a V
//     dualpipe_v        DeepSeek-AI 2024, arXiv:2412.19437, sec. 3.2.1; its two
//                       directions are the legs of a V here
//     v_half, v_min     Qi et al. 2024, arXiv:2405.15362, sec. 3

#ifndef PIPELINE_SCHEDULES_SCHEDULES_H_
#define PIPELINE_SCHEDULES_SCHEDULES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/plan.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

using Tables = std::vector<StepTable>;  // indexed by coordinate along pp

// All producers return kInvalidArgument for pp, micro_batches or chunks below
// 1, and for sizes outside the limits that their comments name.
absl::StatusOr<Tables> GPipe(int pp, int micro_batches);
absl::StatusOr<Tables> OneForwardOneBackward(int pp, int micro_batches);
// Micro-batches go through a chunk in rounds of pp or somewhat more: their
// number must be a multiple of micro_batches / pp, rounded down.
absl::StatusOr<Tables> InterleavedOneForwardOneBackward(int pp,
                                                        int micro_batches,
                                                        int chunks);
absl::StatusOr<Tables> BreadthFirst(int pp, int micro_batches, int chunks);
absl::StatusOr<Tables> ZeroBubbleH1(int pp, int micro_batches);
absl::StatusOr<Tables> ZeroBubbleH2(int pp, int micro_batches);
// The rest place stages in a V (VPlacement).
absl::StatusOr<Tables> ZeroBubbleV(int pp, int micro_batches);
// Takes at least 2 pp micro-batches.
absl::StatusOr<Tables> DualPipeV(int pp, int micro_batches);
absl::StatusOr<Tables> VHalf(int pp, int micro_batches);
absl::StatusOr<Tables> VMin(int pp, int micro_batches);

// Returns the limit on the activations, counted in chunks, that a rank of
// v_half or v_min holds.
int VHalfBound(int pp);
int VMinBound(int pp);

struct NamedSchedule {
  std::string name;
  // Number of chunks per rank; 0: PlanOptions::virtual_stages.
  int chunks = 1;
  bool in_a_v = false;
  absl::StatusOr<Tables> (*tables)(int pp, int micro_batches, int chunks);
};

// Returns the schedules in the order of the table above.
const std::vector<NamedSchedule>& NamedSchedules();
std::vector<std::string> ScheduleNames();

// Returns the placement of a schedule's stages on `pp` ranks with `chunks`
// chunks each.
Placement PlacementFor(const NamedSchedule& schedule, int pp, int chunks);

// Sets options.schedule and the placement. Mesh, batch sizes and virtual_stages
// must be set before; the caller sets one cut less than stages.
//   kInvalidArgument: no schedule has the name, or it does not take the sizes.
absl::Status SetSchedule(absl::string_view name, PlanOptions& options);

// Sets given tables, one for each coordinate along pp.
//   kInvalidArgument: the number of tables is not pp.
absl::Status SetTables(Tables tables, PlanOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_SCHEDULES_H_
