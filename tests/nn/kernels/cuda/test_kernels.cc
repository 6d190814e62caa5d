#include "tests/nn/kernels/cuda/test_kernels.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/libraries/library_ops.h"
#include "tests/base/cuda/emulated/test_device.h"

namespace troupe::nn {
namespace {

constexpr Device kDevice{DeviceType::kCuda, 0};

class PoisonedMemory final : public MemorySource {
 public:
  void* Allocate(std::size_t bytes) override {
    void* const whole =
        emulated_cuda_test::AllocateShared(bytes + kAlignmentBytes);
    std::memset(whole, emulated_cuda_test::PoisonByte(),
                bytes + kAlignmentBytes);
    const auto address = reinterpret_cast<std::uintptr_t>(whole);
    void* const block =
        static_cast<char*>(whole) + kAlignmentBytes - address % kAlignmentBytes;
    const std::lock_guard<std::mutex> lock(mutex_);
    whole_[block] = whole;
    return block;
  }
  void Free(void* block, std::size_t) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    emulated_cuda_test::FreeShared(whole_.at(block));
    whole_.erase(block);
  }

 private:
  static constexpr std::size_t kAlignmentBytes = 64;

  std::mutex mutex_;
  std::map<void*, void*> whole_;  // the allocation around each block
};

CachingAllocator::Options AllocatorOptions() {
  CachingAllocator::Options options;
  options.device = kDevice;
  options.source = SharedMemory();
  return options;
}

// The state of ops that need no library.
struct OwnOps {
  OwnOps() : memory(AllocatorOptions()) {
    error_block = *memory.Allocate(sizeof(cuda::DataError));
    ops.error = static_cast<cuda::DataError*>(error_block->data());
    *ops.error = cuda::DataError();
    ops.allocator = &memory;
  }

  CachingAllocator memory;
  StoragePtr error_block;
  cuda::CudaOps ops;
};

// The libraries, opened once for the process: on a GPU, opening them takes
// longer than most tests.
struct SharedLibraries {
  SharedLibraries() {
    cuda::LibraryOptions options;
    options.allocator = &own.memory;
    options.measure = false;  // the library's first guess
    options.candidates_max = options.conv_candidates_max = 1;
    matmuls = *cuda::OpenMatmulPlans(options);
    convs = *cuda::OpenConvPlans(options);
    AttentionKernels::ForEachOp(
        [&](auto op) { (own_attention.*op).set_device(kDevice); });
    cuda::BindFamily(own_attention, &own.ops);
    attentions = *cuda::OpenAttentionPlans(options, own_attention);
  }

  // Never deleted, because the driver may already be closed when the process
  // ends.
  static SharedLibraries& Get() {
    static SharedLibraries* const libraries = new SharedLibraries;
    return *libraries;
  }

  OwnOps own;
  std::unique_ptr<cuda::MatmulPlans> matmuls;
  std::unique_ptr<cuda::ConvPlans> convs;
  AttentionKernels own_attention;
  std::unique_ptr<cuda::AttentionPlans> attentions;
};

// The ops as the library binds them: a call returns when its work is enqueued.
struct Enqueued : Kernels {
  Enqueued() : Kernels(kDevice), memory(own.memory), ops(own.ops) {
    SharedLibraries& shared = SharedLibraries::Get();
    libraries.allocator = &memory;
    libraries.matmuls = shared.matmuls.get();
    libraries.convs = shared.convs.get();
    libraries.attentions = shared.attentions.get();
    libraries.own_attention = &shared.own_attention;
    cuda::BindFamilies(*this, &ops, &libraries);
  }

  CachingAllocator& allocator() override { return memory; }
  std::string Describe() const override { return device().ToString(); }

  // Waits for the call that has just returned `status`, and returns its final
  // status.
  absl::Status Finished(absl::Status status) {
    status = emulated_cuda_test::WaitFor(std::move(status));
    if (!status.ok()) return status;
    return StatusOf(std::exchange(*ops.error, cuda::DataError()));
  }

  OwnOps own;
  CachingAllocator& memory;
  cuda::CudaOps& ops;
  cuda::LibraryOps libraries;
};

class TestKernels final : public Kernels {
 public:
  TestKernels() : Kernels(kDevice) {
    ForEachOp([this](auto op) { Finish(this->*op, inner_.*op); });
  }

  CachingAllocator& allocator() override { return inner_.memory; }
  std::string Describe() const override { return inner_.Describe(); }

 private:
  template <typename... Args>
  struct Bound {
    Enqueued* kernels;
    const Op<absl::Status(Args...)>* op;
  };

  // Makes a call of `outer` call `inner` and wait for its end.
  template <typename... Args>
  void Finish(Op<absl::Status(Args...)>& outer,
              const Op<absl::Status(Args...)>& inner) {
    using ThisOp = Op<absl::Status(Args...)>;
    auto bound =
        std::make_shared<Bound<Args...>>(Bound<Args...>{&inner_, &inner});
    outer.BindFunction(
        [](const ThisOp& op, Args... args) -> absl::Status {
          const auto& bound = op.template state<Bound<Args...>>();
          return bound.kernels->Finished((*bound.op)(args...));
        },
        bound.get());
    bound_.push_back(std::move(bound));
  }

  Enqueued inner_;
  std::vector<std::shared_ptr<void>> bound_;
};

}  // namespace

std::unique_ptr<Kernels> CreateTestKernels() {
  return std::make_unique<TestKernels>();
}

std::shared_ptr<MemorySource> SharedMemory() {
  return std::make_shared<PoisonedMemory>();
}

}  // namespace troupe::nn
