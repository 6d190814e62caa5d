// Wraps a job's dataset, file system and observer so that other actors may run
// in the middle of their calls: samples are read, files written and the
// observer called beside the rest of the job, as in production's threads.
//
//   PreemptionPoints points(scheduler);
//   spec.train = points.In(spec.train);
//   spec.checkpoint.files = points.In(spec.checkpoint.files);
//   observer = points.In(observer);
//
// Null stays null.
//
// Lifetime: the object and the scheduler outlive the wrappers. Threads: one.

#ifndef ACTORS_SIM_PREEMPTION_POINTS_H_
#define ACTORS_SIM_PREEMPTION_POINTS_H_

#include <memory>

#include "actors/setup/job_report.h"
#include "actors/sim/seeded_scheduler.h"
#include "base/files/file_system.h"
#include "data/dataset.h"

namespace troupe::actors {

class PreemptionPoints {
 public:
  explicit PreemptionPoints(SeededScheduler& scheduler)
      : scheduler_(scheduler) {}

  data::DatasetPtr In(const data::DatasetPtr& dataset);
  // Each of these may be called once.
  base::FileSystem* In(base::FileSystem* files);
  JobObserver* In(JobObserver* observer);

 private:
  SeededScheduler& scheduler_;
  std::unique_ptr<base::FileSystem> files_;
  std::unique_ptr<JobObserver> observer_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_PREEMPTION_POINTS_H_
