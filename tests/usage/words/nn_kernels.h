// Declares names that the usage comments in nn/kernels/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_KERNELS_H_
#define TESTS_USAGE_WORDS_NN_KERNELS_H_

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/files/file_system.h"
#include "comm/communicator.h"
#include "nn/kernels/batch_norm.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/device_backends.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/dropout.h"
#include "nn/kernels/kernel_options.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/op_observer.h"
#include "nn/kernels/optimizer.h"
#include "nn/kernels/pad2d.h"
#include "nn/kernels/step_scalars.h"
#include "nn/kernels/window2d.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::usage {

extern Kernels& kernels;
extern absl::Status status;
extern Tensor x, w, b, y;
extern const Window2d window;

namespace batch_norm_h {
extern const BatchNormRule rule;
extern const Tensor residual;
extern const bool relu;
extern Tensor sums, stats, running_mean, running_var, num_batches;
extern Tensor squares, mean, var, batches;
}  // namespace batch_norm_h

namespace batch_norm_host_h {
extern BatchNormKernels& ops;
}

namespace batch_norm_stats_h {
extern const double sum, sum_of_squares, rows, eps, weight;
extern double stats_mean, stats_rstd, running_var;
}  // namespace batch_norm_stats_h

namespace norm_h {
extern Tensor stats;
}

namespace device_backends_h {
absl::StatusOr<int> CountGpus();
absl::StatusOr<std::unique_ptr<Kernels>> OpenGpu(Device device,
                                                 const KernelOptions& options);
extern const Device device;
extern const KernelOptions options;
GpuReport Report();
extern absl::StatusOr<std::unique_ptr<Kernels>> kernels;
}  // namespace device_backends_h

namespace kernel_options_h {
extern const std::shared_ptr<KernelChoices> process_choices;
extern const Device device;
}  // namespace kernel_options_h

namespace choice_cache_h {
extern base::FileSystem& files;
}  // namespace choice_cache_h

namespace kernel_choices_h {
extern base::FileSystem& files;
extern const ChoicesByDevice plan_of_the_checkpoint;
extern const std::string key;
int Use(const std::string& choice);
}  // namespace kernel_choices_h

namespace gpu_report_h {
int SayThatThereIsNone();
}

namespace open_kernels_h {
extern const Device device;
extern const int rank;
}  // namespace open_kernels_h

namespace device_wakeup_h {
extern const base::Event event;
}

namespace device_queues_h {
extern comm::Communicator& comm;
extern const comm::Collective collective;
extern const base::Event last_reader;
extern const SgdRule rule;
extern Tensor host_y, scalars, grad, param, momentum;
}  // namespace device_queues_h

namespace device_graph_h {
extern DeviceQueues* queues;
extern const Tensor next_x;
}  // namespace device_graph_h

namespace dropout_h {
extern const DropoutMask mask;
}

namespace attention_h {
extern const Tensor q, k, v;
extern Tensor lse;
}  // namespace attention_h

namespace embedding_h {
extern const Tensor rows, table;
}

namespace loss_h {
extern const Tensor prediction, target;
extern Tensor stats, dprediction;
}  // namespace loss_h

namespace piece_rule_h {
extern const CrossEntropyRule rule;
extern const ClassPiece piece;
double weight(std::int64_t c);
extern double loss;
extern const double own;
extern const double* const sums_of_row;
}  // namespace piece_rule_h

namespace loss_scale_h {
extern Allocator& memory;
extern const LossScaleRule rule;
extern Tensor scalars;
}  // namespace loss_scale_h

namespace binary_h {
extern const Tensor a, b;
}

namespace element_formulas_h {
extern const float a, b;
extern float y;
}  // namespace element_formulas_h

namespace element_functions_h {
extern const double delta;
extern const Tensor a, b, prediction, target;
extern Tensor stats, dprediction;
}  // namespace element_functions_h

namespace select_h {
extern const Tensor a, b;
extern Tensor mask, z;
}  // namespace select_h

namespace indexing_h {
extern const Tensor dy;
extern Tensor index, dx;
}  // namespace indexing_h

namespace matmul_h {
extern const Tensor q, k;
extern Tensor scores;
}  // namespace matmul_h

namespace reduction_h {
extern const double H, W;
}

namespace strided_h {
extern const StridedLoops loops;
}

namespace strided_loops_h {
extern const std::int64_t C, R;
extern const Tensor a, b;
extern Tensor out;
}  // namespace strided_loops_h

namespace op_h {
struct MyDevice;
absl::Status Forward(MyDevice& device, In x, In w, In b, Tensor& y);
extern MyDevice& device;
}  // namespace op_h

namespace optimizer_h {
extern const StepScalars values;
extern Tensor scalars, grad, param, momentum;
}  // namespace optimizer_h

namespace pad_source_h {
extern const std::int64_t p, top, H;
}

namespace pool2d_h {
extern Tensor argmax;
}

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_KERNELS_H_
