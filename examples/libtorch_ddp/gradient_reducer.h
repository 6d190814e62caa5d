// Gradient reduction behind libtorch's backward, as by the Reducer of PyTorch's
// DDP, with the collectives of Troupe.
//
//   GradientReducer reducer(rank, model->named_parameters(), {});
//   at::Tensor loss = model->forward(x).sum();
//   loss.backward();                 // returns when all gradients are averaged
//
// Each parameter has a hook that libtorch calls when the gradient of a backward
// is complete (a post-accumulate-grad hook). The hook copies the gradient to
// its place in a bucket and makes that place the parameter's grad(). A bucket
// with all its gradients goes to the rank's communication strand, a thread that
// all-reduces it while the backward goes on. A callback at the end of the
// backward waits for the last bucket.
//
// Buckets are filled in reverse order of the parameters and reduced in one
// order on all ranks. A parameter that gets no gradient in a backward takes
// part with the one that it has, or with zeros.
//
// Memory: the parameters' size, for the buckets; libtorch's own gradients are
// freed one by one.
// Errors: base::StatusError. kInvalidArgument names a parameter that is not
// contiguous, on the CPU, and of the first one's dtype. at::Tensor::backward()
// throws the errors of the collectives.
// Threads: the rank's own.
// Lifetime: a reducer that is destroyed takes the gradients in its buckets from
// the parameters; during a backward it also ends its group on all ranks.
// Source: Li et al. 2020, arXiv:2006.15704.

#ifndef GRADIENT_REDUCER_H_
#define GRADIENT_REDUCER_H_

#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/tracing/trace.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "troupe/rank.h"

struct ReducerOptions {
  // Limits on the size of the first bucket and of the others, in MiB.
  double first_bucket_mb = 1;
  double bucket_cap_mb = 25;
  // Receives times of gradients, buckets and reductions; null: no trace.
  troupe::actors::TraceSink* trace = nullptr;
};

class GradientReducer {
 public:
  using Parameters = torch::OrderedDict<std::string, at::Tensor>;

  // All ranks construct it, with parameters of equal shapes in equal order.
  GradientReducer(troupe::Rank& rank, const Parameters& parameters,
                  const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  std::size_t buckets() const { return buckets_.size(); }
  // Notes the begin or end of a forward or backward of this step in the trace.
  void Note(troupe::pipeline::ActionKind action,
            troupe::actors::TracePhase phase) const;

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter;
    at::Tensor place;  // the gradient's part of the bucket
    std::size_t bucket = 0;
    bool ready = false;  // whether this backward has completed it
  };
  struct Bucket {
    troupe::Tensor memory;
    std::vector<std::size_t> slots;
    std::size_t missing = 0;  // number of gradients that are not ready
    troupe::base::Event reduced;
  };

  void AddBucket(const std::vector<int>& slots);
  // Called by a parameter's hook.
  void GradientReady(std::size_t slot);
  // Makes the slot's place in its bucket the parameter's grad(), with the same
  // elements; zeros if there is none. After zero_grad() libtorch makes a new
  // tensor for the gradient; otherwise it adds to the one in the bucket.
  static void MoveGradient(Slot& slot);
  // Starts the reductions of buckets that are complete, in order.
  void Launch();
  // Called at the end of a backward: completes it.
  void Finish();
  troupe::actors::TraceEvent EventOf(troupe::actors::TraceKind kind,
                                     troupe::actors::TracePhase phase,
                                     std::string name, int bucket) const;

  troupe::Rank& rank_;
  troupe::actors::TraceSink* const trace_;
  const std::shared_ptr<troupe::comm::Communicator> group_;
  // One for each parameter that gets gradients, in their order.
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  // Number of buckets whose reductions this backward has started.
  std::size_t launched_ = 0;
  bool in_backward_ = false;
  std::int64_t step_ = 0;
};

#endif  // GRADIENT_REDUCER_H_
