// A C++ wrapper of cuDNN's graph API ("backend descriptors"), as far as
// convolutions need it: descriptors that free themselves and keep their first
// error, engines, plans.
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
// Lifetime: a descriptor may be destroyed once the descriptor that was made of
// it is finalized. Threads: one at a time. Only for files that are built with
// cuDNN.

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

// Converts a status; an error has the text
// "what: CUDNN_STATUS_BAD_PARAM: the library's message".
//   kUnimplemented: not supported.  kResourceExhausted: memory.
//   kUnavailable:   no device.      kInternal: any other error.
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

  // Sets an attribute; T is the C++ type that `type` stands for. After an error
  // further calls do nothing, and Finalize() returns the first error.
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

  // Returns the values of the attribute, at most `count_max`.
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
  // Returns the descriptors of type `made` in the attribute, at most
  // `count_max`.
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
  // Dimensions (N, C, H, W) and their strides in elements.
  std::vector<std::int64_t> dims, strides;
  bool is_virtual = false;  // between two operations, not stored in memory
};
absl::StatusOr<Descriptor> MakeTensor(const GraphTensor& tensor,
                                      std::int64_t alignment_bytes);

absl::StatusOr<Descriptor> MakeGraph(cudnnHandle_t handle,
                                     const std::vector<Descriptor>& operations);

// Returns the engine configs that the heuristics propose, best first.
absl::StatusOr<std::vector<Descriptor>> EngineConfigs(
    const Descriptor& graph, cudnnBackendHeurMode_t mode,
    std::int64_t configs_max);
// Convert an engine config to a choice (without `fused`), and back.
absl::StatusOr<EngineChoice> ChoiceOf(const Descriptor& config);
absl::StatusOr<Descriptor> ConfigOf(const Descriptor& graph,
                                    const EngineChoice& choice);
// Returns the numerical notes of the engine of a config.
absl::StatusOr<std::vector<cudnnBackendNumericalNote_t>> NotesOf(
    const Descriptor& config);

struct GraphPlan {
  Descriptor plan;
  std::int64_t workspace_bytes = 0;
};
// Makes the execution plan of a config. May compile kernels.
//   kUnimplemented: the engine does not support the graph after all.
absl::StatusOr<GraphPlan> MakeGraphPlan(cudnnHandle_t handle,
                                        const Descriptor& config);
// Enqueues the plan on the handle's stream. pointers[i] is the address of the
// tensor with uids[i].
absl::Status Execute(cudnnHandle_t handle, const GraphPlan& plan,
                     const std::vector<std::int64_t>& uids,
                     const std::vector<void*>& pointers, void* workspace);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_
