#include "nn/kernels/cuda/libraries/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace troupe::nn::cuda {

absl::Status CudnnStatus(cudnnStatus_t status, absl::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  std::array<char, 512> words = {};
  cudnnGetLastErrorString(words.data(), words.size());
  const std::string message =
      absl::StrCat(what, ": ", cudnnGetErrorString(status), ": ", words.data());
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) {
    return absl::UnimplementedError(message);
  }
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return absl::ResourceExhaustedError(message);
  }
  if (status == CUDNN_STATUS_NOT_INITIALIZED) {
    return absl::UnavailableError(message);  // no driver, or no device
  }
  return absl::InternalError(message);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type)
    : first_error_(cudnnBackendCreateDescriptor(type, &descriptor_)) {}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) (void)cudnnBackendDestroyDescriptor(descriptor_);
}

Descriptor& Descriptor::SetRaw(cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type,
                               std::int64_t count, const void* values) {
  if (first_error_ == CUDNN_STATUS_SUCCESS) {
    first_error_ =
        cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  }
  return *this;
}

absl::Status Descriptor::Finalize(absl::string_view what) {
  if (first_error_ == CUDNN_STATUS_SUCCESS) {
    first_error_ = cudnnBackendFinalize(descriptor_);
  }
  return CudnnStatus(first_error_, what);
}

absl::StatusOr<std::int64_t> Descriptor::GetRaw(
    cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
    std::int64_t count_max, void* values) const {
  std::int64_t count = 0;
  TROUPE_RETURN_IF_ERROR(
      CudnnStatus(cudnnBackendGetAttribute(descriptor_, name, type, count_max,
                                           &count, values),
                  "cudnnBackendGetAttribute"));
  // cuDNN may return the number of existing values rather than that of the
  // returned ones.
  return std::min(count, count_max);
}

absl::StatusOr<std::vector<Descriptor>> Descriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t made,
    std::int64_t count_max) const {
  std::vector<Descriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count_max; ++i) {
    Descriptor empty(made);
    TROUPE_RETURN_IF_ERROR(
        CudnnStatus(empty.first_error_, "cudnnBackendCreateDescriptor"));
    raw.push_back(empty.descriptor_);
    descriptors.push_back(std::move(empty));
  }
  TROUPE_ASSIGN_OR_RETURN(
      const std::int64_t count,
      GetRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count_max, raw.data()));
  descriptors.resize(static_cast<std::size_t>(count));
  return descriptors;
}

absl::StatusOr<Descriptor> MakeTensor(const GraphTensor& tensor,
                                      std::int64_t alignment_bytes) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, tensor.uid)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment_bytes)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, tensor.dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, tensor.strides)
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, tensor.is_virtual);
  TROUPE_RETURN_IF_ERROR(made.Finalize("tensor"));
  return made;
}

absl::StatusOr<Descriptor> MakeGraph(
    cudnnHandle_t handle, const std::vector<Descriptor>& operations) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
  TROUPE_RETURN_IF_ERROR(graph.Finalize("operation graph"));
  return graph;
}

absl::StatusOr<std::vector<Descriptor>> EngineConfigs(
    const Descriptor& graph, cudnnBackendHeurMode_t mode,
    std::int64_t configs_max) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  TROUPE_RETURN_IF_ERROR(heuristics.Finalize("heuristics"));
  return heuristics.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                   configs_max);
}

namespace {

absl::StatusOr<Descriptor> EngineOf(const Descriptor& config) {
  TROUPE_ASSIGN_OR_RETURN(
      std::vector<Descriptor> engines,
      config.GetDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE,
                            CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1));
  if (engines.empty()) return absl::InternalError("a config has no engine");
  return std::move(engines[0]);
}

template <typename T>
absl::StatusOr<T> GetOne(const Descriptor& from,
                         cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<T> values,
                          from.Get<T>(name, type, 1));
  if (values.empty()) return absl::InternalError("an attribute has no value");
  return values[0];
}

}  // namespace

absl::StatusOr<EngineChoice> ChoiceOf(const Descriptor& config) {
  EngineChoice choice;
  TROUPE_ASSIGN_OR_RETURN(const Descriptor engine, EngineOf(config));
  TROUPE_ASSIGN_OR_RETURN(
      choice.engine,
      GetOne<std::int64_t>(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                           CUDNN_TYPE_INT64));
  TROUPE_ASSIGN_OR_RETURN(
      const std::vector<Descriptor> knobs,
      config.GetDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                            CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                            CUDNN_KNOB_TYPE_COUNTS));
  for (const Descriptor& knob : knobs) {
    TROUPE_ASSIGN_OR_RETURN(
        const auto type,
        GetOne<cudnnBackendKnobType_t>(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                       CUDNN_TYPE_KNOB_TYPE));
    TROUPE_ASSIGN_OR_RETURN(
        const auto value,
        GetOne<std::int64_t>(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                             CUDNN_TYPE_INT64));
    choice.knobs.emplace_back(type, value);
  }
  std::sort(choice.knobs.begin(), choice.knobs.end());
  return choice;
}

absl::StatusOr<Descriptor> ConfigOf(const Descriptor& graph,
                                    const EngineChoice& choice) {
  TROUPE_ASSIGN_OR_RETURN(
      const auto engines,
      GetOne<std::int64_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                           CUDNN_TYPE_INT64));
  if (choice.engine >= engines) {
    return absl::InvalidArgumentError(
        absl::StrCat("engine ", choice.engine, " of ", engines,
                     " does not exist; ", kKeepsChoices));
  }
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, choice.engine);
  TROUPE_RETURN_IF_ERROR(
      engine.Finalize(absl::StrCat("engine ", choice.engine)));
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto& [type, value] : choice.knobs) {
    if (type >= CUDNN_KNOB_TYPE_COUNTS) {
      return absl::InvalidArgumentError(
          absl::StrCat("knob ", type, " does not exist; ", kKeepsChoices));
    }
    Descriptor knob(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
             static_cast<cudnnBackendKnobType_t>(type))
        .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value);
    TROUPE_RETURN_IF_ERROR(knob.Finalize(absl::StrCat("knob ", type)));
    raw.push_back(knob.get());
    knobs.push_back(std::move(knob));
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!raw.empty()) {
    config.Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               raw);
  }
  TROUPE_RETURN_IF_ERROR(config.Finalize("engine config"));
  return config;
}

absl::StatusOr<std::vector<cudnnBackendNumericalNote_t>> NotesOf(
    const Descriptor& config) {
  TROUPE_ASSIGN_OR_RETURN(const Descriptor engine, EngineOf(config));
  return engine.Get<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

absl::StatusOr<GraphPlan> MakeGraphPlan(cudnnHandle_t handle,
                                        const Descriptor& config) {
  GraphPlan made;
  made.plan = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  TROUPE_RETURN_IF_ERROR(made.plan.Finalize("execution plan"));
  TROUPE_ASSIGN_OR_RETURN(
      made.workspace_bytes,
      GetOne<std::int64_t>(made.plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                           CUDNN_TYPE_INT64));
  return made;
}

absl::Status Execute(cudnnHandle_t handle, const GraphPlan& plan,
                     const std::vector<std::int64_t>& uids,
                     const std::vector<void*>& pointers, void* workspace) {
  Descriptor variants(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  variants.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids)
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers)
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  TROUPE_RETURN_IF_ERROR(variants.Finalize("variant pack"));
  return CudnnStatus(
      cudnnBackendExecute(handle, plan.plan.get(), variants.get()),
      "cudnnBackendExecute");
}

}  // namespace troupe::nn::cuda
