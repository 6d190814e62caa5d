// Declares names that the usage comments in nn/kernels/cuda/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_KERNELS_CUDA_H_
#define TESTS_USAGE_WORDS_NN_KERNELS_CUDA_H_

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "nn/tensor/caching_allocator.h"

// Declared only in builds that include the headers of the CUDA toolkit.
#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_CUDA_OPS_H_
namespace troupe::nn::cuda::usage {
extern absl::Status status;
extern const cudaStream_t stream;
extern const std::int64_t n, N, rows, cols;
extern const float* x;
extern float* y;
}  // namespace troupe::nn::cuda::usage

namespace troupe::nn::cuda::usage::check_indices_h {
extern const std::int64_t count;
extern const std::int64_t* rows;
extern DataError* error;
}  // namespace troupe::nn::cuda::usage::check_indices_h

namespace troupe::nn::cuda::usage::cuda_ops_h {
extern CachingAllocator allocator;
extern DataError* error;
struct Bound : ElementwiseKernels, LossKernels {};
extern Bound kernels;
}  // namespace troupe::nn::cuda::usage::cuda_ops_h

namespace troupe::nn::cuda::usage::data_error_h {
extern CudaOps state;
extern DataError* error;
extern const DataError found;
}  // namespace troupe::nn::cuda::usage::data_error_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CONV_EXACTNESS_H_
namespace troupe::nn::cuda::usage::conv_exactness_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const std::vector<std::unique_ptr<ConvPlan>> candidates;
extern const ConvOperands operands;
extern CachingAllocator allocator;
}  // namespace troupe::nn::cuda::usage::conv_exactness_h
#endif

#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_STRIDED_OFFSETS_H_
namespace troupe::nn::cuda::usage::strided_offsets_h {
extern const DeviceLoops loops;
extern const std::int64_t i;
}  // namespace troupe::nn::cuda::usage::strided_offsets_h
#endif

#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_DISPATCH_H_
namespace troupe::nn::cuda::usage::dispatch_h {
struct Add {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In a, In b, Tensor& y);
};
extern ElementwiseKernels ops;
extern CudaOps* state;
}  // namespace troupe::nn::cuda::usage::dispatch_h
#endif

#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_ELEMENTS_H_
namespace troupe::nn::cuda::usage::elements_h {
extern const float factor;
}  // namespace troupe::nn::cuda::usage::elements_h
#endif

#ifdef NN_KERNELS_CUDA_IMAGE_GRID_H_
namespace troupe::nn::cuda::usage::image_grid_h {
extern const CudaOps cuda;
extern const Tensor images;
extern const bool aligned;
extern const int H, W, C;
}  // namespace troupe::nn::cuda::usage::image_grid_h
#endif

#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_UPDATE_KERNEL_H_
namespace troupe::nn::cuda::usage::update_kernel_h {
extern const CudaOps& cuda;
extern const Tensor scalars;
extern const float* grad;
extern float* param;
}  // namespace troupe::nn::cuda::usage::update_kernel_h
#endif

#ifdef NN_KERNELS_CUDA_LOSS_LAUNCH_H_
namespace troupe::nn::cuda::usage::loss_launch_h {
extern const CudaOps& cuda;
extern const std::int64_t blocks;
extern Tensor stats;
}  // namespace troupe::nn::cuda::usage::loss_launch_h
#endif

#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_REDUCE_H_
namespace troupe::nn::cuda::usage::reduce_h {
extern const double mine;
}  // namespace troupe::nn::cuda::usage::reduce_h
#endif

#ifdef NN_KERNELS_CUDA_ATTENTION_TILE_H_
namespace troupe::nn::cuda::usage::attention_tile_h {
constexpr int kWidth = 64, kVector = 4;
extern const HeadRows<const float> head;
extern const int first, count, D;
extern float *tile, *block;
extern const float *queries, *keys, *values;
extern RowSums<kWidth> sums;
}  // namespace troupe::nn::cuda::usage::attention_tile_h
#endif

#ifdef NN_KERNELS_CUDA_KERNEL_PARTS_PHILOX_WORDS_H_
namespace troupe::nn::cuda::usage::philox_words_h {
extern const DropoutMask mask;
extern const std::int32_t* place;
extern const std::int64_t sample, block;
}  // namespace troupe::nn::cuda::usage::philox_words_h
#endif

#ifdef NN_KERNELS_CUDA_LOSS_PART_H_
namespace troupe::nn::cuda::usage::loss_part_h {
constexpr int kThreads = 256;
extern const LossOut out;
extern const double loss_of_row;
}  // namespace troupe::nn::cuda::usage::loss_part_h
#endif

#ifdef NN_KERNELS_CUDA_SOFTMAX_ROW_H_
namespace troupe::nn::cuda::usage::softmax_row_h {
constexpr int kVector = 4, kRowThreads = 32;
extern const int C, thread, target;
extern const float* row;
extern float* d_row;
}  // namespace troupe::nn::cuda::usage::softmax_row_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_MATRIX_KERNELS_H_
namespace troupe::nn::cuda::usage::matrix_kernels_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const std::int64_t rows, cols, C, O, R, S;
extern void *dy, *db, *scratch, *bias, *y, *w_OCRS, *w_ORSC;
}  // namespace troupe::nn::cuda::usage::matrix_kernels_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_EMULATED_ELEMENTS_H_
namespace troupe::nn::cuda::usage::emulated_elements_h {
struct Products {
  const void* a;
  void* c;
};
extern const Products operands;
struct DTypes {
  DType dtype, out_dtype;
};
extern const DTypes spec;
extern const std::int64_t count;
extern const std::vector<double> sums;
}  // namespace troupe::nn::cuda::usage::emulated_elements_h
#endif

#ifdef NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
namespace troupe::nn::cuda::usage {
namespace event_pool_h {
extern const base::Event event, other;
}

namespace cuda_graph_h {
extern const std::shared_ptr<const Streams> streams;
extern const std::shared_ptr<EventPool> events;
extern const std::shared_ptr<MemorySource> memory;
extern const cudaStream_t compute;
}  // namespace cuda_graph_h

namespace pool_switch_h {
extern CachingAllocator pool, pool_of_graph;
}

namespace device_memory_h {
extern const std::shared_ptr<const Streams> streams;
}

namespace device_pools_h {
extern const std::shared_ptr<const Streams> streams;
extern CachingAllocator pool_of_graph;
extern const Tensor x;
extern Tensor staged;
}  // namespace device_pools_h

namespace data_notes_h {
extern DevicePools pools;
extern const std::shared_ptr<EventPool> events;
void LaunchEmbedding(DataError* error, cudaStream_t stream);
}  // namespace data_notes_h

namespace peer_access_h {
extern const Tensor tensor;
}

namespace open_queues_h {
extern const std::shared_ptr<Streams> streams;
extern const std::shared_ptr<EventPool> events;
}  // namespace open_queues_h

namespace watcher_h {
void WakeTheStrand();
extern const std::shared_ptr<const EventMark> mark;
}  // namespace watcher_h

namespace stream_queue_h {
extern const std::shared_ptr<EventPool> pool;
extern const base::Event event, other_event;
extern absl::Status device_status;
absl::Status LaunchRelu(cudaStream_t stream);
void HoldOn();
}  // namespace stream_queue_h

namespace cuda_device_h {
extern const Tensor host_x;
absl::Status LaunchScale(cudaStream_t stream, const Tensor& x);
}  // namespace cuda_device_h

namespace reduce_tree_h {
extern const Tensor a, b, c;
}
}  // namespace troupe::nn::cuda::usage
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_EMULATED_CHOICE_H_
namespace troupe::nn::cuda::usage::emulated_choice_h {
void TrainAgain();
}  // namespace troupe::nn::cuda::usage::emulated_choice_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CHOICE_TEXT_H_
namespace troupe::nn::cuda::usage::choice_text_h {
void Refuse(const std::string& text);
}  // namespace troupe::nn::cuda::usage::choice_text_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_MATMUL_SPEC_H_
namespace troupe::nn::cuda::usage::matmul_spec_h {
extern const std::int64_t n, k, m;
}  // namespace troupe::nn::cuda::usage::matmul_spec_h
namespace troupe::nn::cuda::usage::operand_checks_h {
extern const std::string key;
extern const DType dtype, out_dtype;
extern const MatmulOperands operands;
}  // namespace troupe::nn::cuda::usage::operand_checks_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CONV_SPEC_H_
namespace troupe::nn::cuda::usage::conv_spec_h {
extern const Window2d window;
}  // namespace troupe::nn::cuda::usage::conv_spec_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_ATTENTION_SPEC_H_
namespace troupe::nn::cuda::usage::attention_spec_h {
extern const std::int64_t N, T, S, Hq, Hkv, D;
}  // namespace troupe::nn::cuda::usage::attention_spec_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_ATTENTION_PLANS_H_
namespace troupe::nn::cuda::usage::attention_plans_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const LibraryOptions options;
extern const AttentionKernels own;
extern const AttentionSpec spec;
extern const Tensor qkv, y, lse;
}  // namespace troupe::nn::cuda::usage::attention_plans_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_OWN_ATTENTION_H_
namespace troupe::nn::cuda::usage::own_attention_h {
extern const std::string choice;
extern const AttentionKernels own;
extern const AttentionSpec spec;
}  // namespace troupe::nn::cuda::usage::own_attention_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPTIONS_H_
namespace troupe::nn::cuda::usage::library_options_h {
extern CachingAllocator allocator;
extern DeviceChoices choices;
}  // namespace troupe::nn::cuda::usage::library_options_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_MATMUL_H_
namespace troupe::nn::cuda::usage::matmul_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const LibraryOptions options;
extern const MatmulSpec spec;
extern const void *x, *w, *b;
extern void* y;
}  // namespace troupe::nn::cuda::usage::matmul_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CONV_H_
namespace troupe::nn::cuda::usage::conv_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const LibraryOptions options;
extern const ConvSpec spec;
extern void *x, *w_ORSC, *y;
}  // namespace troupe::nn::cuda::usage::conv_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_DIRECT_CONV_H_
namespace troupe::nn::cuda::usage::direct_conv_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const ConvSpec spec;
extern const ConvOperands operands;
struct Memory {
  absl::StatusOr<void*> Bytes(std::size_t bytes);
};
extern Memory memory;
}  // namespace troupe::nn::cuda::usage::direct_conv_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_LIBRARY_OPS_H_
namespace troupe::nn::cuda::usage::library_ops_h {
extern const cudaStream_t stream;
extern CachingAllocator allocator;
extern std::unique_ptr<MatmulPlans> matmuls;
extern std::unique_ptr<ConvPlans> convs;
struct Bound : LinearKernels, Conv2dKernels {};
extern Bound kernels;
}  // namespace troupe::nn::cuda::usage::library_ops_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CALL_MEMORY_H_
namespace troupe::nn::cuda::usage::call_memory_h {
extern const LibraryOps gpu;
extern Tensor x, y;
absl::Status Enqueue(const void* from, void* to, void* workspace);
}  // namespace troupe::nn::cuda::usage::call_memory_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_
namespace troupe::nn::cuda::usage::linear_h {
extern absl::Status status;
extern LibraryOps gpu;
extern Tensor x_NK, w_MK, b_M, y_NM;
}  // namespace troupe::nn::cuda::usage::linear_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_MEASURE_H_
namespace troupe::nn::cuda::usage::measure_h {
extern CachingAllocator allocator;
extern const cudaStream_t stream;
absl::Status Run(int candidate, void* x);
}  // namespace troupe::nn::cuda::usage::measure_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_PLAN_CACHE_H_
namespace troupe::nn::cuda::usage::plan_cache_h {
using cudaStream_t = void*;
struct MatmulPlan {
  const std::string& choice() const;
};
struct CublasLt;
extern CublasLt library;
extern const LibraryOptions options;
extern const MatmulSpec spec;
extern void* const stream;
}  // namespace troupe::nn::cuda::usage::plan_cache_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_WORKSPACE_H_
namespace troupe::nn::cuda::usage::workspace_h {
extern const std::size_t bytes;
extern void* room;
void* Allocate(std::size_t bytes);
void Multiply(void* workspace, std::size_t workspace_bytes);
}  // namespace troupe::nn::cuda::usage::workspace_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CUDNN_HANDLE_H_
namespace troupe::nn::cuda::usage::cudnn_handle_h {
extern absl::Status status;
extern const cudaStream_t stream;
extern const GraphPlan plan;
extern const std::vector<std::int64_t> uids;
extern const std::vector<void*> pointers;
extern void* workspace;
}  // namespace troupe::nn::cuda::usage::cudnn_handle_h
#endif

#ifdef NN_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_
namespace troupe::nn::cuda::usage::cudnn_graph_h {
extern absl::Status status;
extern const std::int64_t uid;
extern const std::vector<std::int64_t> dims, uids;
extern const cudnnHandle_t handle;
extern const std::vector<Descriptor> operations;
extern const std::vector<void*> pointers;
extern void* workspace;
}  // namespace troupe::nn::cuda::usage::cudnn_graph_h
#endif

#endif  // TESTS_USAGE_WORDS_NN_KERNELS_CUDA_H_
