// A user-defined pipeline: stages, each an actor with a thread of its own, are
// connected by channels, which carry tensors.
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
// The description is plain data: no stage runs, and no state is made, before it
// is passed to RunDataflow(), which uses threads of one or several processes,
// or to SimulateDataflow(). All of them take the same description.
//
// A stage has *handlers*. A handler takes one tensor from each of its inputs
// and writes one to each of its outputs; it runs each time that all inputs have
// a tensor and every output has room. So each channel carries as many tensors
// as its source makes, in order, and the n-th tensors of all channels belong
// together. To send several tensors between two stages, use several channels. A
// handler without inputs is a source: it runs until it returns nullopt. The
// handlers of a stage run one at a time, in its thread; if several may run, the
// one added first does. A handler is one of
//
//     tensors in        what it is called with          what it returns
//     none (Source)     nothing                         StatusOr<optional<..>>
//     one               const nn::Tensor&               see below
//     any number        const Tensors&                  see below
//
// and returns absl::Status if it has no output, else a StatusOr of an
// nn::Tensor, or of Tensors if it has several outputs. A member function is
// called on the state of its stage, which a factory makes in the stage's
// thread, in the process where the stage lives.
//
// Credits: a channel holds at most `capacity` tensors that were sent and whose
// handler has not returned yet. A stage whose outputs are full does not run,
// and in time the stages before it stop too (back-pressure).
//
// End: a channel ends when the handler that writes it ends, and a handler ends
// with its inputs. If the inputs of one handler end after different numbers of
// tensors, that is an error. A stage is done when all its handlers have ended
// and AtEnd() has returned.
//
// Deadlock: Check() refuses cycles of handlers. Without cycles a run that is
// not done can always continue (Lee and Messerschmitt 1987, "Synchronous data
// flow": the homogeneous case), whatever the capacities are, unless a condition
// set by When() stays false for ever. A cycle of stages is allowed, if its
// handlers form none: gradients return to the stage that sent the activations.
//
// Errors: a handler's status, or the exception that it throws, ends the run;
// the message begins with the stage, the channel and the tensor's number.
// Threads: a description belongs to one thread; its functions are called in the
// threads of their stages. All copies of a description share the objects to
// which its functions hold pointers or references.

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

// Identifies a channel by its number in the description.
struct Channel {
  int number = -1;
};

// The stored form of a description. Users make it by Dataflow's methods.
struct HandlerSpec {
  // Nullopt: the source has no more tensors.
  using Result = absl::StatusOr<std::optional<Tensors>>;

  std::vector<int> inputs, outputs;  // numbers of channels
  std::function<Result(void* state, const Tensors& inputs)> run;
  std::function<bool(void* state)> when;  // null: always
};
struct StageSpec {
  std::string name;
  int process = 0;
  // Null: the stage has no state.
  std::function<absl::StatusOr<std::shared_ptr<void>>()> make_state;
  std::vector<HandlerSpec> handlers;
  std::function<absl::Status(void* state)> at_end;  // may be null
};
struct ChannelSpec {
  std::string name;
  int capacity = 2;
};

namespace internal {

// Convert the result of a handler to the form in HandlerSpec.
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

// Calls `function` with all inputs, or with the only input.
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
          "it takes one nn::Tensor, but its handler has several inputs; take "
          "const Tensors&");
    }
    return AsTensors(std::invoke(function, state..., inputs.front()));
  }
}

// Like std::monostate, but with a name that explains compiler errors.
struct NoState {};

}  // namespace internal

class Dataflow;

// Adds handlers to a stage of a description.
template <typename State>
class StageBuilder {
 public:
  // Adds a handler without inputs.
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

  // Adds a handler with inputs.
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

  // Makes the handler added last run only while `condition` returns true. It is
  // called again after each handler of its stage, so it should depend on the
  // stage's state only.
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

  // Sets a function to call when all handlers have ended. If it fails, the run
  // fails.
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

  // Sets the process in which the stage lives; by default 0.
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

  // Adds a stage without a state; its functions may keep their own.
  StageBuilder<internal::NoState> AddStage(std::string name) {
    stages_.emplace_back().name = std::move(name);
    return {this, static_cast<int>(stages_.size()) - 1};
  }
  // Adds a stage with a state. `make` returns a std::unique_ptr<State>, or a
  // StatusOr of one.
  template <typename State, typename Factory>
  StageBuilder<State> AddStage(std::string name, Factory make) {
    StageSpec& stage = stages_.emplace_back();
    stage.name = std::move(name);
    stage.make_state =
        [make]() mutable -> absl::StatusOr<std::shared_ptr<void>> {
      absl::StatusOr<std::unique_ptr<State>> state = make();
      if (!state.ok()) return std::move(state).status();
      if (*state == nullptr) {
        return absl::InvalidArgumentError(
            "the factory that AddStage() got returned null; return a state");
      }
      return std::shared_ptr<void>(std::shared_ptr<State>(*std::move(state)));
    };
    return {this, static_cast<int>(stages_.size()) - 1};
  }

  const std::vector<StageSpec>& stages() const { return stages_; }
  const std::vector<ChannelSpec>& channels() const { return channels_; }

  // The handler at one end of a channel, by number of stage and handler.
  // WriterOf() and ReaderOf() need a description that Check() accepts.
  struct End {
    int stage = -1, handler = -1;
  };
  End WriterOf(int channel) const;
  End ReaderOf(int channel) const;

  // Checks whether the description can run in this number of processes.
  //   kInvalidArgument: a name is empty or used twice; a stage has no handler,
  //     or its process does not exist; a channel does not have exactly one
  //     writer and one reader, or has no room; handlers form a cycle. Names the
  //     stage or channel.
  absl::Status Check(int processes = 1) const;

  // Returns a line for each handler, such as
  //   second (process 1): activations[2], labels[2] -> gradients[2], losses[2]
  // If two texts are equal, so are the descriptions, except for the functions.
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
