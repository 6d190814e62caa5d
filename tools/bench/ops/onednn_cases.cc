// The cases by oneDNN: dnnl_sgemm for linear layers, convolution primitives on
// NHWC images. Weights have the plain layout, and the reorder to the layout
// that the primitive prefers is timed too, as it would be in a kernel set.

#include <unordered_map>

#include "dnnl.hpp"
#include "tools/bench/ops/op_bench_case.h"
#include "tools/bench/ops/op_bench_util.h"

namespace troupe::bench {
namespace {

using dnnl::memory;
using nn::Tensor;
using Tag = memory::format_tag;

absl::Status Sgemm(char ta, char tb, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda,
                   const float* b, std::int64_t ldb, float* c) {
  if (dnnl_sgemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, n) !=
      dnnl_success) {
    return absl::InternalError("dnnl_sgemm failed");
  }
  return absl::OkStatus();
}

OpBenchCase OneDnnLinear(const Line& line, nn::Kernels& k) {
  const std::int64_t N = line.n[0], K = line.n[1], M = line.n[2];
  Tensor tx = Numbers({N, K}, k), tw = Numbers({M, K}, k);
  Tensor ty = Numbers({N, M}, k);
  OpBenchCase c;
  c.run = [=, way = line.direction] {
    float *x = tx.data<float>(), *w = tw.data<float>(), *y = ty.data<float>();
    if (way == "f") return Sgemm('N', 'T', N, M, K, x, K, w, K, y);
    if (way == "bd") return Sgemm('N', 'N', N, K, M, y, M, w, K, x);
    return Sgemm('T', 'N', M, K, N, y, M, x, K, w);
  };
  return c;
}

// A primitive with its memories and, if the layout of the weights differs, a
// reorder before or after it.
struct ConvPrimitive {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive main, reorder;
  std::unordered_map<int, memory> args, reorder_args;
  bool reorder_first = false, reorder_last = false;
  std::vector<Tensor> tensors;

  absl::Status Run() {
    if (reorder_first) reorder.execute(stream, reorder_args);
    main.execute(stream, args);
    if (reorder_last) reorder.execute(stream, reorder_args);
    stream.wait();
    return absl::OkStatus();
  }
};

// Adds the weights to `p`, with a reorder if `any`, the layout that the
// primitive chose, is not plain.
void FitWeights(const memory& plain, const memory::desc& any, bool written,
                ConvPrimitive& p, int argument) {
  if (plain.get_desc() == any) {
    p.args[argument] = plain;
    return;
  }
  memory fitted(any, p.engine);
  p.args[argument] = fitted;
  memory from = written ? fitted : plain, to = written ? plain : fitted;
  p.reorder = dnnl::reorder(from, to);
  p.reorder_args = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  (written ? p.reorder_last : p.reorder_first) = true;
}

OpBenchCase OneDnnConv(const Line& line, nn::Kernels& k) {
  const std::int64_t N = line.n[0], H = line.n[1], C = line.n[2];
  const std::int64_t O = line.n[3], S = line.n[4];
  const std::int64_t stride = line.n[5], pad = line.n[6];
  const std::int64_t P = (H + 2 * pad - S) / stride + 1;
  auto p = std::make_shared<ConvPrimitive>();
  p->tensors = {Numbers({N, H, H, C}, k), Numbers({O, C, S, S}, k),
                Numbers({O}, k), Numbers({N, P, P, O}, k)};
  const auto f32 = memory::data_type::f32;
  const memory::desc x({N, C, H, H}, f32, Tag::nhwc);
  const memory::desc w({O, C, S, S}, f32, Tag::any);
  const memory::desc b({O}, f32, Tag::x), y({N, O, P, P}, f32, Tag::nhwc);
  auto at = [&](int i, const memory::desc& desc) {
    return memory(desc, p->engine, p->tensors[i].raw());
  };
  const memory plain = at(1, memory::desc({O, C, S, S}, f32, Tag::oihw));
  const memory::dims strides{stride, stride}, pads{pad, pad};
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, x, w, b, y, strides, pads,
       pads},
      p->engine);
  if (line.direction == "f") {
    p->main = dnnl::convolution_forward(forward);
    p->args = {{DNNL_ARG_SRC, at(0, x)},
               {DNNL_ARG_BIAS, at(2, b)},
               {DNNL_ARG_DST, at(3, y)}};
    FitWeights(plain, forward.weights_desc(), false, *p, DNNL_ARG_WEIGHTS);
  } else if (line.direction == "bd") {
    const dnnl::convolution_backward_data::primitive_desc backward(
        {direct, x, w, y, strides, pads, pads}, p->engine, forward);
    p->main = dnnl::convolution_backward_data(backward);
    p->args = {{DNNL_ARG_DIFF_SRC, at(0, x)}, {DNNL_ARG_DIFF_DST, at(3, y)}};
    FitWeights(plain, backward.weights_desc(), false, *p, DNNL_ARG_WEIGHTS);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc backward(
        {direct, x, w, b, y, strides, pads, pads}, p->engine, forward);
    p->main = dnnl::convolution_backward_weights(backward);
    p->args = {{DNNL_ARG_SRC, at(0, x)},
               {DNNL_ARG_DIFF_BIAS, at(2, b)},
               {DNNL_ARG_DIFF_DST, at(3, y)}};
    FitWeights(plain, backward.diff_weights_desc(), true, *p,
               DNNL_ARG_DIFF_WEIGHTS);
  }
  OpBenchCase c;
  c.run = [p] { return p->Run(); };
  return c;
}

}  // namespace

absl::StatusOr<OpBenchCase> MakeOneDnnCase(const std::string& text,
                                           nn::Kernels& kernels) {
  const Line line(text);
  OpBenchCase c;
  try {
    if (line.Is("linear", 3)) c = OneDnnLinear(line, kernels);
    if (line.Is("conv", 7)) c = OneDnnConv(line, kernels);
  } catch (const dnnl::error& error) {
    return absl::InternalError(error.what());
  }
  c.line = text;
  return c;
}

}  // namespace troupe::bench
