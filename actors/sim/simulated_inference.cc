#include "actors/sim/simulated_inference.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/inference/inference_actor.h"
#include "actors/sim/seeded_scheduler.h"
#include "actors/sim/slow_links.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

struct Config : SimulatedConfig {
  Config() { AddMessageTypes(*this); }
};

class Simulated : public SimulatedInference {
 public:
  explicit Simulated(const SimulatedInferenceOptions& options)
      : options_(options),
        system_(config_),
        scheduler_(system_, {options.seed, options.message_time_max}),
        links_(system_, scheduler_) {
    hooks_.wrap_link = [this](auto link) {
      return links_.Over(std::move(link));
    };
    hooks_.mailbox_rounds = [this] {
      return static_cast<int>(scheduler_.draws().Bits32() % 4);
    };
  }
  ~Simulated() override {
    if (actor_) caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = nullptr;
    // Runs the actors until they have read their exit messages.
    while (!scheduler_.idle()) scheduler_.Step();
  }

  absl::Status Begin(const JobSpec& spec, Checkpoint checkpoint) {
    spec_ = spec;
    checkpoint_ = std::make_shared<const Checkpoint>(std::move(checkpoint));
    return Reopen();
  }

  std::uint64_t trace_hash() const override { return scheduler_.hash(); }

 private:
  absl::Status Reopen() override {
    TROUPE_ASSIGN_OR_RETURN(ProcessContextPtr process,
                            SetUpInference(spec_, *checkpoint_, &hooks_));
    if (actor_) caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = system_.spawn(InferenceBehavior, std::move(process), checkpoint_);
    return absl::OkStatus();
  }
  std::shared_ptr<const InferenceCall> Ask(
      std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) override {
    auto call = std::make_shared<InferenceCall>(std::move(inputs), texts);
    caf::anon_send(actor_, call);
    std::int64_t messages = 0;
    while (!call->HasBeenSet() && ++messages <= options_.messages_max &&
           scheduler_.Step()) {
    }
    if (call->HasBeenSet()) return call;
    // The call will not be answered, so another one returns the error.
    auto failed = std::make_shared<InferenceCall>(std::vector<nn::Tensor>());
    failed->Set(absl::AbortedError(
        messages > options_.messages_max
            ? absl::StrCat("no answer after ", options_.messages_max,
                           " messages")
            : "the model stands still and no timer is set"));
    return failed;
  }

  const SimulatedInferenceOptions options_;
  Config config_;
  caf::actor_system system_;
  SeededScheduler scheduler_;
  SlowLinks links_;
  TestHooks hooks_;
  JobSpec spec_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  InferenceActor actor_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SimulatedInference>> SimulatedInference::Open(
    const JobSpec& spec, Checkpoint checkpoint,
    const SimulatedInferenceOptions& options) {
  auto session = std::make_unique<Simulated>(options);
  TROUPE_RETURN_IF_ERROR(session->Begin(spec, std::move(checkpoint)));
  return session;
}

}  // namespace troupe::actors
