#include "actors/inference/inference_session.h"

#include <utility>

#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/inference/inference_actor.h"
#include "actors/protocol/threaded_config.h"
#include "base/check.h"
#include "base/exception_text.h"

namespace troupe::actors {
namespace {

constexpr int kThreadsShared = 2;  // for the inference actor and the clock

class ThreadedSession : public InferenceSession {
 public:
  ThreadedSession(ProcessContextPtr process,
                  std::shared_ptr<const Checkpoint> checkpoint,
                  std::unique_ptr<ThreadSupply> threads)
      : threads_(std::move(threads)), config_(*threads_), system_(config_) {
    actor_ = system_.spawn(InferenceBehavior, std::move(process),
                           std::move(checkpoint));
  }
  ~ThreadedSession() override {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    actor_ = nullptr;
  }

 private:
  std::shared_ptr<const InferenceCall> Ask(
      std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) override {
    auto call = std::make_shared<InferenceCall>(std::move(inputs), texts);
    caf::anon_send(actor_, call);
    return call;
  }

  std::unique_ptr<ThreadSupply> threads_;
  ThreadedConfig config_;
  caf::actor_system system_;
  InferenceActor actor_;
};

absl::StatusOr<std::unique_ptr<InferenceSession>> OpenOnThreads(
    const JobSpec& spec, Checkpoint checkpoint, const nn::ModelFactory& runs) {
  TROUPE_ASSIGN_OR_RETURN(
      ProcessContextPtr process,
      SetUpInference(spec, checkpoint, /*hooks=*/nullptr, runs));
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<ThreadSupply> threads,
      StartActorThreads(static_cast<int>(process->ranks.size()) +
                        kThreadsShared));
  return std::make_unique<ThreadedSession>(
      std::move(process),
      std::make_shared<const Checkpoint>(std::move(checkpoint)),
      std::move(threads));
}

}  // namespace

absl::StatusOr<std::unique_ptr<InferenceSession>> InferenceSession::Open(
    const JobSpec& spec, Checkpoint checkpoint, const nn::ModelFactory& runs) {
  // The model's factory is the user's code, and may throw.
  try {
    return OpenOnThreads(spec, std::move(checkpoint), runs);
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

absl::StatusOr<std::vector<nn::Tensor>> InferenceSession::RunAll(
    std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) {
  TROUPE_RETURN_IF_ERROR(failure_);
  const auto call = Ask(std::move(inputs), texts);
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
