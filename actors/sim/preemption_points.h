// A job's ways out, with others of the simulation running in the middle of
// them: samples are read, files written and the observer called beside the rest
// of the job, as they are in production's threads.
//
//   PreemptionPoints points(scheduler);
//   spec.train = points.In(spec.train);
//   spec.checkpoint.files = points.In(spec.checkpoint.files);
//   observer = points.In(observer);
//
// What is null stays null.
//
// Lifetime: it and the scheduler outlive what they gave. Threads: one.

#ifndef ACTORS_SIM_PREEMPTION_POINTS_H_
#define ACTORS_SIM_PREEMPTION_POINTS_H_

#include <memory>

#include "actors/setup/job_report.h"
#include "actors/sim/seeded_scheduler.h"
#include "base/file_system.h"
#include "data/dataset.h"

namespace troupe::actors {

class PreemptionPoints {
 public:
  explicit PreemptionPoints(SeededScheduler& scheduler)
      : scheduler_(scheduler) {}

  data::DatasetPtr In(const data::DatasetPtr& dataset);
  // Once each.
  base::FileSystem* In(base::FileSystem* files);
  JobObserver* In(JobObserver* observer);

 private:
  SeededScheduler& scheduler_;
  std::unique_ptr<base::FileSystem> files_;
  std::unique_ptr<JobObserver> observer_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_PREEMPTION_POINTS_H_
