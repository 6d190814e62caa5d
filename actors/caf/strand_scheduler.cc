#include "actors/caf/strand_scheduler.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/check.h"
#include "caf/event_based_actor.hpp"
#include "caf/exit_reason.hpp"
#include "caf/logger.hpp"
#include "caf/send.hpp"

namespace troupe::actors {
namespace {

// Prints CAF's own messages about actors, such as an unhandled exception.
caf::behavior PrinterBehavior(caf::event_based_actor* self, std::FILE* out) {
  self->set_default_handler(caf::drop);
  return {[=](caf::add_atom, caf::actor_id, const std::string& text) {
    std::fputs(text.c_str(), out);
  }};
}

// CAF keeps a thread-local logger. Its first use makes the C library register a
// destructor, and the process ends if there is no memory for those few bytes.
// So this first allocates and frees a block, one too large for malloc()'s
// thread cache, so that calloc() finds it afterwards. Returns false if there is
// no memory.
bool PrepareForActors() {
  constexpr std::size_t kBytes = 4096;
  void* volatile const memory = std::malloc(kBytes);
  if (memory == nullptr) return false;
  std::free(memory);
  caf::logger::set_current_actor_system(nullptr);
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadSupply>> StartActorThreads(int count) {
  return ThreadSupply::Start(count, PrepareForActors);
}

StrandScheduler::StrandScheduler(caf::actor_system& system,
                                 ThreadSupply& threads)
    : abstract_coordinator(system),
      threads_(threads),
      strand_host_(*this),
      shared_(*this) {}

void StrandScheduler::start() {
  running_ = true;
  threads_.Run([this] { shared_.Run(); });
  threads_.Run([this] { clock_.run_dispatch_loop(); });
  utility_actors_[printer_id] =
      system().spawn<caf::hidden + caf::lazy_init>(PrinterBehavior, stderr);
}

// CAF calls this when all actors have ended, except a few of its own.
void StrandScheduler::stop() {
  caf::anon_send_exit(utility_actors_[printer_id], caf::exit_reason::kill);
  clock_.cancel_dispatch_loop();
  shared_.Close();
  for (Lane* lane : Strands()) lane->Close();
  threads_.Join();
  for (Lane* lane : Strands()) lane->CleanUp();
  shared_.CleanUp();
  // The printer is released last: CAF counts an actor as ended a moment too
  // early, and its last action may be a message to the printer.
  utility_actors_[printer_id] = nullptr;
  running_ = false;
}

std::vector<StrandScheduler::Lane*> StrandScheduler::Strands() {
  absl::MutexLock lock(&mutex_);
  std::vector<Lane*> lanes;
  for (const std::unique_ptr<Lane>& lane : lanes_) lanes.push_back(lane.get());
  return lanes;
}

void StrandScheduler::enqueue(caf::resumable* job) { LaneOf(job).Push(job); }

void StrandScheduler::StartStrand(caf::resumable* job) {
  // The system already counts the actor, so it is cleaned up if this throws.
  auto not_started = absl::MakeCleanup([job] { cleanup_and_release(job); });
  auto owned = std::make_unique<Lane>(*this);
  Lane* const lane = owned.get();
  {
    absl::MutexLock lock(&mutex_);
    lanes_.push_back(std::move(owned));
    lane_of_[job] = lane;
  }
  threads_.Run([lane] { lane->RunStrand(); });
  lane->Push(job);
  std::move(not_started).Cancel();
}

void StrandScheduler::Forget(caf::resumable* job) {
  absl::MutexLock lock(&mutex_);
  lane_of_.erase(job);
}

StrandScheduler::Lane& StrandScheduler::LaneOf(caf::resumable* job) {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = lane_of_.find(job);
  return found == lane_of_.end() ? shared_ : *found->second;
}

void StrandScheduler::Lane::Push(caf::resumable* job) {
  absl::MutexLock lock(&mutex_);
  jobs_.push_back(job);
  changed_.Signal();
}

void StrandScheduler::Lane::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  changed_.Signal();
}

caf::resumable* StrandScheduler::Lane::Pop() {
  absl::MutexLock lock(&mutex_);
  while (jobs_.empty() && !closed_) changed_.Wait(&mutex_);
  if (jobs_.empty()) return nullptr;
  caf::resumable* const job = jobs_.front();
  jobs_.pop_front();
  return job;
}

bool StrandScheduler::Lane::Resume(caf::resumable* job,
                                   std::size_t messages_max) {
  switch (job->resume(this, messages_max)) {
    case caf::resumable::resume_later:
      Push(job);
      return false;
    case caf::resumable::awaiting_message:
      caf::intrusive_ptr_release(job);
      return false;
    case caf::resumable::done:
    case caf::resumable::shutdown_execution_unit:
      break;
  }
  scheduler_.Forget(job);
  caf::intrusive_ptr_release(job);
  return true;
}

void StrandScheduler::Lane::Run() {
  while (caf::resumable* const job = Pop()) {
    Resume(job, scheduler_.max_throughput());
  }
}

void StrandScheduler::Lane::RunStrand() {
  while (caf::resumable* const job = Pop()) {
    if (Resume(job, std::numeric_limits<std::size_t>::max())) return;
  }
}

void StrandScheduler::Lane::CleanUp() {
  std::deque<caf::resumable*> jobs;
  {
    absl::MutexLock lock(&mutex_);
    jobs.swap(jobs_);
  }
  for (caf::resumable* job : jobs) cleanup_and_release(job);
}

void RunOnThreads(ThreadSupply& threads, caf::actor_system_config& config) {
  config.module_factories.push_back([&threads](caf::actor_system& system) {
    return new StrandScheduler(system, threads);
  });
}

caf::execution_unit* StrandHostOf(caf::actor_system& system) {
  if (!system.scheduler().detaches_utility_actors()) return nullptr;
  auto* const scheduler = dynamic_cast<StrandScheduler*>(&system.scheduler());
  TROUPE_CHECK(scheduler != nullptr, "a system of threads has this scheduler");
  return scheduler->strand_host();
}

}  // namespace troupe::actors
