// Adds gathers and releases of values to a table, for replicas that keep only
// their slice of each bucket between uses (ZeRO's stage 3; Rajbhandari et al.
// 2020, arXiv:1910.02054; FSDP: Zhao et al. 2023, arXiv:2304.11277).
//
//   // A forward reads bucket 1 in its part 0, then bucket 0 in its part 1.
//   GatherOptions options;
//   options.chunks = {{{{/*first=*/1, /*last=*/1, /*bytes=*/64},
//                       {/*first=*/0, /*last=*/0, /*bytes=*/64}}}};
//   options.bytes_ahead = 64;
//   table = AddGathers(table, /*reductions=*/{}, options);
//   // F0 LR B0 AR0 UP0 AR1 UP1 becomes
//   // GV1 GV0 F0 RL1 LR GV1.1 B0 RL0 AR0 UP0 RL1.1 AR1 UP1
//
// A forward runs through the parts of its chunk (modules, say) in their order,
// a backward in the reverse one. A bucket is gathered before the first part
// that reads it, and released after the last. While a part runs, buckets of the
// parts behind it are gathered already, up to `bytes_ahead` bytes; a bucket
// that is read again so soon is not released between. Gathers and releases
// stand behind the action in whose course they happen.
//
// The collectives of a group start in table order, so a reduction behind all
// gathers would wait for the last one. So the ARk and UPk move to where the
// gradients of the bucket are complete, in the course of a backward. Those of
// buckets that stages share (TRk) stay at the end.
//
// Cost: linear in the readers, times the parts and buckets of a chunk.

#ifndef PIPELINE_TABLE_ADD_GATHERS_H_
#define PIPELINE_TABLE_ADD_GATHERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// When a forward of a chunk reads a bucket.
struct BucketReads {
  int first = 0, last = 0;  // parts of the forward, counted from 0
  std::int64_t bytes = 0;   // memory that its release frees
};

struct ChunkReads {
  std::vector<BucketReads> buckets;
  // Whether a gathered bucket stays until its last use in the step.
  bool keep = false;
};

struct GatherOptions {
  std::vector<ChunkReads> chunks;  // at least those of the table
  std::int64_t bytes_ahead = 0;
};

// `table`: with reductions, if it trains. `reductions`: the options that it was
// made with.
StepTable AddGathers(const StepTable& table, const ReductionOptions& reductions,
                     const GatherOptions& options);

// Returns kInvalidArgument that names an action if a bucket of the table that
// has gathers is not held while an action computes with its chunk, or if its
// turns overlap. Linear in the table times the buckets of a chunk.
absl::Status CheckTurns(const StepTable& table);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_ADD_GATHERS_H_
