#include "actors/inference/inference_session.h"

#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/inference/inference_actor.h"
#include "actors/protocol/threaded_config.h"
#include "base/check.h"
#include "base/exception_text.h"

namespace troupe::actors {
namespace {

constexpr int kThreadsShared = 2;  // for the inference actor and the clock

// Arguments of InferenceSession::Open().
struct SessionParts {
  JobSpec spec;
  std::shared_ptr<const Checkpoint> checkpoint;
  nn::ModelFactory runs;
};

// The stages of a session, in threads of their own, up to their first error.
class SessionStages {
 public:
  static absl::StatusOr<std::unique_ptr<SessionStages>> Start(
      const SessionParts& parts) {
    // The model's factory is the user's code, and may throw.
    try {
      return StartThreads(parts);
    } catch (...) {
      return absl::InternalError(base::ExceptionText(std::current_exception()));
    }
  }
  ~SessionStages() {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = nullptr;
  }
  void Ask(const InferenceCallPtr& call) { caf::anon_send(actor_, call); }

 private:
  SessionStages(ProcessContextPtr process, const SessionParts& parts,
                std::unique_ptr<ThreadSupply> threads)
      : threads_(std::move(threads)), config_(*threads_), system_(config_) {
    actor_ =
        system_.spawn(InferenceBehavior, std::move(process), parts.checkpoint);
  }

  static absl::StatusOr<std::unique_ptr<SessionStages>> StartThreads(
      const SessionParts& parts) {
    TROUPE_ASSIGN_OR_RETURN(ProcessContextPtr process,
                            SetUpInference(parts.spec, *parts.checkpoint,
                                           /*hooks=*/nullptr, parts.runs));
    TROUPE_ASSIGN_OR_RETURN(
        std::unique_ptr<ThreadSupply> threads,
        StartActorThreads(static_cast<int>(process->ranks.size()) +
                          kThreadsShared));
    return absl::WrapUnique(
        new SessionStages(std::move(process), parts, std::move(threads)));
  }

  std::unique_ptr<ThreadSupply> threads_;
  ThreadedConfig config_;
  caf::actor_system system_;
  InferenceActor actor_;
};

class ThreadedSession : public InferenceSession {
 public:
  ThreadedSession(SessionParts parts, std::unique_ptr<SessionStages> stages)
      : parts_(std::move(parts)), stages_(std::move(stages)) {}

 private:
  std::shared_ptr<const InferenceCall> Ask(
      std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) override {
    auto call = std::make_shared<InferenceCall>(std::move(inputs), texts);
    stages_->Ask(call);
    return call;
  }
  absl::Status Reopen() override {
    stages_ = nullptr;  // its threads end before others start
    TROUPE_ASSIGN_OR_RETURN(stages_, SessionStages::Start(parts_));
    return absl::OkStatus();
  }

  const SessionParts parts_;
  std::unique_ptr<SessionStages> stages_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InferenceSession>> InferenceSession::Open(
    const JobSpec& spec, Checkpoint checkpoint, const nn::ModelFactory& runs) {
  SessionParts parts;
  parts.spec = spec;
  parts.checkpoint = std::make_shared<const Checkpoint>(std::move(checkpoint));
  parts.runs = runs;
  TROUPE_ASSIGN_OR_RETURN(auto stages, SessionStages::Start(parts));
  return std::make_unique<ThreadedSession>(std::move(parts), std::move(stages));
}

std::shared_ptr<const InferenceCall> InferenceSession::StartCall(
    std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) {
  const std::shared_ptr<const InferenceCall> last = last_.lock();
  if (failure_.ok() && last != nullptr && last->HasBeenSet()) {
    failure_ = last->Wait().status();
  }
  if (!failure_.ok()) {
    const absl::Status opened =
        absl::IsDeadlineExceeded(failure_) ? failure_ : Reopen();
    if (!opened.ok()) {
      auto failed = std::make_shared<InferenceCall>(std::move(inputs), texts);
      failed->Set(opened);
      return failed;
    }
    failure_ = absl::OkStatus();
  }
  const auto call = Ask(std::move(inputs), texts);
  last_ = call;
  return call;
}

absl::StatusOr<std::vector<nn::Tensor>> InferenceSession::RunAll(
    std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) {
  const auto call = StartCall(std::move(inputs), texts);
  const absl::StatusOr<InferenceAnswer>& answer = call->Wait();
  failure_ = answer.status();
  TROUPE_RETURN_IF_ERROR(failure_);
  peak_bytes_ = answer->peak_bytes;
  return answer->outputs;
}

absl::StatusOr<std::vector<nn::Tensor>> InferenceSession::Run(
    absl::Span<const nn::Tensor> inputs) {
  return RunAll({inputs.begin(), inputs.end()}, {});
}

absl::StatusOr<nn::Tensor> InferenceSession::Run(const nn::Tensor& input) {
  return Run(input, nn::TextPlaces());
}

absl::StatusOr<nn::Tensor> InferenceSession::Run(const nn::Tensor& tokens,
                                                 const nn::TextPlaces& texts) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<nn::Tensor> outputs,
                          RunAll({tokens}, texts));
  return std::move(outputs[0]);
}

}  // namespace troupe::actors
