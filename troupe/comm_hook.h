// Communication hooks: a program's own code in place of the all-reduce with
// which a DDP averages each bucket of gradients.
//
//   ddp.RegisterCommHook([](Group& group, GradBucket& bucket) {
//     group.AllReduce(bucket.buffer());               // blocks
//     for (float& g : bucket.buffer().span<float>()) g /= group.size();
//   });
//   ddp.RegisterCommHook([](Group& group, GradBucket& bucket) {
//     Work sum = group.StartAllReduce(bucket.buffer());
//     return BucketFuture(sum, [bucket, n = group.size()]() mutable {
//       for (float& g : bucket.buffer().span<float>()) g /= n;
//     });
//   });
//
// A hook is called once a step for each bucket, when its gradients are
// complete, in the order of buckets: the same on all ranks, whatever order they
// are completed in. It returns nothing, if it has ended; a Work, or a
// BucketFuture with code for the Work's end. What is then in the buffer is what
// the update takes. DDP itself averages no more.
//
// It may use all of the group's calls, those that wait and those that start.
// The group has the ranks of the DDP and is the hook's alone; all ranks make
// the same calls, in the same order. A hook runs under NoGrad(). It runs no
// Backward(), Step() or ZeroGrad() of its model, nor of another one that is in
// the midst of such a call, as in the backward of a loss of both. The code of a
// BucketFuture starts nothing in the group: other ranks reach it at other
// times.
//
// On a GPU the buffer is in its memory, where only kernels and collectives read
// and write it, after the gradients and before the update:
//
//   ddp.RegisterCommHook([&](Group& group, GradBucket& bucket) {
//     group.AllReduce(bucket.buffer());
//     Var sums(rank.context(), bucket.buffer());
//     sums /= group.size();
//   });
//
// A second Backward() without NoSync() in one step adds to gradients that are
// reduced already, and the hook reduces the sum, as in PyTorch.
//
// Errors: an exception that leaves a hook ends the program, with the rank, the
// bucket and its parameters; so does a Work that fails.
// Threads: the rank's own; hooks of one rank run one after the other. They are
// called by Backward(), the code of a BucketFuture also by Step().
// Source: Li et al. 2020, doi:10.14778/3415478.3415530, sec. 6.2.3;
// torch.distributed.GradBucket of PyTorch 2.15.

#ifndef TROUPE_COMM_HOOK_H_
#define TROUPE_COMM_HOOK_H_

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/reduction/reduce_op.h"
#include "nn/autograd/parameter.h"
#include "nn/tensor/tensor.h"
#include "troupe/group.h"

namespace troupe {

// A bucket of gradients of one dtype. Copies refer to the same memory.
class GradBucket {
 public:
  GradBucket(int index, bool is_last, Tensor buffer, ReduceOp op,
             std::vector<nn::Parameter*> parameters)
      : index_(index),
        is_last_(is_last),
        buffer_(std::move(buffer)),
        op_(op),
        parameters_(std::move(parameters)) {}

  // Number of the bucket, from 0, in the order in which hooks are called.
  int index() const { return index_; }
  bool is_last() const { return is_last_; }
  // All gradients, [elements]; their number is a multiple of the group's size.
  // Elements between parameters are zeros on all ranks.
  Tensor& buffer() { return buffer_; }
  const Tensor& buffer() const { return buffer_; }
  // Parameters of the bucket, in reverse order of their declaration.
  const std::vector<nn::Parameter*>& parameters() const { return parameters_; }
  // Gradient of each, of its shape, in the buffer.
  std::vector<Tensor> gradients() const;
  // Operation of DDP's all-reduce without a hook: kAvg; with
  // DDPOptions::exact_mean, whose updates divide, kSum.
  ReduceOp op() const { return op_; }
  // Returns "bucket 1 (fc.bias, fc.weight)", for errors.
  std::string ToString() const;

 private:
  int index_;
  bool is_last_;
  Tensor buffer_;
  ReduceOp op_;
  std::vector<nn::Parameter*> parameters_;
};

// The end of a bucket's reduction, as the Future that a hook returns in
// PyTorch.
class BucketFuture {
 public:
  // The reduction has ended.
  BucketFuture() = default;
  // It ends with `work`, after which `then`, unless it is null, is called.
  BucketFuture(Work work,  // NOLINT(google-explicit-constructor)
               std::function<void()> then = nullptr)
      : work_(std::move(work)), then_(std::move(then)) {}

  const Work& work() const { return work_; }
  const std::function<void()>& then() const { return then_; }

 private:
  Work work_;
  std::function<void()> then_;
};

using CommHook = std::function<BucketFuture(Group& group, GradBucket& bucket)>;

// Makes a CommHook of a function that returns nothing, a Work or a
// BucketFuture.
template <typename Hook>
CommHook MakeCommHook(Hook hook) {
  static_assert(std::is_invocable_v<Hook&, Group&, GradBucket&>,
                "a communication hook is a function of (Group&, GradBucket&)");
  using Result = std::invoke_result_t<Hook&, Group&, GradBucket&>;
  if constexpr (std::is_void_v<Result>) {
    return [hook = std::move(hook)](Group& group, GradBucket& bucket) mutable {
      hook(group, bucket);
      return BucketFuture();
    };
  } else {
    return [hook = std::move(hook)](Group& group, GradBucket& bucket) mutable {
      return BucketFuture(hook(group, bucket));
    };
  }
}

// The hook that does what DDP does without one (allreduce_hook).
inline Work AllReduceHook(Group& group, GradBucket& bucket) {
  return group.StartAllReduce(bucket.buffer(), bucket.op());
}

}  // namespace troupe

#endif  // TROUPE_COMM_HOOK_H_
