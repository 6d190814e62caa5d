#include "actors/sim/simulation.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/crew.h"
#include "actors/job_setup.h"
#include "base/check.h"
#include "caf/scheduled_actor.hpp"
#include "caf/scheduler/test_coordinator.hpp"
#include "nn/random/philox.h"

namespace troupe::actors {
namespace {

struct SimulatedConfig : caf::actor_system_config {
  SimulatedConfig() {
    add_message_types<caf::id_block::troupe>();
    set("scheduler.policy", caf::atom("testing"));
    set("logger.inline-output", true);
  }
};

// How eager an actor is; drawn once per actor. A lazy one is passed over for
// long stretches while others have messages.
constexpr std::uint32_t kEagerness[] = {32, 32, 8, 1};

// The one thread's scheduler: picks among the actors that have messages.
class SeededScheduler {
 public:
  SeededScheduler(caf::actor_system& system, std::uint64_t seed)
      : coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(
            system.scheduler())),
        key_(seed, nn::Purpose::kTest),
        draws_(key_, {0, 0, nn::HashName("schedule")}) {
    // Times of zero mean "unset" in places; start later.
    coordinator_.clock().current_time += std::chrono::hours(1);
  }

  nn::RandomStream& draws() { return draws_; }
  std::uint64_t hash() const { return hash_; }

  // Runs one message; moves time when there is none. False: nothing is left
  // that could ever happen.
  bool Step() {
    if (coordinator_.jobs.empty()) return coordinator_.trigger_timeout();
    auto& jobs = coordinator_.jobs;
    const std::size_t pick = Pick();
    MixNext(jobs[pick]);
    const auto begin = jobs.begin();
    std::rotate(begin, begin + pick, begin + pick + 1);
    coordinator_.run_once();
    return true;
  }

  void Mix(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 1099511628211u;  // FNV-1a, by words
  }

 private:
  std::size_t Pick() {
    const auto& jobs = coordinator_.jobs;
    if (jobs.size() == 1) return 0;
    std::uint32_t sum = 0;
    weights_.clear();
    for (caf::resumable* job : jobs) {
      weights_.push_back(sum += EagernessOf(job));
    }
    const std::uint32_t draw =
        static_cast<std::uint32_t>(draws_.Bits32() % sum);
    return std::upper_bound(weights_.begin(), weights_.end(), draw) -
           weights_.begin();
  }

  // Who is next, and what for: the actor's number within its system, and the
  // types of its message. Atoms are values of one type, so theirs count too.
  void MixNext(caf::resumable* job) {
    auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
    if (actor == nullptr) return;
    Mix(actor->id());
    caf::mailbox_element* next = actor->peek_at_next_mailbox_element();
    if (next == nullptr) return;
    const caf::type_erased_tuple& content = next->content();
    for (std::size_t i = 0; i < content.size(); ++i) {
      Mix(content.type(i).first);
      if (content.type(i).first != caf::type_nr<caf::atom_value>::value) {
        continue;
      }
      Mix(static_cast<std::uint64_t>(content.get_as<caf::atom_value>(i)));
    }
  }

  // By the actor's number within its system, which is the same in every run.
  std::uint32_t EagernessOf(caf::resumable* job) {
    const auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
    const std::size_t id = actor == nullptr ? 0 : actor->id();
    while (eagerness_.size() <= id) {
      nn::RandomStream stream(key_,
                              {0, static_cast<std::uint32_t>(eagerness_.size()),
                               nn::HashName("eagerness")});
      eagerness_.push_back(kEagerness[stream.Bits32() % 4]);
    }
    return eagerness_[id];
  }

  caf::scheduler::test_coordinator& coordinator_;
  const nn::RandomKey key_;
  nn::RandomStream draws_;
  std::uint64_t hash_ = 14695981039346656037u;
  std::vector<std::uint32_t> weights_, eagerness_;
};

// FNV-1a over the bytes: parameters belong to the trace.
std::uint64_t HashOf(const nn::Tensor& tensor) {
  std::uint64_t hash = 14695981039346656037u;
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    hash = (hash ^ bytes[i]) * 1099511628211u;
  }
  return hash;
}

}  // namespace

Simulation::Simulation(const JobSpec& spec, SimulationOptions options)
    : spec_(spec), options_(std::move(options)) {
  spec_.trace = &recorder_;
  // Nothing is measured: time stands still.
  if (spec_.plan.inline_bytes < 0) spec_.plan.inline_bytes = 0;
}

absl::StatusOr<JobResult> Simulation::Run(JobObserver* observer) {
  SimulatedConfig config;
  caf::actor_system system(config);
  SeededScheduler scheduler(system, options_.seed);
  TestHooks hooks;
  hooks.edit_table = options_.edit_table;
  hooks.wrap_group = options_.wrap_group;
  hooks.window_max = 1 + scheduler.draws().Bits32() % 4;
  hooks.checkpointers = 1 + scheduler.draws().Bits32() % 3;
  hooks.mailbox_rounds = [&scheduler] {
    return static_cast<int>(scheduler.draws().Bits32() % 4);
  };
  hooks.after_step = [&](int rank, std::int64_t step,
                         const nn::ParameterArena& arena) {
    if (arena.values().host_accessible()) {
      scheduler.Mix(HashOf(arena.values()));
    }
    if (options_.after_step) options_.after_step(rank, step, arena);
  };
  TROUPE_ASSIGN_OR_RETURN(ProcessContextPtr process,
                          SetUpJob(spec_, observer, &hooks));
  plan_ = *process->plan;
  SupervisorActor supervisor = SpawnCrew(system, process);
  while (!process->outcome.HasBeenSet()) {
    if (++messages_ <= options_.messages_max && scheduler.Step()) continue;
    Failure failure;
    failure.generation = process->generation;
    failure.actor = "simulation";
    failure.code = static_cast<int>(absl::StatusCode::kAborted);
    failure.message =
        messages_ > options_.messages_max
            ? absl::StrCat("no end after ", options_.messages_max, " messages")
            : "the job stands still and no timer is set";
    caf::anon_send(supervisor, failure);
    while (!process->outcome.HasBeenSet() && scheduler.Step()) {
    }
  }
  // The actors still have their exit messages to read.
  supervisor = nullptr;
  auto& jobs =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler()).jobs;
  while (!jobs.empty()) scheduler.Step();
  trace_hash_ = scheduler.hash();
  return process->outcome.Wait();
}

}  // namespace troupe::actors
