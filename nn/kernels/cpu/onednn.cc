#include "nn/kernels/cpu/onednn.h"

#include <omp.h>

#include <array>
#include <atomic>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "dnnl.hpp"

namespace troupe::nn::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// Shape and direction, as a key.
using Key = std::array<std::int64_t, 19>;

// Dtypes of a convolution's operands, and whether it has a bias.
struct ConvTypes {
  memory::data_type images, weights;
  bool bias;
};

Key KeyOf(OneDnn::Way way, const ConvTypes& types, const ImageShape& d) {
  return {static_cast<std::int64_t>(way),
          static_cast<std::int64_t>(types.images),
          static_cast<std::int64_t>(types.weights),
          types.bias,
          d.n,
          d.h,
          d.w,
          d.c,
          d.p,
          d.q,
          d.o,
          d.r,
          d.s,
          d.stride_h,
          d.stride_w,
          d.pad_h,
          d.pad_w,
          d.dilation_h,
          d.dilation_w};
}

const char* NameOf(OneDnn::Way way) {
  switch (way) {
    case OneDnn::Way::kForward:
      return "Forward";
    case OneDnn::Way::kBackwardInput:
      return "BackwardInput";
    case OneDnn::Way::kBackwardWeight:
      return "BackwardWeight";
  }
  return "";
}

// A convolution, and the reorder of its weights before or after it.
struct Primitive {
  dnnl::primitive main, reorder;
  memory image, weights, output, bias;  // the caller's layout
  memory fitted;                        // weights in the layout of `main`
  memory scratchpad;
  std::unordered_map<int, memory> args, reorder_args;
  bool reorders = false;
};

struct Descriptors {
  memory::desc x, w, y, plain_w;
  memory::desc b;       // zero: none
  memory::desc read_w;  // weights for a forward pass
  memory::dims strides, skips, pads, pads_after;

  Descriptors(const ConvTypes& types, const ImageShape& d)
      : x({d.n, d.c, d.h, d.w}, types.images, Tag::nhwc),
        w({d.o, d.c, d.r, d.s}, types.weights, Tag::any),
        y({d.n, d.o, d.p, d.q}, types.images, Tag::nhwc),
        plain_w({d.o, d.c, d.r, d.s}, types.weights, Tag::oihw),
        b(types.bias ? memory::desc({d.o}, types.images, Tag::a)
                     : memory::desc()),
        read_w({d.o, d.c, d.r, d.s}, types.images, Tag::any),
        strides{d.stride_h, d.stride_w},
        // Number of pixels between two taps.
        skips{d.dilation_h - 1, d.dilation_w - 1},
        pads{d.pad_h, d.pad_w},
        // Pixels of the image beyond the last window are not padding.
        pads_after{(d.p - 1) * d.stride_h + d.dilation_h * (d.r - 1) + 1 - d.h -
                       d.pad_h,
                   (d.q - 1) * d.stride_w + d.dilation_w * (d.s - 1) + 1 - d.w -
                       d.pad_w} {}
};

}  // namespace

// Operands in the order of the Kernels method. Only `result` is written;
// oneDNN's memories are not const.
struct OneDnn::ConvCall {
  Way way;
  memory::data_type images, weights;
  void *a, *b, *bias, *result;
};

struct OneDnn::LinearCall {
  Way way;
  std::int64_t n, k, m;
  bool accumulate, wide;
  void *a, *b, *bias, *result;
};

class OneDnn::Impl {
 public:
  explicit Impl(Allocator& allocator) : allocator_(allocator) {}

  absl::Status Linear(const LinearCall& call) {
    const ProductKey key = {static_cast<std::int64_t>(call.way),
                            call.n,
                            call.k,
                            call.m,
                            call.accumulate,
                            call.wide,
                            call.bias != nullptr};
    auto it = products_.find(key);
    if (it == products_.end()) {
      it = products_.emplace(key, MakeProduct(call)).first;
    }
    Product& p = *it->second;
    TROUPE_ASSIGN_OR_RETURN(char* const scratch,
                            Scratch(p.scratchpad.get_desc().get_size()));
    // oneDNN computes a b in every pass: dw is dy^T x.
    const bool swaps = call.way == Way::kBackwardWeight;
    p.a.set_data_handle(swaps ? call.b : call.a);
    p.b.set_data_handle(swaps ? call.a : call.b);
    p.c.set_data_handle(call.result);
    p.scratchpad.set_data_handle(scratch);
    if (call.bias != nullptr) p.bias.set_data_handle(call.bias);
    p.main.execute(stream_, p.args);
    stream_.wait();
    return absl::OkStatus();
  }

  absl::Status Conv(const ImageShape& shape, const ConvCall& call) {
    const Way way = call.way;
    const ConvTypes types{call.images, call.weights, call.bias != nullptr};
    const Key key = KeyOf(way, types, shape);
    auto it = primitives_.find(key);
    // Made first: if oneDNN throws, nothing is left for the next call.
    if (it == primitives_.end()) {
      it = primitives_.emplace(key, Make(way, Descriptors(types, shape))).first;
    }
    Primitive& p = *it->second;
    const std::size_t scratchpad = p.scratchpad.get_desc().get_size();
    const std::size_t rounded = (scratchpad + 63) / 64 * 64;
    TROUPE_ASSIGN_OR_RETURN(char* const scratch,
                            Scratch(rounded + p.fitted.get_desc().get_size()));
    p.scratchpad.set_data_handle(scratch);
    p.image.set_data_handle(way == Way::kBackwardInput ? call.result : call.a);
    p.weights.set_data_handle(way == Way::kBackwardWeight ? call.result
                                                          : call.b);
    p.output.set_data_handle(way == Way::kForward         ? call.result
                             : way == Way::kBackwardInput ? call.a
                                                          : call.b);
    if (types.bias) p.bias.set_data_handle(call.bias);
    if (p.reorders) p.fitted.set_data_handle(scratch + rounded);
    const bool before = p.reorders && way != Way::kBackwardWeight;
    if (before) p.reorder.execute(stream_, p.reorder_args);
    p.main.execute(stream_, p.args);
    if (p.reorders && !before) p.reorder.execute(stream_, p.reorder_args);
    stream_.wait();
    return absl::OkStatus();
  }

 private:
  using ProductKey = std::array<std::int64_t, 7>;

  struct Product {
    dnnl::matmul main;
    memory a, b, c, bias, scratchpad;
    std::unordered_map<int, memory> args;
  };

  std::unique_ptr<Product> MakeProduct(const LinearCall& call) {
    const auto bf16 = memory::data_type::bf16;
    // [rows, depth] [depth, cols]; ba: transposed in memory.
    memory::dims sizes = {call.n, call.k, call.m};
    Tag a_tag = Tag::ab, b_tag = Tag::ba;
    if (call.way == Way::kBackwardInput) {
      sizes = {call.n, call.m, call.k};
      b_tag = Tag::ab;
    } else if (call.way == Way::kBackwardWeight) {
      sizes = {call.m, call.n, call.k};
      a_tag = Tag::ba;
      b_tag = Tag::ab;
    }
    const memory::desc a({sizes[0], sizes[1]}, bf16, a_tag);
    const memory::desc b({sizes[1], sizes[2]}, bf16, b_tag);
    const memory::desc c({sizes[0], sizes[2]},
                         call.wide ? memory::data_type::f32 : bf16, Tag::ab);
    const memory::desc bias({1, sizes[2]}, bf16, Tag::ab);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (call.accumulate) {
      dnnl::post_ops ops;
      ops.append_sum(1.0f);
      attr.set_post_ops(ops);
    }
    const dnnl::matmul::desc product = call.bias != nullptr
                                           ? dnnl::matmul::desc(a, b, bias, c)
                                           : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc made(product, attr, engine_);
    auto p = std::make_unique<Product>();
    p->main = dnnl::matmul(made);
    p->a = memory(a, engine_, DNNL_MEMORY_NONE);
    p->b = memory(b, engine_, DNNL_MEMORY_NONE);
    p->c = memory(c, engine_, DNNL_MEMORY_NONE);
    p->scratchpad = memory(made.scratchpad_desc(), engine_, DNNL_MEMORY_NONE);
    p->args = {{DNNL_ARG_SRC, p->a},
               {DNNL_ARG_WEIGHTS, p->b},
               {DNNL_ARG_DST, p->c},
               {DNNL_ARG_SCRATCHPAD, p->scratchpad}};
    if (call.bias != nullptr) {
      p->bias = memory(bias, engine_, DNNL_MEMORY_NONE);
      p->args.emplace(DNNL_ARG_BIAS, p->bias);
    }
    return p;
  }

  absl::StatusOr<char*> Scratch(std::size_t bytes) {
    if (!scratch_ || scratch_->bytes() < bytes) {
      scratch_.reset();
      TROUPE_ASSIGN_OR_RETURN(scratch_, allocator_.Allocate(bytes));
    }
    return static_cast<char*>(scratch_->data());
  }

  std::unique_ptr<Primitive> Make(Way way, const Descriptors& d) {
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, d.x, d.read_w, d.b, d.y,
         d.strides, d.skips, d.pads, d.pads_after},
        attr, engine_);
    auto p = std::make_unique<Primitive>();
    if (way == Way::kForward) {
      p->main = dnnl::convolution_forward(forward);
      Bind(d, forward.weights_desc(), forward.scratchpad_desc(), way,
           {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, *p);
    } else if (way == Way::kBackwardInput) {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {direct, d.x, d.w, d.y, d.strides, d.skips, d.pads, d.pads_after},
          attr, engine_, forward);
      p->main = dnnl::convolution_backward_data(backward);
      Bind(d, backward.weights_desc(), backward.scratchpad_desc(), way,
           {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST}, *p);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {direct, d.x, d.w, d.y, d.strides, d.skips, d.pads, d.pads_after},
          attr, engine_, forward);
      p->main = dnnl::convolution_backward_weights(backward);
      Bind(d, backward.diff_weights_desc(), backward.scratchpad_desc(), way,
           {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}, *p);
    }
    return p;
  }

  // Makes memories without data, and the maps of arguments over them. `names`:
  // image, weights, output.
  void Bind(const Descriptors& d, const memory::desc& fitted,
            const memory::desc& scratchpad, Way way,
            const std::array<int, 3>& names, Primitive& p) {
    p.image = memory(d.x, engine_, DNNL_MEMORY_NONE);
    p.weights = memory(d.plain_w, engine_, DNNL_MEMORY_NONE);
    p.output = memory(d.y, engine_, DNNL_MEMORY_NONE);
    p.fitted = memory(fitted, engine_, DNNL_MEMORY_NONE);
    p.scratchpad = memory(scratchpad, engine_, DNNL_MEMORY_NONE);
    p.reorders = fitted != d.plain_w;
    p.args = {{names[0], p.image},
              {names[1], p.reorders ? p.fitted : p.weights},
              {names[2], p.output},
              {DNNL_ARG_SCRATCHPAD, p.scratchpad}};
    if (!d.b.is_zero()) {
      p.bias = memory(d.b, engine_, DNNL_MEMORY_NONE);
      p.args.emplace(DNNL_ARG_BIAS, p.bias);
    }
    if (!p.reorders) return;
    const bool written = way == Way::kBackwardWeight;
    const memory& from = written ? p.fitted : p.weights;
    const memory& to = written ? p.weights : p.fitted;
    p.reorder = dnnl::reorder(from, to);
    p.reorder_args = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  }

  Allocator& allocator_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  absl::flat_hash_map<Key, std::unique_ptr<Primitive>> primitives_;
  absl::flat_hash_map<ProductKey, std::unique_ptr<Product>> products_;
  StoragePtr scratch_;
};

OneDnn::OneDnn(int threads, Allocator& allocator)
    : threads_(threads), allocator_(allocator) {}

OneDnn::~OneDnn() {
  if (preparation_.joinable()) preparation_.join();
}

const char* OneDnn::Version() {
  static const std::string* const version = [] {
    const dnnl_version_t* v = dnnl_version();
    return new std::string(
        absl::StrCat("oneDNN ", v->major, ".", v->minor, ".", v->patch));
  }();
  return version->c_str();
}

bool OneDnn::WantsLinear(Way way, int threads, std::int64_t n, std::int64_t k,
                         std::int64_t m) {
  if (threads > 1) return n * k * m >= (1 << 20);
  // Weights of 4 MB and more. The loops here are faster for the other passes,
  // which go through them row by row.
  return way == Way::kBackwardInput && n >= 16 && k * m >= (1 << 20);
}

bool OneDnn::WantsConv(Way way, const ImageShape& d) {
  if (d.n == 0 || d.c < 16 || d.o < 16) return false;
  return way != Way::kBackwardWeight || d.q < 8;
}

bool OneDnn::WantsBF16Conv(Way way, const ImageShape& d) {
  if (d.n == 0 || d.o < 16) return false;
  // The first layer has few channels, and needs no gradient of its images.
  return way == Way::kBackwardInput ? d.c >= 16 : d.c * d.r * d.s >= 64;
}

void OneDnn::PrepareLinear() {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) return;
  try {
    preparation_ = std::thread([] {
      omp_set_num_threads(1);
      const std::vector<float> ones(16 * 16, 1.0f);
      std::vector<float> product(16 * 16);
      dnnl_sgemm('N', 'N', 16, 16, 16, 1, ones.data(), 16, ones.data(), 16, 0,
                 product.data(), 16);
    });
  } catch (const std::system_error&) {
    // No thread is available: the call that needs the code generates it.
  }
}

absl::Status OneDnn::Linear(Way way, std::int64_t n, std::int64_t k,
                            std::int64_t m, const float* a, const float* b,
                            bool accumulate, float* result) {
  omp_set_num_threads(threads_);
  const float beta = accumulate ? 1.0f : 0.0f;
  dnnl_status_t status = dnnl_success;
  switch (way) {
    case Way::kForward:
      status = dnnl_sgemm('N', 'T', n, m, k, 1, a, k, b, k, beta, result, m);
      break;
    case Way::kBackwardInput:
      status = dnnl_sgemm('N', 'N', n, k, m, 1, a, m, b, k, beta, result, k);
      break;
    case Way::kBackwardWeight:
      status = dnnl_sgemm('T', 'N', m, k, n, 1, b, m, a, k, beta, result, k);
      break;
  }
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("Linear", NameOf(way), " of ", n, "x",
                                          k, "x", m, ": oneDNN answers status ",
                                          static_cast<int>(status)));
}

absl::Status OneDnn::Linear(Way way, std::int64_t n, std::int64_t k,
                            std::int64_t m, const std::uint16_t* a,
                            const std::uint16_t* b, const std::uint16_t* bias,
                            bool accumulate, bool wide, void* result) {
  omp_set_num_threads(threads_);
  try {
    if (!impl_) impl_ = std::make_unique<Impl>(allocator_);
    return impl_->Linear({way, n, k, m, accumulate, wide,
                          const_cast<std::uint16_t*>(a),
                          const_cast<std::uint16_t*>(b),
                          const_cast<std::uint16_t*>(bias), result});
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("Linear", NameOf(way), " of ", n,
                                            "x", k, "x", m, ": oneDNN answers ",
                                            error.what()));
  }
}

absl::Status OneDnn::Conv(Way way, const ImageShape& shape, const float* a,
                          const float* b, float* result) {
  const auto f32 = memory::data_type::f32;
  return Run(shape, {way, f32, f32, const_cast<float*>(a),
                     const_cast<float*>(b), /*bias=*/nullptr, result});
}

absl::Status OneDnn::Conv(Way way, const ImageShape& shape,
                          const std::uint16_t* a, const std::uint16_t* b,
                          const std::uint16_t* bias, std::uint16_t* result) {
  const auto bf16 = memory::data_type::bf16;
  return Run(shape, {way, bf16, bf16, const_cast<std::uint16_t*>(a),
                     const_cast<std::uint16_t*>(b),
                     const_cast<std::uint16_t*>(bias), result});
}

absl::Status OneDnn::ConvBackwardWeight(const ImageShape& shape,
                                        const std::uint16_t* x,
                                        const std::uint16_t* dy, float* dw) {
  return Run(shape, {Way::kBackwardWeight, memory::data_type::bf16,
                     memory::data_type::f32, const_cast<std::uint16_t*>(x),
                     const_cast<std::uint16_t*>(dy), /*bias=*/nullptr, dw});
}

absl::Status OneDnn::Run(const ImageShape& d, const ConvCall& call) {
  omp_set_num_threads(threads_);
  try {
    if (!impl_) impl_ = std::make_unique<Impl>(allocator_);
    return impl_->Conv(d, call);
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat(
        "Conv2d", NameOf(call.way), " of [", d.n, ", ", d.h, ", ", d.w, ", ",
        d.c, "] to [", d.n, ", ", d.p, ", ", d.q, ", ", d.o, "] by ", d.r, "x",
        d.s, ": oneDNN answers ", error.what()));
  }
}

}  // namespace troupe::nn::cpu
