// A job to which the system refuses a thread or memory when it starts:
// Job::Start returns an error or a job that runs, and leaks nothing.

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/job.h"
#include "actors/setup/job_setup.h"
#include "actors/supervision/spawn_crew.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace {

constexpr int kNever = std::numeric_limits<int>::max();
std::atomic<int> threads_left{kNever};
thread_local int allocations_left = kNever;

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attr,
                              void* (*run)(void*), void* arg) noexcept {
  using Create =
      int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create =
      reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left.fetch_sub(1) <= 0) return EAGAIN;
  return create(thread, attr, run, arg);
}

void* operator new(std::size_t size) {
  if (allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace troupe::actors {
namespace {

// The system grants from none to all of the threads that the job needs. The job
// runs without helper threads that are refused later.
TEST(RefusedStart, AThreadThatIsRefusedIsAnErrorOrNotNeeded) {
  const int needed = JobThreads(2);
  for (int granted = 0; granted <= needed; ++granted) {
    threads_left = granted;
    const absl::Status status = RunJob(TinyCnnJob(2, 3)).status();
    threads_left = kNever;
    EXPECT_EQ(status.code(), granted < needed
                                 ? absl::StatusCode::kResourceExhausted
                                 : absl::StatusCode::kOk)
        << granted << " threads: " << status;
  }
}

// If any allocation is refused while the actors are spawned, those that exist
// end, and so does the system.
TEST(RefusedStart, ACrewThatIsNotWholeEnds) {
  bool refused = true;
  int failed = 0;
  for (int granted = 0; refused; ++granted) {
    const ProcessContextPtr process =
        SetUpJob(TinyCnnJob(2, 3), /*observer=*/nullptr).value().process;
    const auto threads = StartActorThreads(JobThreads(2)).value();
    caf::actor_system_config config;
    AddMessageTypes(config);
    RunOnThreads(*threads, config);
    caf::actor_system system(config);
    allocations_left = granted;
    try {
      SpawnCrew(system, process, /*checkpoint=*/nullptr);
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    refused = allocations_left < 0;
    allocations_left = kNever;
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace troupe::actors
