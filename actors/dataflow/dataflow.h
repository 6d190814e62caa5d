// A pipeline of actors of one's own: stages, each an actor with a thread, that
// are joined by channels, which carry tensors.
//
//   Dataflow flow;
//   const Channel images = flow.AddChannel("images", /*capacity=*/4);
//   const Channel scores = flow.AddChannel("scores");
//   flow.AddStage<Reader>("reader", OpenReader).Source(images, &Reader::Next);
//   flow.AddStage("model").On(images, scores, Score);      // a plain function
//   flow.AddStage<Mean>("metrics", MakeMean)
//       .On(scores, &Mean::Add)
//       .AtEnd(&Mean::Print);
//   absl::Status status = RunDataflow(flow).status();  // run_dataflow.h
//
// The description is plain data: nothing runs, and no state is made, before it
// is given to RunDataflow(), in threads or in several processes, or to
// SimulateDataflow(). The same description goes to all of them.
//
// A stage has *handlers*. A handler takes one tensor from each of its inputs
// and gives one to each of its outputs: each time that all inputs have one and
// every output has room, it runs. So channels carry as many tensors as their
// sources give, in order, and tensors of one number belong together: several
// tensors between two stages are several channels. A handler without inputs is
// a source: it runs until it gives nothing. The handlers of a stage run one at
// a time, in its thread; where several may, the one that was added first does.
// A handler is one of
//
//     tensors in        what it is called with          what it returns
//     none (Source)     nothing                         StatusOr<optional<..>>
//     one               const nn::Tensor&               see below
//     any number        const Tensors&                  see below
//
// and returns absl::Status where it has no output, else a StatusOr of an
// nn::Tensor, or of Tensors where there are several. A member function is
// called on the state of its stage, which a factory makes in the stage's
// thread, in the process where the stage lives.
//
// Credits: a channel holds at most `capacity` tensors that were sent and whose
// handler has not returned yet. A stage whose outputs are full stands still,
// and so, in time, does what is before it.
//
// End: a channel ends with the handler that writes it, and a handler with its
// inputs. Inputs of one handler that end after different numbers of tensors are
// an error. A stage is done when its handlers are, after AtEnd().
//
// Deadlock: handlers must not go in a circle, which Check() refuses. Then what
// is not done can go on (Lee and Messerschmitt 1987, "Synchronous data flow":
// the homogeneous case), whatever the capacities are, as long as no condition
// set by When() waits for ever. Two handlers of one stage may stand in a
// circle: gradients come back to the stage that the activations have left.
//
// Errors: a handler's status, or what it throws, ends the run with the name of
// stage, channel and number in front.
// Threads: a description belongs to one; its functions are called in the
// threads of their stages. What they capture is shared by whoever holds the
// description.

#ifndef ACTORS_DATAFLOW_DATAFLOW_H_
#define ACTORS_DATAFLOW_DATAFLOW_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

using Tensors = std::vector<nn::Tensor>;

inline constexpr int kDataflowStagesMax = 256;
inline constexpr int kDataflowChannelsMax = 1024;
inline constexpr int kChannelCapacityMax = 1 << 16;

// A channel of a description, by its number there.
struct Channel {
  int number = -1;
};

// A description as the engine reads it; users write it by Dataflow's methods.
struct HandlerSpec {
  // Nothing: the source has no more.
  using Result = absl::StatusOr<std::optional<Tensors>>;

  std::vector<int> inputs, outputs;  // channels
  std::function<Result(void* state, const Tensors& inputs)> run;
  std::function<bool(void* state)> when;  // null: always
};
struct StageSpec {
  std::string name;
  int process = 0;
  // Null: it has no state.
  std::function<absl::StatusOr<std::shared_ptr<void>>()> make_state;
  std::vector<HandlerSpec> handlers;
  std::function<absl::Status(void* state)> at_end;  // may be null
};
struct ChannelSpec {
  std::string name;
  int capacity = 2;
};

namespace internal {

// What a handler returns, as the engine has it.
inline absl::StatusOr<Tensors> AsTensors(absl::Status status) {
  if (!status.ok()) return status;
  return Tensors();
}
inline absl::StatusOr<Tensors> AsTensors(absl::StatusOr<nn::Tensor> one) {
  if (!one.ok()) return std::move(one).status();
  return Tensors{*std::move(one)};
}
inline absl::StatusOr<Tensors> AsTensors(absl::StatusOr<Tensors> tensors) {
  return tensors;
}
inline HandlerSpec::Result AsResult(
    absl::StatusOr<std::optional<nn::Tensor>> next) {
  if (!next.ok()) return std::move(next).status();
  if (!next->has_value()) return std::nullopt;
  return Tensors{**std::move(next)};
}
inline HandlerSpec::Result AsResult(HandlerSpec::Result next) { return next; }

// Calls `function` with all inputs, or with the only one.
template <typename Function, typename... State>
absl::StatusOr<Tensors> Call(Function& function, const Tensors& inputs,
                             State&... state) {
  if constexpr (std::is_invocable_v<Function&, State&..., const Tensors&>) {
    return AsTensors(std::invoke(function, state..., inputs));
  } else {
    static_assert(std::is_invocable_v<Function&, State&..., const nn::Tensor&>,
                  "a handler takes a const nn::Tensor& or a const Tensors&");
    if (inputs.size() != 1) {
      return absl::InvalidArgumentError(
          "it takes one tensor, but its handler has several inputs");
    }
    return AsTensors(std::invoke(function, state..., inputs.front()));
  }
}

// std::monostate would do; a name of its own shows in errors of compilers.
struct NoState {};

}  // namespace internal

class Dataflow;

// Adds handlers to a stage of a description.
template <typename State>
class StageBuilder {
 public:
  // Without inputs.
  template <typename Function>
  StageBuilder& Source(std::vector<Channel> outputs, Function next) {
    return Add({}, std::move(outputs),
               [next](void* state, const Tensors&) mutable {
                 if constexpr (kHasState) {
                   return internal::AsResult(
                       std::invoke(next, *static_cast<State*>(state)));
                 } else {
                   return internal::AsResult(next());
                 }
               });
  }
  template <typename Function>
  StageBuilder& Source(Channel output, Function next) {
    return Source(std::vector<Channel>{output}, std::move(next));
  }

  template <typename Function>
  StageBuilder& On(std::vector<Channel> inputs, std::vector<Channel> outputs,
                   Function function) {
    return Add(
        std::move(inputs), std::move(outputs),
        [function](void* state,
                   const Tensors& tensors) mutable -> HandlerSpec::Result {
          absl::StatusOr<Tensors> out;
          if constexpr (kHasState) {
            out =
                internal::Call(function, tensors, *static_cast<State*>(state));
          } else {
            out = internal::Call(function, tensors);
          }
          if (!out.ok()) return std::move(out).status();
          return std::optional<Tensors>(*std::move(out));
        });
  }
  template <typename Function>
  StageBuilder& On(Channel input, Channel output, Function function) {
    return On(std::vector<Channel>{input}, std::vector<Channel>{output},
              std::move(function));
  }
  template <typename Function>
  StageBuilder& On(Channel input, Function function) {
    return On(std::vector<Channel>{input}, std::vector<Channel>(),
              std::move(function));
  }

  // The handler added last runs only while `condition` holds. It is asked
  // again after each handler of its stage; what it reads is the stage's own.
  template <typename Condition>
  StageBuilder& When(Condition condition) {
    stage().handlers.back().when = [condition](void* state) mutable {
      if constexpr (kHasState) {
        return std::invoke(condition, *static_cast<State*>(state));
      } else {
        return condition();
      }
    };
    return *this;
  }

  // Called when all handlers are done; its error is the run's.
  template <typename Function>
  StageBuilder& AtEnd(Function function) {
    stage().at_end = [function](void* state) mutable {
      if constexpr (kHasState) {
        return std::invoke(function, *static_cast<State*>(state));
      } else {
        return function();
      }
    };
    return *this;
  }

  // Where the stage lives, if there are several processes; 0 unless it is set.
  StageBuilder& InProcess(int process) {
    stage().process = process;
    return *this;
  }

 private:
  friend class Dataflow;
  static constexpr bool kHasState = !std::is_same_v<State, internal::NoState>;

  StageBuilder(Dataflow* flow, int number) : flow_(flow), number_(number) {}
  inline StageSpec& stage();
  template <typename Run>
  StageBuilder& Add(std::vector<Channel> inputs, std::vector<Channel> outputs,
                    Run run) {
    HandlerSpec& handler = stage().handlers.emplace_back();
    for (Channel each : inputs) handler.inputs.push_back(each.number);
    for (Channel each : outputs) handler.outputs.push_back(each.number);
    handler.run = std::move(run);
    return *this;
  }

  Dataflow* const flow_;  // outlives the builder
  const int number_;
};

class Dataflow {
 public:
  Channel AddChannel(std::string name, int capacity = 2) {
    channels_.push_back({std::move(name), capacity});
    return Channel{static_cast<int>(channels_.size()) - 1};
  }

  // A stage without a state, or whose functions keep their own.
  StageBuilder<internal::NoState> AddStage(std::string name) {
    stages_.emplace_back().name = std::move(name);
    return {this, static_cast<int>(stages_.size()) - 1};
  }
  // `make` returns a std::unique_ptr<State>, or a StatusOr of one.
  template <typename State, typename Factory>
  StageBuilder<State> AddStage(std::string name, Factory make) {
    StageSpec& stage = stages_.emplace_back();
    stage.name = std::move(name);
    stage.make_state =
        [make]() mutable -> absl::StatusOr<std::shared_ptr<void>> {
      absl::StatusOr<std::unique_ptr<State>> state = make();
      if (!state.ok()) return std::move(state).status();
      if (*state == nullptr) {
        return absl::InvalidArgumentError("its factory made no state");
      }
      return std::shared_ptr<void>(std::shared_ptr<State>(*std::move(state)));
    };
    return {this, static_cast<int>(stages_.size()) - 1};
  }

  const std::vector<StageSpec>& stages() const { return stages_; }
  const std::vector<ChannelSpec>& channels() const { return channels_; }

  // Which handler writes a channel and which one reads it, by number of stage
  // and handler. For a description that Check() lets pass.
  struct End {
    int stage = -1, handler = -1;
  };
  End WriterOf(int channel) const;
  End ReaderOf(int channel) const;

  // Whether it can run in so many processes.
  //   kInvalidArgument: a name is empty or there twice; a stage has no handler
  //     or lies in a process that there is not; a channel has not one writer
  //     and one reader, or no room; handlers go in a circle. Names the culprit.
  absl::Status Check(int processes = 1) const;

  // A line for each handler, such as
  //   second (process 1): activations[2], labels[2] -> gradients[2], losses[2]
  // Equal texts are equal descriptions, but for what the functions compute.
  std::string ToString() const;

 private:
  template <typename State>
  friend class StageBuilder;

  absl::Status CheckNames() const;
  absl::Status CheckStages(int processes) const;
  absl::Status CheckChannels() const;
  absl::Status CheckCircles() const;

  std::vector<StageSpec> stages_;
  std::vector<ChannelSpec> channels_;
};

template <typename State>
StageSpec& StageBuilder<State>::stage() {
  return flow_->stages_[number_];
}

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_DATAFLOW_H_
