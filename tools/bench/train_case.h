// Models that the benchmarks of training steps train: a table of names, each
// with settings of the trainer's configuration, so that a job is the one that
// `trainer train` would run. torch_train.py has the same models.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       actors::JobSpec spec,
//       MakeTrainJob("gpt", /*ranks=*/2, {"train.precision=bf16"}));
//
// The cases; a batch is that of one rank:
//
//     toy_mlp     10-10-5, ReLU; squared error; batch 20
//     toy_cnn     LeNet on 32x32x3, 10 classes; batch 16
//     mnist_mlp   784-512-512-10, ReLU; batch 64
//     mlp_25m     5 linears of 2236x2236 without bias, ReLU between; 2236
//                 classes; batch 64
//     resnet18, resnet50, vgg11
//                 on 64x64x3, 1000 classes; batch 8
//     vit_tiny    12 blocks, 192 wide, 3 heads; 64x64x3 in patches of 8x8; 1000
//                 classes; batch 8
//     gpt         4 layers, 256 wide, 4 heads; 128 tokens of 256; AdamW;
//                 batch 8
//     gpt8        the same with 8 layers, and a head of its own
//     mlp8        8 linears of 1024x1024, ReLU between; 1024 classes; batch 128
//     gpt_w512    4 layers, 512 wide, 8 heads; 256 tokens of 256; AdamW;
//                 batch 4
//     gpt_w1024   2 layers, 1024 wide, 16 heads; the same
//     gpt12       as gpt, with 12 layers
//     gpt12_recomputed
//                 the same, and backward runs every block again
//     resnet50_224
//                 on 224x224x3, 1000 classes; batch 256
//     gpt2        12 layers, 768 wide, 12 heads: 124M parameters; 1024 tokens
//                 of 50304, GPT-2's 50257 and some that make the head's
//                 product even; AdamW; batch 32
//
// The last two are for GPUs.
//
// Unless the table says otherwise, the loss is a cross entropy and the
// optimizer plain SGD. Samples are random numbers in memory, and targets do not
// depend on them, so that no loss converges and no number becomes denormal.

#ifndef TOOLS_BENCH_TRAIN_CASE_H_
#define TOOLS_BENCH_TRAIN_CASE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

std::vector<std::string> TrainCaseNames();

// Returns a job of the case with 10^12 steps and no evaluation. The settings,
// "key=value" each, are those of `trainer train --set`; they override the
// case's own.
//   kInvalidArgument: no such case, or the configuration rejects a setting.
absl::StatusOr<actors::JobSpec> MakeTrainJob(
    const std::string& name, int ranks,
    const std::vector<std::string>& settings = {});

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_TRAIN_CASE_H_
