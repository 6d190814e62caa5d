// Choices that the options of a plan and the plan itself have in common. Both
// PlanOptions and Plan (pipeline/plan.h) derive from PlanChoices, so each
// choice is declared once, has one default, and is copied into the plan
// without a line of its own.
//
// A new choice needs its declaration here, its name in the plan's JSON
// (pipeline/plan_fields.h), the code that reads it and, unless it goes without
// saying, its words in Plan::ToString() (pipeline/plan_text.cc). A choice that
// users set also has a row in tools/trainer/config/config_keys.cc.

#ifndef PIPELINE_PLAN_CHOICES_H_
#define PIPELINE_PLAN_CHOICES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/loss_scale.h"
#include "nn/tensor/dtype.h"
#include "pipeline/mesh.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// Highest ReductionChoices::zero_stage.
inline constexpr int kZeroStageMax = 3;
// Highest PlanChoices::depth_blocks.
inline constexpr int kDepthBlocksMax = 64;

// How gradients are reduced over replicas, and when updates run.
struct ReductionChoices {
  static constexpr char kFieldsOf[] = "PlanOptions";  // base/field_error.h

  // Limit on the bytes of gradients that a rank reduces on its compute strand,
  // where handing them to the communication strand would cost more than the
  // work. Below 0: a job measures it (actors/planning/calibrate.h); 0: never
  // inline.
  std::int64_t inline_bytes = -1;
  // Whether inline reductions reduce and update a bucket in one pass over
  // memory (RU), which is faster and gives the same bits. A job switches it off
  // if its optimizer is not elementwise.
  bool fuse_updates = true;
  // Whether a step's forward may begin on buckets that are already updated
  // while others of the step before are still being reduced; the buckets that
  // it reads first are then sent first. The same bits. It changes nothing where
  // reductions are inline, where an update needs all buckets, and on a device
  // that executes asynchronously.
  bool cross_step = false;
  // Stage of ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054): what replicas
  // share instead of each having a copy. 0: nothing; 1: optimizer states. Then
  // each replica updates a slice of each bucket, and gathers the others'. 2:
  // gradients, too: a replica keeps those of its slice. 3: values, too, which
  // are gathered before their uses (table/add_gathers.h).
  int zero_stage = 0;
  // Whether stages 2 and 3 keep whole gradients until the last micro-batch, and
  // so reduce them once. False: they add up slices, reduced for each
  // micro-batch.
  bool zero_accumulates_whole = false;
  // Dtype of the gradients; unset: that of the parameters.
  std::optional<nn::DType> grad_dtype;
  // Dtype in which gradients are added up over replicas; unset: that of the
  // gradients. Another dtype needs a copy of them, and no update is fused.
  std::optional<nn::DType> reduction_dtype;
  // Name of the communication hook that reduces gradients in place of an
  // all-reduce; a job fills it in (JobSpec::hook). Empty: none.
  std::string hook;
};

// Choices besides the order of reductions that decide the bits of a step. A job
// fills in all but `threads_per_rank` itself, from its kernels and its spec.
struct NumericChoices {
  static constexpr char kFieldsOf[] = "PlanOptions";

  // Number of threads that the kernels of one rank compute with.
  int threads_per_rank = 1;
  // Description of the kernel set (nn::Kernels::Describe), since other kernels
  // may give other bits. Empty if no kernels have been opened.
  std::string kernels;
  // Factor on all gradients until the update. With `dynamic_loss_scale`, the
  // factor of the first step.
  double loss_scale = 1;
  // Rule by which the loss scale changes; unset: it is constant.
  std::optional<nn::LossScaleRule> dynamic_loss_scale;
  // Algorithms of libraries that are already chosen, by kind of device
  // (nn::KernelChoices::Known()). Others are measured at the first use of a
  // shape, and are in the plan that is saved with the next checkpoint.
  nn::ChoicesByDevice algorithms;
};

// Choices of a job that chose its mesh itself, besides the other fields of a
// plan, for its other processes and for a resumed run. The job fills them in.
struct LayoutChoices {
  static constexpr char kFieldsOf[] = "PlanOptions";

  bool mesh_is_chosen = false;
  std::string schedule_name;  // pipeline/schedules; empty: there is one stage
  bool recomputes = false;    // activations of all blocks
};

// Choices that PlanOptions and Plan share.
struct PlanChoices : ReductionChoices, NumericChoices, LayoutChoices {
  static constexpr char kFieldsOf[] = "PlanOptions";

  // Returns the number of replicas that share optimizer states, each of which
  // owns a slice of every bucket; 1: each replica has all states.
  int owners() const { return zero_stage > 0 ? mesh.dp() : 1; }
  // Returns whether replicas keep reduced gradients as slices alone, in steps
  // of that many micro-batches.
  bool SlicesGradients(int micro_batches) const {
    return owners() > 1 && zero_stage > 1 &&
           (micro_batches == 1 || !zero_accumulates_whole);
  }
  // Returns whether replicas gather values before their uses, and have a slice
  // of each bucket otherwise.
  bool gathers_values() const { return zero_stage == 3 && mesh.dp() > 1; }

  Mesh mesh;
  // Whether ranks along tp also share the tokens of each sequence, between the
  // layers that they share (nn/ops/tokens.h). The model must declare it.
  bool sequence_parallel = false;
  // Number of blocks in which layers compute each sum over what ranks along tp
  // share (nn::DepthBlocks); a power of two that tp divides. All tp up to it
  // then give one set of bits, on the cpu in f32. 1: a rank adds up its part as
  // one.
  int depth_blocks = 1;
  // Whether a rank may run an action whose message has arrived before the one
  // that its table lists first. The same bits.
  Dispatch dispatch = Dispatch::kArrival;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_CHOICES_H_
