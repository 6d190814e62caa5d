// Activations and gradients between the stages of a pipeline, as messages of a
// group of the program's.
//
//   StageMessages messages(rank, plan);
//   messages.Begin(actors::StepKind::kTrain, step);
//   messages.Send(/*stage=*/1, /*forward=*/true, /*micro_batch=*/0, tensors);
//   while (auto transfer = messages.Take()) {
//     base::OrThrow(engine.Deliver(*transfer));
//   }
//   messages.AddTo(started);                    // for ProgramRank::AwaitAny()
//
// Every stage takes what it is sent in one direction in the order of
// micro-batches, as all tables send it: while a micro-batch comes the next one
// waits at its sender, and no receive needs memory for more than one. Shapes
// are those of the plan; a gradient that a stage does not have is a message
// without elements. What goes to a stage of the same rank is kept here.
//
// Errors: base::StatusError, those of the group. Threads: the rank's own.

#ifndef TROUPE_STAGES_STAGE_MESSAGES_H_
#define TROUPE_STAGES_STAGE_MESSAGES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "actors/chunks/step/step_types.h"
#include "actors/program/program_rank.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"
#include "troupe/rank.h"

namespace troupe {

class StageMessages {
 public:
  // Makes the group of the ranks along pp, which all call it. Both references
  // outlive it.
  //   kUnimplemented: such groups have no messages; says what to set.
  StageMessages(Rank& rank, const pipeline::Plan& plan);
  ~StageMessages();
  StageMessages(const StageMessages&) = delete;
  StageMessages& operator=(const StageMessages&) = delete;

  // Begins a step: of training with all micro-batches, or a forward of one. The
  // messages of the last one have ended.
  void Begin(actors::StepKind kind, std::int64_t step);
  // Sends tensors that kCompute has computed (actors::EngineHost::Send).
  void Send(int stage, bool forward, int micro_batch,
            const nn::TensorList& tensors);
  // Removes and returns what has come whole; none has: nullopt.
  std::optional<actors::Transfer> Take();
  // Whether something that was sent is still in use.
  bool sending();
  // Forgets what was sent and is no longer in use. Returns whether there was
  // something.
  bool DropSent();
  // Adds the messages under way.
  void AddTo(std::vector<actors::StartedIn>& started) const;
  // Moves messages, unless another strand does.
  void Drive();
  // Ends all messages with `why` on all ranks: peers use the memory no more.
  void Abort(const absl::Status& why);

 private:
  struct Receive {
    nn::Tensor into;
    comm::Arrival arrival;
    base::Event done;
  };
  // Messages to one stage from one side.
  struct Channel {
    int stage = 0;
    bool forward = true;
    int from = 0;  // number of the sender along pp
    int micro_batch = 0;
    std::deque<Receive> tensors;  // its tensors; empty: none comes
  };
  struct Sent {
    // Memory that is read until then: by the device, and by the group.
    nn::Tensor tensor, data;
    base::Event done;
  };

  // The tensors of a micro-batch that stage `stage` receives in a forward, and
  // whose gradients it sends back.
  std::vector<nn::TensorSpec> TensorsInto(int stage) const;
  int RankOf(int stage) const { return plan_.stages[stage].place.pp; }
  void AddChannel(int stage, bool forward, int from);
  void StartReceives(Channel& channel);

  Rank& rank_;
  const pipeline::Plan& plan_;
  const int number_;                           // this rank's along pp
  std::shared_ptr<comm::Communicator> group_;  // null: all stages are here
  actors::StepKind kind_ = actors::StepKind::kTrain;
  std::int64_t step_ = 0;
  int micro_batches_ = 0;
  std::vector<Channel> channels_;
  std::deque<Sent> sent_;
  std::deque<actors::Transfer> local_;  // to stages of this rank
};

}  // namespace troupe

#endif  // TROUPE_STAGES_STAGE_MESSAGES_H_
