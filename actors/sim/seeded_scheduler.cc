#include "actors/sim/seeded_scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/fibers/fiber.h"
#include "caf/execution_unit.hpp"
#include "caf/scheduled_actor.hpp"

namespace troupe::actors {
namespace {

// Weights of actors in the draw of the next one; one is drawn for each actor. A
// lazy actor is passed over for long stretches while others have messages.
constexpr std::uint32_t kEagerness[] = {32, 32, 8, 1};

// Number of points for each one at which a handler is suspended, on average.
constexpr std::uint32_t kPointsPerStand = 3;

// Returns null for a job that is no actor. Each step asks this of all jobs, and
// a dynamic_cast would compare the long names of classes.
const caf::scheduled_actor* ActorOf(const caf::resumable* job) {
  switch (job->subtype()) {
    case caf::resumable::scheduled_actor:
    case caf::resumable::io_actor:
      return static_cast<const caf::scheduled_actor*>(job);
    default:
      return nullptr;
  }
}

std::size_t IdOf(const caf::resumable* job) {
  if (const auto* actor = ActorOf(job)) return actor->id();
  const auto* const task = dynamic_cast<const SeededScheduler::Task*>(job);
  return task == nullptr ? 0 : task->id();
}

}  // namespace

// A fiber that runs handlers, one after the other, each for one message of an
// actor. It is the execution unit of these actors.
class SeededScheduler::Hand : public caf::execution_unit {
 public:
  explicit Hand(SeededScheduler& owner)
      : execution_unit(&owner.system_),
        owner_(owner),
        fiber_([this](base::Fiber::Yielder& yielder) {
          yielder_ = &yielder;
          while (true) {
            RunJob();
            yielder.Yield();
          }
        }) {}

  void Take(caf::resumable* job) { job_ = job; }
  // Returns the actor or task whose handler has not ended; null: none.
  caf::resumable* job() const { return job_; }
  void Resume() { fiber_.Resume(); }
  void Stand() { yielder_->Yield(); }

  // Called by CAF when the handler has woken `job` by a message.
  void exec_later(caf::resumable* job) override {
    owner_.coordinator_.jobs.push_back(job);
    owner_.Preempt();
  }

 private:
  void RunJob() {
    switch (job_->resume(this, /*max_throughput=*/1)) {
      case caf::resumable::resume_later:
        owner_.coordinator_.jobs.push_back(job_);
        break;
      case caf::resumable::done:
      case caf::resumable::awaiting_message:
        caf::intrusive_ptr_release(job_);
        break;
      case caf::resumable::shutdown_execution_unit:
        break;
    }
    job_ = nullptr;
  }

  SeededScheduler& owner_;
  caf::resumable* job_ = nullptr;
  base::Fiber::Yielder* yielder_ = nullptr;
  base::Fiber fiber_;
};

SimulatedConfig::SimulatedConfig() {
  set("scheduler.policy", caf::atom("testing"));
  set("logger.inline-output", true);
}

SeededScheduler::SeededScheduler(caf::actor_system& system,
                                 const Options& options)
    : system_(system),
      coordinator_(
          dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())),
      options_(options),
      key_(options.seed, nn::Purpose::kTest),
      draws_(key_, {0, 0, nn::HashName("schedule")}) {
  // The clock begins at one hour: a time of zero means "unset" in places.
  coordinator_.clock().current_time += std::chrono::hours(1);
}

SeededScheduler::~SeededScheduler() {
  TROUPE_CHECK(standing_.empty(), "a simulation ends when its handlers have");
}

bool SeededScheduler::Step() {
  if (!AnyMayRun()) return coordinator_.trigger_timeout();
  PassTime();
  const std::size_t pick = Pick();
  auto& jobs = coordinator_.jobs;
  if (pick < jobs.size()) {
    std::unique_ptr<Hand> hand = FreeHand();
    hand->Take(jobs[pick]);
    MixNext(jobs[pick]);
    jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(pick));
    Run(std::move(hand));
  } else {
    const auto found =
        standing_.begin() + static_cast<std::ptrdiff_t>(pick - jobs.size());
    std::unique_ptr<Hand> hand = std::move(*found);
    standing_.erase(found);
    Mix(IdOf(hand->job()));
    Run(std::move(hand));
  }
  return true;
}

void SeededScheduler::Run(std::unique_ptr<Hand> hand) {
  running_ = hand.get();
  hand->Resume();
  running_ = nullptr;
  (hand->job() == nullptr ? free_ : standing_).push_back(std::move(hand));
}

std::unique_ptr<SeededScheduler::Hand> SeededScheduler::FreeHand() {
  if (free_.empty()) return std::make_unique<Hand>(*this);
  std::unique_ptr<Hand> hand = std::move(free_.back());
  free_.pop_back();
  return hand;
}

void SeededScheduler::Preempt() {
  if (running_ == nullptr || draws_.Below(kPointsPerStand) != 0) return;
  running_->Stand();
}

void SeededScheduler::Stand() {
  if (running_ != nullptr) running_->Stand();
}

bool SeededScheduler::AnyMayRun() const {
  if (may_run_ == nullptr) return !idle();
  const auto may_run = [this](const caf::resumable* job) {
    return may_run_(IdOf(job));
  };
  return std::any_of(coordinator_.jobs.begin(), coordinator_.jobs.end(),
                     may_run) ||
         std::any_of(standing_.begin(), standing_.end(),
                     [&](const auto& hand) { return may_run(hand->job()); });
}

std::uint32_t SeededScheduler::WeightOf(const caf::resumable* job) {
  if (may_run_ != nullptr && !may_run_(IdOf(job))) return 0;
  return EagernessOf(job);
}

void SeededScheduler::PassTime() {
  if (options_.message_time_max <= absl::ZeroDuration()) return;
  const absl::Duration time =
      options_.message_time_max * (draws_.Bits32() * 0x1p-32);
  coordinator_.advance_time(absl::ToChronoNanoseconds(time));
}

// Draws an index among the actors that have messages, followed by the suspended
// handlers.
std::size_t SeededScheduler::Pick() {
  weights_.clear();
  std::uint32_t sum = 0;
  for (const caf::resumable* job : coordinator_.jobs) {
    weights_.push_back(sum += WeightOf(job));
  }
  for (const auto& hand : standing_) {
    weights_.push_back(sum += WeightOf(hand->job()));
  }
  if (weights_.size() == 1) return 0;
  const std::uint32_t draw = static_cast<std::uint32_t>(draws_.Bits32() % sum);
  return std::upper_bound(weights_.begin(), weights_.end(), draw) -
         weights_.begin();
}

// Mixes the next actor's number within its system, and the types of its
// message, into the hash; and values of atoms, which all have one type.
void SeededScheduler::MixNext(caf::resumable* job) {
  auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
  if (actor == nullptr) {
    if (const std::size_t id = IdOf(job)) Mix(id);
    return;
  }
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

// Draws by the actor's number within its system, which is the same in every
// run.
std::uint32_t SeededScheduler::EagernessOf(const caf::resumable* job) {
  const std::size_t id = IdOf(job);
  while (eagerness_.size() <= id) {
    nn::RandomStream stream(key_,
                            {0, static_cast<std::uint32_t>(eagerness_.size()),
                             nn::HashName("eagerness")});
    eagerness_.push_back(kEagerness[stream.Bits32() % 4]);
  }
  return eagerness_[id];
}

}  // namespace troupe::actors
