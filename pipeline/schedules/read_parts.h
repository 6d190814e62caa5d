// The parts in which an action of a simulated step reads values that are
// gathered before their uses (pipeline/table/add_gathers.h).
//
//   const std::vector<std::vector<ReadPart>> parts = ReadPartsOf(table);
//   for (const ReadPart& part : parts[reader]) {
//     part.gather;    // the reader waits for it before this part
//     part.release;   // what this part is the last to use
//   }
//
// The model is that a reader takes as long with each bucket of its chunk: a
// forward with the last bucket first, a backward in their order.

#ifndef PIPELINE_SCHEDULES_READ_PARTS_H_
#define PIPELINE_SCHEDULES_READ_PARTS_H_

#include <vector>

#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct ReadPart {
  int bucket = 0;
  int gather = 0;    // position in the table
  int release = -1;  // -1: it does not happen in the course of this reader
};

// Returns the parts of each action of a table that CheckTurns() accepts. Empty
// for actions that read nothing that is gathered. Linear in the table times the
// buckets of a chunk.
std::vector<std::vector<ReadPart>> ReadPartsOf(const StepTable& table);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_READ_PARTS_H_
