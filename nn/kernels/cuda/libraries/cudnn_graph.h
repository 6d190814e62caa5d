// The graph API of cuDNN ("backend descriptors"), as far as convolutions need
// it: descriptors that free themselves and remember their first error, engines,
// plans.
//
//   Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
//   tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid)
//       .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
//   TROUPE_RETURN_IF_ERROR(tensor.Finalize("a tensor"));
//
//   TROUPE_ASSIGN_OR_RETURN(Descriptor graph, MakeGraph(handle, operations));
//   TROUPE_ASSIGN_OR_RETURN(
//       std::vector<Descriptor> configs,
//       EngineConfigs(graph, CUDNN_HEUR_MODE_A, /*configs_max=*/8));
//   TROUPE_ASSIGN_OR_RETURN(GraphPlan plan, MakeGraphPlan(handle, configs[0]));
//   status = Execute(handle, plan, uids, pointers, workspace);
//
// Lifetime: a descriptor may go when what was made of it is final. Threads: one
// at a time. Only for files that are built with cuDNN.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_
#define NN_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_

#include <cudnn.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "nn/kernels/cuda/libraries/choice_text.h"

namespace troupe::nn::cuda {

// "what: CUDNN_STATUS_BAD_PARAM: the library's own words".
//   kUnimplemented: not supported.  kResourceExhausted: memory.
//   kUnavailable:   no device.      kInternal: all else.
absl::Status CudnnStatus(cudnnStatus_t status, absl::string_view what);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)),
        first_error_(other.first_error_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    first_error_ = other.first_error_;
    return *this;
  }
  ~Descriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  // T is what `type` stands for. After an error they do nothing more, and
  // Finalize() says which it was.
  template <typename T>
  Descriptor& Set(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type,
                  const std::vector<T>& values) {
    return SetRaw(name, type, static_cast<std::int64_t>(values.size()),
                  values.data());
  }
  template <typename T>
  Descriptor& Set(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const T& value) {
    return SetRaw(name, type, 1, &value);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.descriptor_);
  }
  absl::Status Finalize(absl::string_view what);

  // At most `count_max` values.
  template <typename T>
  absl::StatusOr<std::vector<T>> Get(cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type,
                                     std::int64_t count_max) const {
    std::vector<T> values(static_cast<std::size_t>(count_max));
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t count,
                            GetRaw(name, type, count_max, values.data()));
    values.resize(static_cast<std::size_t>(count));
    return values;
  }
  // Descriptors of type `made` in `name`, at most `count_max`.
  absl::StatusOr<std::vector<Descriptor>> GetDescriptors(
      cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t made,
      std::int64_t count_max) const;

 private:
  Descriptor& SetRaw(cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, std::int64_t count,
                     const void* values);
  absl::StatusOr<std::int64_t> GetRaw(cudnnBackendAttributeName_t name,
                                      cudnnBackendAttributeType_t type,
                                      std::int64_t count_max,
                                      void* values) const;

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  cudnnStatus_t first_error_ = CUDNN_STATUS_SUCCESS;
};

struct GraphTensor {
  std::int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  // Of dims (N, C, H, W), in elements.
  std::vector<std::int64_t> dims, strides;
  bool is_virtual = false;  // between two operations, never in memory
};
absl::StatusOr<Descriptor> MakeTensor(const GraphTensor& tensor,
                                      std::int64_t alignment_bytes);

absl::StatusOr<Descriptor> MakeGraph(cudnnHandle_t handle,
                                     const std::vector<Descriptor>& operations);

// What the heuristics propose for the graph, best first.
absl::StatusOr<std::vector<Descriptor>> EngineConfigs(
    const Descriptor& graph, cudnnBackendHeurMode_t mode,
    std::int64_t configs_max);
// One of them as text has it (but for `fused`), and back.
absl::StatusOr<EngineChoice> ChoiceOf(const Descriptor& config);
absl::StatusOr<Descriptor> ConfigOf(const Descriptor& graph,
                                    const EngineChoice& choice);
// What the engine of a config does to numbers.
absl::StatusOr<std::vector<cudnnBackendNumericalNote_t>> NotesOf(
    const Descriptor& config);

struct GraphPlan {
  Descriptor plan;
  std::int64_t workspace_bytes = 0;
};
// May compile kernels.
//   kUnimplemented: the engine does not take the graph after all.
absl::StatusOr<GraphPlan> MakeGraphPlan(cudnnHandle_t handle,
                                        const Descriptor& config);
// pointers[i]: where the tensor with uids[i] lies. On the handle's stream.
absl::Status Execute(cudnnHandle_t handle, const GraphPlan& plan,
                     const std::vector<std::int64_t>& uids,
                     const std::vector<void*>& pointers, void* workspace);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_
