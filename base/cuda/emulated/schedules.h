// Tests of kernels: checks that a kernel's result does not depend on the
// schedule.
//
//   EXPECT_EQ(emulated_cuda::CompareSchedules([&] {
//     std::vector<float> sums = emulated_cuda::Poisoned<float>(rows);
//     EXPECT_TRUE(RowSums(rows, in.data(), sums.data(), stream).ok());
//     return sums;
//   }), "");
//
// Shared memory and the outputs contain a poison that differs between
// schedules, so that an element which is read before it is written, or never
// written, changes the result too. Results are compared bit for bit.
//
// Threads: one at a time, since the schedule is global.

#ifndef BASE_CUDA_EMULATED_SCHEDULES_H_
#define BASE_CUDA_EMULATED_SCHEDULES_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "base/cuda/emulated/executor.h"

namespace emulated_cuda {

// Returns the seven schedules of CompareSchedules(): both orders, each with two
// poisons, and three random orders.
inline std::vector<Schedule> AllSchedules() {
  return {{Order::kForward, 1, 0xFF}, {Order::kForward, 1, 0x7E},
          {Order::kReverse, 1, 0xFF}, {Order::kReverse, 1, 0xFE},
          {Order::kRandom, 1, 0xFF},  {Order::kRandom, 2, 0x7E},
          {Order::kRandom, 3, 0xFF}};
}

// Returns "random order, seed 2, poison 0x7e".
std::string ToString(const Schedule& schedule);

// Returns a buffer for an output, [count], filled with the current schedule's
// poison.
template <typename T>
std::vector<T> Poisoned(std::size_t count) {
  std::vector<T> values(count);
  std::memset(static_cast<void*>(values.data()), CurrentSchedule().poison,
              count * sizeof(T));
  return values;
}

// Sets a schedule for a scope, and restores the former one at its end.
class ScopedSchedule {
 public:
  explicit ScopedSchedule(const Schedule& schedule)
      : before_(CurrentSchedule()) {
    SetSchedule(schedule);
  }
  ScopedSchedule(const ScopedSchedule&) = delete;
  ScopedSchedule& operator=(const ScopedSchedule&) = delete;
  ~ScopedSchedule() { SetSchedule(before_); }

 private:
  const Schedule before_;
};

// Calls run(), which launches kernels and returns their output as a vector,
// once under each of AllSchedules(). Returns "" if the outputs agree bit for
// bit, otherwise the first schedule that differs and where.
template <typename Run>
std::string CompareSchedules(Run run) {
  const std::vector<Schedule> schedules = AllSchedules();
  const auto under = [&](const Schedule& schedule) {
    const ScopedSchedule scoped(schedule);
    return run();
  };
  const auto first = under(schedules[0]);
  for (std::size_t s = 1; s < schedules.size(); ++s) {
    const auto now = under(schedules[s]);
    if (now.size() != first.size()) {
      return ToString(schedules[s]) + ": another number of elements";
    }
    std::size_t differing = 0;
    std::size_t at = 0;
    for (std::size_t i = now.size(); i-- > 0;) {
      if (std::memcmp(&now[i], &first[i], sizeof(now[i])) == 0) continue;
      ++differing;
      at = i;
    }
    if (differing == 0) continue;
    return ToString(schedules[s]) + ": " + std::to_string(differing) + " of " +
           std::to_string(now.size()) + " elements differ from the " +
           ToString(schedules[0]) + ", the first at index " +
           std::to_string(at);
  }
  return "";
}

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_SCHEDULES_H_
