// Records what a rank does while a profile is taken (op_profile.h). It belongs
// to the rank; a Profiler (troupe/profiler.h) starts it and takes the profile.
//
//   OpRecorder& recorder = rank.recorder();
//   recorder.Start({});
//   const int range = recorder.BeginRange("part", "zeros");
//   const Var x = rank.Zeros({4});
//   recorder.EndRange(range);
//   OpProfile profile = recorder.Finish();      // ends it
//
// It observes the ops of the rank's kernels (nn/kernels/op_observer.h) and the
// calls of its groups (Call), and gives each the module in which it was called:
// in a backward, the module whose forward recorded the node. A segment that is
// computed again, such as a checkpointed block, is one module. It is the trace
// of the step engines of the rank's models.
//
// On a device with queues it waits for the compute queue before and after each
// op, so that times are those of the device: nothing overlaps meanwhile.
//
// Cost: none while it does not record; else one to two microseconds an op,
// outside of the op's own time. Threads: the rank's own.

#ifndef TROUPE_PROFILE_OP_RECORDER_H_
#define TROUPE_PROFILE_OP_RECORDER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "actors/tracing/trace.h"
#include "nn/autograd/context.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/op_observer.h"
#include "nn/tensor/tensor.h"
#include "troupe/profile/op_profile.h"

namespace troupe {

class OpRecorder : public actors::TraceSink, private nn::OpObserver {
 public:
  struct Options {
    bool shapes = true;
    bool memory = true;
    std::int64_t events_max = 1 << 20;  // later ones are counted, not kept
  };

  // All outlive the recorder.
  OpRecorder(nn::Context& context, nn::Kernels& kernels, int rank);

  // Whether a Profiler has it, which may be recording or not.
  bool owned() const { return owned_; }
  void set_owned(bool owned) { owned_ = owned; }

  bool records() const { return ops_.has_value(); }
  // Begins an empty profile. Not while it records.
  void Start(const Options& options);
  // Drops what was recorded so far, and goes on from here.
  void Clear();
  // Ends the profile and returns it; ranges that are open end here.
  OpProfile Finish();

  // Begins a range of a name of the caller's; EndRange() gets the result. If it
  // does not record, or begins or ends a profile meanwhile, there is no range.
  int BeginRange(absl::string_view category, absl::string_view name);
  void EndRange(int range);

  // Records a call that is none of the kernels', such as a collective of the
  // program's, as an operator, to the end of a block: also if an exception
  // leaves it. `name` is a literal. If the profile begins anew meanwhile, the
  // call is none of it.
  class Call {
   public:
    Call(OpRecorder& recorder, const char* name,
         std::initializer_list<const nn::Tensor*> tensors);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    OpRecorder* const recorder_;  // null: nothing is recorded
    nn::OpCall call_;
    std::vector<const nn::Tensor*> tensors_;
    std::size_t depth_ = 0;  // number of ops that were open before
  };

  // actors::TraceSink:
  bool Wants(std::int64_t /*step*/) const override { return records(); }
  void Record(const actors::TraceEvent& event) override;

 private:
  // An op that has begun and not ended.
  struct OpenOp {
    double begin;
    double in_others;  // total time of the ops that it has called
  };
  // Texts that many events have in common.
  class Texts {
   public:
    // `all` has the empty text, as number 0.
    int NumberOf(const std::string& text, std::vector<std::string>& all);
    void Clear() { numbers_.clear(); }

   private:
    absl::flat_hash_map<std::string, int> numbers_;
  };
  struct OpenRange {
    int number;
    actors::TraceSlice slice;
  };

  // nn::OpObserver:
  std::int64_t BeginOp(const nn::OpCall& call) override;
  void EndOp(const nn::OpCall& call, std::int64_t token) override;

  // Notes the end of the innermost open op, which is `call`.
  void Close(const nn::OpCall& call);
  double Now() const;
  // Waits until the device has done what was enqueued.
  void Settle();
  int ModuleNow();
  int ShapesOf(const nn::OpCall& call);
  std::int64_t BytesNow() const;
  // Whether one more event is kept.
  bool HasRoom();

  nn::Context& context_;
  nn::Kernels& kernels_;
  const int rank_;
  bool owned_ = false;
  Options options_;
  std::optional<nn::ObservedOps> ops_;  // unset: it does not record
  std::chrono::steady_clock::time_point start_;
  OpProfile profile_;
  Texts modules_, shapes_;
  std::vector<OpenOp> open_;
  std::vector<OpenRange> ranges_;  // open, the innermost last
  int next_range_ = 0;
  std::vector<int> module_of_node_;  // index: node of the tape
  std::int64_t bytes_ = 0;           // at the end of the last op
};

}  // namespace troupe

#endif  // TROUPE_PROFILE_OP_RECORDER_H_
