// Makes the compute actions of a table run in table order, for models whose
// layers communicate: ranks along an axis pair their layers' collectives by
// order, so a forward whose activation arrived early must not overtake a
// backward on one of them and not on another.
//
//   KeepComputeOrder(table);
//
// Each F, B, I and W then also needs the one before it in the table. The engine
// adds these needs to the table that it runs; the table's text does not show
// them.

#ifndef PIPELINE_TABLE_COMPUTE_ORDER_H_
#define PIPELINE_TABLE_COMPUTE_ORDER_H_

#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

void KeepComputeOrder(StepTable& table);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_COMPUTE_ORDER_H_
