// Graphs: parallel branches run on streams of their own, so the seed chooses
// among all orders that the captured events permit.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

Graph* Find(cudaGraph_t handle) {
  return TheWorld().objects.graphs.Find(handle);
}

GraphExec* Find(cudaGraphExec_t handle) {
  return TheWorld().objects.execs.Find(handle);
}

// Assigns nodes to branches. A node continues the branch that ends with one of
// its predecessors, or begins a new one.
void AssignBranches(GraphExec& exec) {
  std::vector<int> last_node;  // index: branch
  for (std::size_t n = 0; n < exec.graph.nodes.size(); ++n) {
    int branch = -1;
    for (const int before : exec.graph.after[n]) {
      const int candidate = exec.branch_of[static_cast<std::size_t>(before)];
      if (last_node[static_cast<std::size_t>(candidate)] == before) {
        branch = candidate;
      }
    }
    if (branch < 0) {
      branch = static_cast<int>(last_node.size());
      last_node.push_back(-1);
    }
    last_node[static_cast<std::size_t>(branch)] = static_cast<int>(n);
    exec.branch_of.push_back(branch);
  }
  for (std::size_t i = 0; i < last_node.size(); ++i) {
    exec.branches.push_back(NewStream(ThisThread().device,
                                      /*is_blocking=*/false,
                                      /*is_branch=*/true));
  }
}

Work Border(const char* name, const CallSite& site) {
  Work work;
  work.name = name;
  work.site = site;
  return work;
}

void Launch(GraphExec& exec, Stream& stream, const CallSite& site) {
  // A graph never overlaps with its own earlier launch.
  std::vector<OperationPtr> after;
  if (exec.last_end) after.push_back(exec.last_end);
  const OperationPtr begin =
      Push(stream, Border("a graph's begin", site), std::move(after));
  std::vector<OperationPtr> ops;
  for (std::size_t n = 0; n < exec.graph.nodes.size(); ++n) {
    std::vector<OperationPtr> before;
    for (const int node : exec.graph.after[n]) {
      before.push_back(ops[static_cast<std::size_t>(node)]);
    }
    if (before.empty()) before.push_back(begin);
    Stream& branch =
        *exec.branches[static_cast<std::size_t>(exec.branch_of[n])];
    branch.device = stream.device;
    ops.push_back(Push(branch, exec.graph.nodes[n], std::move(before)));
  }
  exec.last_end = Push(stream, Border("a graph's end", site), std::move(ops));
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::Fail;
using emulated_cuda::Find;
using emulated_cuda::Graph;
using emulated_cuda::GraphExec;
using emulated_cuda::Stream;
using emulated_cuda::TheWorld;

extern "C" {

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  EMULATED_CUDA_CALL();
  Graph* const graph = Find(handle);
  if (graph == nullptr) return Fail(cudaErrorInvalidValue);
  TheWorld().objects.graphs.Remove(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes,
                              std::size_t* count) {
  EMULATED_CUDA_CALL();
  Graph* const graph = Find(handle);
  if (graph == nullptr) return Fail(cudaErrorInvalidValue);
  if (nodes == nullptr) {
    *count = graph->nodes.size();
    return cudaSuccess;
  }
  *count = std::min(*count, graph->nodes.size());
  for (std::size_t n = 0; n < *count; ++n) {
    nodes[n] = reinterpret_cast<cudaGraphNode_t>(&graph->nodes[n]);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t handle,
                                 unsigned long long) {
  EMULATED_CUDA_CALL();
  const Graph* const graph = Find(handle);
  if (graph == nullptr) return Fail(cudaErrorInvalidValue);
  auto exec = std::make_unique<GraphExec>();
  exec->graph = *graph;
  emulated_cuda::AssignBranches(*exec);
  *out = reinterpret_cast<cudaGraphExec_t>(
      TheWorld().objects.execs.Add(std::move(exec)));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out,
                                          cudaGraph_t handle,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(out, handle, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
  EMULATED_CUDA_CALL();
  const bool known = Find(handle) && emulated_cuda::Lookup(stream);
  return Fail(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
  EMULATED_CUDA_CALL();
  GraphExec* const exec = Find(handle);
  Stream* const target = emulated_cuda::Lookup(stream);
  if (exec == nullptr || target == nullptr) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  if (target->capture != 0) {
    emulated_cuda::Invalidate(*target);
    return Fail(cudaErrorNotSupported);
  }
  emulated_cuda::Launch(*exec, *target, call.site());
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  EMULATED_CUDA_CALL();
  GraphExec* const exec = Find(handle);
  if (exec == nullptr) return Fail(cudaErrorInvalidResourceHandle);
  // Launches in progress continue.
  for (Stream* branch : exec->branches) branch->is_destroyed = true;
  TheWorld().objects.execs.Remove(exec);
  return cudaSuccess;
}

}  // extern "C"
