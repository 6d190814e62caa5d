// The tasks that a program gives to the further devices of its rank
// (SpawnOptions::devices): a queue for each of them, whose strand runs the
// tasks one after the other.
//
//   DeviceLines lines(/*devices=*/2);
//   // On the program's strand:
//   lines.of(1).Post([](DeviceReplicas& replicas) { Use(replicas); });
//   lines.Close();
//   // On the strand of device 1, up to the end of the program:
//   while (DeviceTask task = lines.of(1).Await(strand)) task(replicas);
//
// A task that is not run, because the device has failed, is destroyed: what it
// would have answered is answered by its destructor.
//
// Threads: any; one posts, and one awaits.

#ifndef TROUPE_DEVICES_DEVICE_LINE_H_
#define TROUPE_DEVICES_DEVICE_LINE_H_

#include <deque>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "actors/program/program_rank.h"
#include "base/event.h"

namespace troupe {

class DeviceReplicas;  // troupe/devices/device_replica.h

using DeviceTask = std::function<void(DeviceReplicas& replicas)>;

class DeviceLine {
 public:
  // Adds a task. Does nothing but destroy it after Close() or Abandon().
  void Post(DeviceTask task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets Await() return null once all tasks are taken.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  // Destroys the tasks that are left: the device runs no more.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the next task on `strand`, without a limit, and returns it; null:
  // the program has ended.
  DeviceTask Await(actors::ProgramRank& strand) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::deque<DeviceTask> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Completed by the next task, or the end; unset: nobody waits.
  std::optional<base::Event> news_ ABSL_GUARDED_BY(mutex_);
};

// The queues of all devices but the first, which runs the program.
class DeviceLines {
 public:
  // `devices`: number of all, 1 at least.
  explicit DeviceLines(int devices) : lines_(devices - 1) {}

  int devices() const { return static_cast<int>(lines_.size()) + 1; }
  // `device`: from 1.
  DeviceLine& of(int device) { return lines_[device - 1]; }
  void Close() {
    for (DeviceLine& line : lines_) line.Close();
  }
  // Returns a number for a model, of which each device has a replica. Called on
  // the program's strand.
  int NewModel() { return models_++; }

 private:
  std::deque<DeviceLine> lines_;
  int models_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_DEVICE_LINE_H_
