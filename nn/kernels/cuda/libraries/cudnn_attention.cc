// The frontend uses NVRTC to compile a norm that is not used here. With this
// macro, for this one header, it opens the NVRTC library only when it needs it,
// so programs link without it.
// clang-format off
#include <cudnn.h>
#include <dlfcn.h>
#include <cstring>
#include <string>
#include <cudnn_frontend_shim.h>
#define HMODULE void*
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend/experimental/nvrtc_shim.h>
#undef NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#undef HMODULE
#include <cudnn_frontend.h>
// clang-format on

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"
#include "nn/kernels/cuda/libraries/choice_text.h"
#include "nn/kernels/cuda/libraries/cudnn_handle.h"
#include "nn/kernels/cuda/libraries/measure.h"
#include "nn/kernels/cuda/libraries/own_attention.h"
#include "nn/kernels/cuda/libraries/plan_cache.h"
#include "nn/kernels/cuda/libraries/workspace.h"

// Attention as a graph of cuDNN's frontend, which builds some twenty operations
// in the one pattern that cuDNN's fused kernels support (FlashAttention, Dao et
// al. 2022, arXiv:2205.14135).
//
// cuDNN orders dimensions as (sample, head, position, element of a head) for
// any layout: strides describe where a packed tensor has its queries, keys and
// values. Its *stats* are the logarithms of sums that nn/kernels/attention.h
// calls lse.

namespace troupe::nn::cuda {
namespace {

namespace frontend = cudnn_frontend;
using frontend::graph::Graph;
using GraphTensor = std::shared_ptr<frontend::graph::Tensor_attributes>;

// Ids of the tensors of a graph.
constexpr std::int64_t kQ = 1, kK = 2, kV = 3, kY = 4, kLse = 5, kDy = 6,
                       kDq = 7, kDk = 8, kDv = 9, kScale = 10;

// Converts an error; kUnimplemented if cuDNN does not support the graph.
absl::Status FrontendStatus(const frontend::error_t& error,
                            absl::string_view what) {
  using Code = frontend::error_code_t;
  if (error.is_good()) return absl::OkStatus();
  const std::string words = absl::StrCat(what, ": ", error.err_msg);
  switch (error.code) {
    case Code::GRAPH_NOT_SUPPORTED:
    case Code::UNSUPPORTED_GRAPH_FORMAT:
    case Code::HEURISTIC_QUERY_FAILED:
    case Code::GRAPH_EXECUTION_PLAN_CREATION_FAILED:
      return absl::UnimplementedError(words);
    default:
      return absl::InternalError(words);
  }
}

frontend::DataType_t TypeOf(DType dtype) {
  return dtype == DType::kBF16 ? frontend::DataType_t::BFLOAT16
                               : frontend::DataType_t::HALF;
}

// Layout of `heads` heads [samples, heads, positions, D] in a tensor with
// `row_heads` heads at each position.
struct Layout {
  std::vector<std::int64_t> dims, strides;
};
Layout LayoutOf(std::int64_t samples, std::int64_t heads,
                std::int64_t positions, std::int64_t D,
                std::int64_t row_heads) {
  const std::int64_t row = row_heads * D;
  return {{samples, heads, positions, D}, {positions * row, D, row, 1}};
}

struct Layouts {
  Layout q, k, v, y, lse;
};
Layouts LayoutsOf(const AttentionSpec& s, std::int64_t samples) {
  const AttentionSizes& z = s.size;
  const auto keys = [&](std::int64_t row_heads) {
    return LayoutOf(samples, z.Hkv, z.S, z.D, row_heads);
  };
  return {LayoutOf(samples, z.Hq, z.T, z.D, s.query_row_heads()),
          keys(s.key_row_heads()),
          keys(s.value_row_heads()),
          LayoutOf(samples, z.Hq, z.T, z.D, z.Hq),
          {{samples, z.Hq, z.T, 1}, {z.Hq * z.T, z.T, 1, 1}}};
}

GraphTensor Input(Graph& graph, std::int64_t id, frontend::DataType_t type,
                  const Layout& layout) {
  return graph.tensor(frontend::graph::Tensor_attributes()
                          .set_uid(id)
                          .set_data_type(type)
                          .set_dim(layout.dims)
                          .set_stride(layout.strides));
}

void SetOutput(const GraphTensor& tensor, std::int64_t id,
               frontend::DataType_t type, const Layout& layout) {
  tensor->set_output(true)
      .set_uid(id)
      .set_data_type(type)
      .set_dim(layout.dims)
      .set_stride(layout.strides);
}

// Returns the attributes that forward and backward share.
template <typename Attributes>
Attributes AttributesOf(const AttentionSpec& spec, const GraphTensor& scale) {
  Attributes attributes;
  attributes.set_name("attention");
  attributes.set_attn_scale(scale);
  if (spec.causal) {
    // Query t attends to keys 0 .. t, also if there are more keys.
    attributes.set_diagonal_alignment(frontend::DiagonalAlignment_t::TOP_LEFT);
    attributes.set_diagonal_band_right_bound(0);
  }
  return attributes;
}

void AddAttention(Graph& graph, const AttentionSpec& spec,
                  std::int64_t samples) {
  constexpr auto kFloat = frontend::DataType_t::FLOAT;
  const auto type = TypeOf(spec.dtype);
  const Layouts at = LayoutsOf(spec, samples);
  const GraphTensor q = Input(graph, kQ, type, at.q);
  const GraphTensor k = Input(graph, kK, type, at.k);
  const GraphTensor v = Input(graph, kV, type, at.v);
  const GraphTensor scale = graph.tensor(frontend::graph::Tensor_attributes()
                                             .set_uid(kScale)
                                             .set_data_type(kFloat)
                                             .set_dim({1, 1, 1, 1})
                                             .set_stride({1, 1, 1, 1})
                                             .set_is_pass_by_value(true));
  if (spec.way == AttentionWay::kForward) {
    using Attributes = frontend::graph::SDPA_attributes;
    const auto [y, lse] = graph.sdpa(
        q, k, v,
        AttributesOf<Attributes>(spec, scale).set_generate_stats(true));
    SetOutput(y, kY, type, at.y);
    SetOutput(lse, kLse, kFloat, at.lse);
    return;
  }
  using Attributes = frontend::graph::SDPA_backward_attributes;
  const auto [dq, dk, dv] = graph.sdpa_backward(
      q, k, v, Input(graph, kY, type, at.y), Input(graph, kDy, type, at.y),
      Input(graph, kLse, kFloat, at.lse),
      // Other algorithms add up dq by atomics.
      AttributesOf<Attributes>(spec, scale).set_deterministic_algorithm(true));
  SetOutput(dq, kDq, type, at.q);
  SetOutput(dk, kDk, type, at.k);
  SetOutput(dv, kDv, type, at.v);
}

// A graph for `samples` samples at once. MakeAttentionGraph() makes it without
// execution plans.
struct AttentionGraph {
  std::shared_ptr<Graph> graph;
  std::int64_t samples;
};

absl::StatusOr<AttentionGraph> MakeAttentionGraph(cudnnHandle_t handle,
                                                  const AttentionSpec& spec,
                                                  std::int64_t samples) {
  auto graph = std::make_shared<Graph>();
  graph->set_io_data_type(TypeOf(spec.dtype))
      .set_intermediate_data_type(frontend::DataType_t::FLOAT)
      .set_compute_data_type(frontend::DataType_t::FLOAT);
  try {
    AddAttention(*graph, spec, samples);
  } catch (const std::exception& error) {  // no implementation
    return absl::UnimplementedError(error.what());
  }
  TROUPE_RETURN_IF_ERROR(FrontendStatus(graph->validate(), "validate"));
  TROUPE_RETURN_IF_ERROR(FrontendStatus(graph->build_operation_graph(handle),
                                        "build_operation_graph"));
  return AttentionGraph{std::move(graph), samples};
}

using Knobs = std::unordered_map<frontend::KnobType_t, std::int64_t>;

absl::StatusOr<AttentionChoice> ChoiceOf(const AttentionGraph& made,
                                         std::int64_t plan) {
  AttentionChoice choice;
  choice.samples = made.samples;
  Knobs knobs;
  TROUPE_RETURN_IF_ERROR(
      FrontendStatus(made.graph->get_engine_and_knobs_at_index(
                         plan, choice.engine.engine, knobs),
                     "get_engine_and_knobs_at_index"));
  for (const auto& [type, value] : knobs) {
    choice.engine.knobs.emplace_back(static_cast<std::int64_t>(type), value);
  }
  std::sort(choice.engine.knobs.begin(), choice.engine.knobs.end());
  return choice;
}

// Returns the address of head 0 of sample n.
void* AddressOf(const AttentionHeads& heads, std::int64_t n) {
  const Tensor& t = *heads.tensor;
  return static_cast<char*>(t.device_data()) +
         heads.Sample(n) * static_cast<std::int64_t>(SizeOf(t.dtype()));
}

class CudnnAttention final : public AttentionPlan {
 public:
  CudnnAttention(const AttentionSpec& spec, CudnnHandle& cudnn,
                 AttentionGraph made, std::int64_t plan,
                 const AttentionChoice& choice, std::int64_t workspace_bytes)
      : AttentionPlan(spec, choice.ToText(),
                      WorkspaceRoom(static_cast<std::size_t>(workspace_bytes))),
        cudnn_(cudnn),
        made_(std::move(made)),
        plan_(plan) {}

  absl::Status Run(const AttentionOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    TROUPE_RETURN_IF_ERROR(CheckOperands(spec(), operands));
    TROUPE_RETURN_IF_ERROR(cudnn_.UseStream(stream));
    float scale = static_cast<float>(operands.scale);
    for (std::int64_t n = 0; n < spec().size.N; n += made_.samples) {
      Addresses at = AddressesOf(operands, n);
      at[kScale] = &scale;
      TROUPE_RETURN_IF_ERROR(FrontendStatus(
          made_.graph->execute_plan_at_index(
              cudnn_.get(), at, AlignedWorkspace(workspace), plan_),
          spec().Key()));
    }
    return absl::OkStatus();
  }

 private:
  using Addresses = std::unordered_map<std::int64_t, void*>;

  Addresses AddressesOf(const AttentionOperands& o, std::int64_t n) const {
    const AttentionSizes& size = spec().size;
    const AttentionPlaces from = PlacesOfAttention(size, o.q, o.k, o.v);
    const std::int64_t row = size.Hq * size.D;
    Addresses at = {{kQ, AddressOf(from.q, n)},
                    {kK, AddressOf(from.k, n)},
                    {kV, AddressOf(from.v, n)},
                    {kY, AddressOf({&o.y, 0, row}, n)},
                    {kLse, static_cast<float*>(o.lse.device_data()) +
                               n * size.Hq * size.T}};
    if (spec().way == AttentionWay::kForward) return at;
    const AttentionPlaces to = PlacesOfAttention(size, o.dq, o.dk, o.dv);
    at[kDy] = AddressOf({&o.dy, 0, row}, n);
    at[kDq] = AddressOf(to.q, n);
    at[kDk] = AddressOf(to.k, n);
    at[kDv] = AddressOf(to.v, n);
    return at;
  }

  CudnnHandle& cudnn_;
  const AttentionGraph made_;
  const std::int64_t plan_;
};

// The Library of PlanCache (plan_cache.h).
class CudnnAttentionLibrary {
 public:
  using Spec = AttentionSpec;
  using Plan = AttentionPlan;
  using Stream = cudaStream_t;
  using Plans = std::vector<std::unique_ptr<Plan>>;

  CudnnAttentionLibrary(CudnnHandle cudnn, const LibraryOptions& options,
                        const AttentionKernels& own)
      : cudnn_(std::move(cudnn)), options_(options), own_(own) {}

  absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec& spec,
                                                   const std::string& text) {
    if (text == kOwnAttention) {
      return std::make_unique<OwnAttentionPlan>(spec, own_);
    }
    AttentionChoice choice;
    if (!AttentionChoice::Parse(text, choice) ||
        spec.size.N % choice.samples != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          text, " is no algorithm of cuDNN for this; ", kKeepsChoices));
    }
    TROUPE_ASSIGN_OR_RETURN(
        AttentionGraph made,
        MakeAttentionGraph(cudnn_.get(), spec, choice.samples));
    Knobs knobs;
    for (const auto& [type, value] : choice.engine.knobs) {
      knobs[static_cast<frontend::KnobType_t>(type)] = value;
    }
    TROUPE_RETURN_IF_ERROR(FrontendStatus(
        made.graph->create_execution_plan(choice.engine.engine, knobs),
        "create_execution_plan"));
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t bytes, Build(made, 0));
    return std::make_unique<CudnnAttention>(spec, cudnn_, std::move(made), 0,
                                            choice, bytes);
  }

  // cuDNN's algorithms, best first, and then kernels of our own.
  absl::StatusOr<Plans> Candidates(const Spec& spec) {
    Plans plans;
    std::int64_t needed = 0;
    absl::Status status = AddPlans(spec, spec.size.N, plans, needed);
    if (status.ok() && plans.empty() && needed > 0) {
      const std::int64_t samples =
          SamplesAtOnce(spec.size.N, needed, WorkspaceMax());
      if (samples > 0) status = AddPlans(spec, samples, plans, needed);
    }
    if (!status.ok() && !absl::IsUnimplemented(status)) {
      options_.warn(absl::StrCat(
          spec.Key(), " is computed without cuDNN: ", status.message()));
    }
    plans.push_back(std::make_unique<OwnAttentionPlan>(spec, own_));
    return plans;
  }

  absl::StatusOr<bool> IsCapturing(Stream stream) {
    return cuda::IsCapturing(stream);
  }

  absl::StatusOr<std::vector<CandidateTimes>> Time(const Spec& spec,
                                                   const Plans& candidates,
                                                   Stream stream) {
    SampleMemory memory(*options_.allocator, stream);
    TROUPE_ASSIGN_OR_RETURN(const AttentionOperands operands,
                            Sample(spec, memory));
    return TimePlans(candidates, operands, memory, stream);
  }

 private:
  std::int64_t WorkspaceMax() const {
    return static_cast<std::int64_t>(options_.attention_workspace_bytes_max);
  }

  static absl::StatusOr<AttentionOperands> Sample(const Spec& spec,
                                                  SampleMemory& memory) {
    const AttentionSizes& z = spec.size;
    const auto numbers = [&](std::int64_t positions, std::int64_t heads) {
      return memory.Numbers({z.N, positions, heads, z.D}, spec.dtype);
    };
    const bool keys = spec.packing != AttentionPacking::kAll;
    const bool values = spec.packing == AttentionPacking::kApart;
    AttentionOperands o;
    for (auto [q, k, v] : {std::array<Tensor*, 3>{&o.q, &o.k, &o.v},
                           std::array<Tensor*, 3>{&o.dq, &o.dk, &o.dv}}) {
      TROUPE_ASSIGN_OR_RETURN(*q, numbers(z.T, spec.query_row_heads()));
      if (keys) {
        TROUPE_ASSIGN_OR_RETURN(*k, numbers(z.S, spec.key_row_heads()));
      }
      if (values) {
        TROUPE_ASSIGN_OR_RETURN(*v, numbers(z.S, spec.value_row_heads()));
      }
    }
    TROUPE_ASSIGN_OR_RETURN(o.y, numbers(z.T, z.Hq));
    TROUPE_ASSIGN_OR_RETURN(o.dy, numbers(z.T, z.Hq));
    TROUPE_ASSIGN_OR_RETURN(o.lse,
                            memory.Numbers({z.N, z.Hq, z.T}, DType::kF32));
    return o;
  }

  // Builds plan i, so that it can run, and returns its bytes of workspace.
  static absl::StatusOr<std::int64_t> Build(const AttentionGraph& made,
                                            std::int64_t i) {
    TROUPE_RETURN_IF_ERROR(FrontendStatus(made.graph->build_plan_at_index(i),
                                          "build_plan_at_index"));
    std::int64_t bytes = 0;
    TROUPE_RETURN_IF_ERROR(
        FrontendStatus(made.graph->get_workspace_size_plan_at_index(i, bytes),
                       "get_workspace_size_plan_at_index"));
    return bytes;
  }

  // Adds the plans for `samples` samples at once whose workspace is within the
  // limit. Sets `needed` to the smallest workspace that is above the limit.
  absl::Status AddPlans(const Spec& spec, std::int64_t samples, Plans& plans,
                        std::int64_t& needed) {
    TROUPE_ASSIGN_OR_RETURN(const AttentionGraph made,
                            MakeAttentionGraph(cudnn_.get(), spec, samples));
    TROUPE_RETURN_IF_ERROR(FrontendStatus(
        made.graph->create_execution_plans({frontend::HeurMode_t::A}),
        "create_execution_plans"));
    const std::size_t plans_max =
        static_cast<std::size_t>(std::max(1, options_.candidates_max));
    const std::int64_t count = made.graph->get_execution_plan_count();
    for (std::int64_t i = 0; i < count && plans.size() < plans_max; ++i) {
      // An engine may find only now that it does not support the graph.
      const absl::StatusOr<std::int64_t> bytes = Build(made, i);
      if (!bytes.ok()) continue;
      if (*bytes > WorkspaceMax()) {
        needed = needed == 0 ? *bytes : std::min(needed, *bytes);
        continue;
      }
      TROUPE_ASSIGN_OR_RETURN(const AttentionChoice choice, ChoiceOf(made, i));
      plans.push_back(std::make_unique<CudnnAttention>(spec, cudnn_, made, i,
                                                       choice, *bytes));
    }
    return absl::OkStatus();
  }

  CudnnHandle cudnn_;
  const LibraryOptions options_;
  const AttentionKernels& own_;
};

}  // namespace

std::string AttentionLibraryName() {
  return absl::StrCat("cuDNN frontend ", CUDNN_FRONTEND_MAJOR_VERSION, ".",
                      CUDNN_FRONTEND_MINOR_VERSION, ".",
                      CUDNN_FRONTEND_PATCH_VERSION);
}

absl::StatusOr<std::unique_ptr<AttentionPlans>> OpenAttentionPlans(
    const LibraryOptions& options, const AttentionKernels& own) {
  TROUPE_CHECK(options.allocator != nullptr, "plans are measured in memory");
  TROUPE_ASSIGN_OR_RETURN(CudnnHandle cudnn, CudnnHandle::Open());
  return std::make_unique<LibraryPlans<CudnnAttentionLibrary, AttentionPlans>>(
      options, std::move(cudnn), options, own);
}

}  // namespace troupe::nn::cuda
