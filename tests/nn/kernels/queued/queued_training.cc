#include "tests/nn/kernels/queued/queued_training.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/check.h"
#include "comm/local/local_group.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "nn/random/philox.h"
#include "tests/comm/guarded_group.h"

namespace troupe::nn {
namespace {

constexpr int kSteps = 3;
constexpr std::int64_t kBatch = 3;
constexpr int kBuckets = 3;

std::unique_ptr<Kernels> InnerKernels() {
  CpuKernelOptions options;
  options.onednn = false;
  return CreateCpuKernels(options);
}

// The seed's generator, also for the order in which the test runs queued work.
class Draws {
 public:
  explicit Draws(std::uint64_t seed)
      : stream_(RandomKey(seed, Purpose::kData), RandomPosition{}) {}
  int Below(int n) {
    return static_cast<int>(stream_.Below(static_cast<std::uint64_t>(n)));
  }

 private:
  RandomStream stream_;
};

class Rank : private GradientSink {
 public:
  Rank(int rank, const Training& training, std::unique_ptr<Kernels> kernels,
       comm::Communicator* comm)
      : rank_(rank),
        training_(training),
        kernels_(std::move(kernels)),
        comm_(comm),
        model_(*MakeLeNet({28, 28, 1}, 10, {})),
        sgd_({/*lr=*/0.05, /*momentum=*/0.9}) {}

  absl::Status Init() {
    std::vector<std::vector<Parameter*>> buckets(kBuckets);
    std::vector<Parameter*> all = model_->Parameters();
    std::reverse(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
      buckets[i * kBuckets / all.size()].push_back(all[i]);
    }
    ParameterArena::Options options;
    options.kernels = kernels_.get();
    TROUPE_ASSIGN_OR_RETURN(
        arena_,
        ParameterArena::Create(buckets, options, kernels_->allocator()));
    TROUPE_RETURN_IF_ERROR(arena_->Initialize(/*seed=*/3));
    TROUPE_ASSIGN_OR_RETURN(
        scalars_,
        Tensor::Create({kNumStepScalars}, DType::kF64, kernels_->allocator()));
    return sgd_.Attach(*arena_);
  }

  bool Drive() {
    DeviceQueues* const queues = kernels_->queues();
    return (queues != nullptr && queues->Progress());
  }
  comm::Communicator& comm() { return *comm_; }

  absl::Status ForwardAndBackward(int step,
                                  const std::function<void()>& meanwhile) {
    for (int k = 0; k < kBuckets; ++k) left_[k] = 0;
    for (const ArenaSlot& slot : arena_->slots()) ++left_[slot.bucket];
    arena_->BeginStep();
    tape_.Reset();
    Context ctx(*kernels_, &tape_);
    const Tensor x = OnDevice(Images(step)), t = OnDevice(Labels(step));
    const Tensor loss = ops::SoftmaxCrossEntropy(ctx, (*model_)(ctx, x), t);
    TROUPE_RETURN_IF_ERROR(ctx.status());
    ReadLater(loss);
    BackwardPass backward(tape_, *kernels_, *this, BackwardPass::Mode::kWhole);
    backward.Seed(loss);
    while (true) {
      TROUPE_ASSIGN_OR_RETURN(const bool more, backward.Next());
      TROUPE_RETURN_IF_ERROR(started_);
      meanwhile();
      if (!more) return absl::OkStatus();
    }
  }

  bool Reduced() const {
    for (const base::Event& event : reduced_) {
      if (!event.ready()) return false;
    }
    return true;
  }

  absl::Status Update(int step) {
    StepScalars values;
    sgd_.FillScalars(step, values);
    values.loss_count = static_cast<double>(kBatch * training_.ranks);
    TROUPE_RETURN_IF_ERROR(kernels_->SetStepScalars(values, scalars_));
    for (int k = 0; k < kBuckets; ++k) {
      if (training_.forgotten != Forgotten::kReduction) {
        Wait(*kernels_, Queue::kCompute, reduced_[k]);
      }
      TROUPE_RETURN_IF_ERROR(sgd_.Update(*kernels_, scalars_, *arena_, k));
    }
    return absl::OkStatus();
  }

  // Copies the results that the host reads at the end.
  base::Event Finish() {
    parameters_ = Tensor::Empty(arena_->values().shape(), DType::kF32, host_);
    Wait(*kernels_, Queue::kCopy, Record(*kernels_, Queue::kCompute));
    CopyBytes(*kernels_, Queue::kCopy, arena_->values(), parameters_);
    return Record(*kernels_, Queue::kCopy);
  }
  void AddTo(Trained& trained) const {
    for (const auto& [device, host] : losses_) {
      trained.losses.push_back(host.data<double>()[ops::kLossSum]);
    }
    trained.parameters.append(static_cast<const char*>(parameters_.raw()),
                              parameters_.bytes());
  }

 private:
  Tensor Images(int step) {
    Tensor images = Tensor::Empty({kBatch, 28, 28, 1}, DType::kF32, host_);
    RandomPosition position;
    position.path = static_cast<std::uint32_t>(step * 100 + rank_);
    RandomStream stream(RandomKey(1, Purpose::kData), position);
    for (float& value : images.span<float>()) {
      value = static_cast<float>(stream.Normal());
    }
    return images;
  }
  Tensor Labels(int step) {
    Tensor labels = Tensor::Empty({kBatch}, DType::kI64, host_);
    for (int i = 0; i < kBatch; ++i) {
      labels.data<std::int64_t>()[i] = (7 * step + 3 * i + rank_) % 10;
    }
    return labels;
  }

  Tensor OnDevice(const Tensor& host) {
    if (kernels_->queues() == nullptr) return host;
    Tensor device =
        Tensor::Empty(host.shape(), host.dtype(), kernels_->allocator());
    // Earlier work of kCompute may still use this memory for another tensor.
    if (training_.forgotten != Forgotten::kLastReader) {
      Wait(*kernels_, Queue::kCopy, Record(*kernels_, Queue::kCompute));
    }
    CopyBytes(*kernels_, Queue::kCopy, host, device);
    if (training_.forgotten != Forgotten::kBatch) {
      Wait(*kernels_, Queue::kCompute, Record(*kernels_, Queue::kCopy));
    }
    return device;
  }

  // The statistics are kept until they are copied: another queue reads them.
  void ReadLater(const Tensor& loss) {
    losses_.emplace_back(loss,
                         Tensor::Zeros(loss.shape(), loss.dtype(), host_));
    if (training_.forgotten != Forgotten::kLoss) {
      Wait(*kernels_, Queue::kCopy, Record(*kernels_, Queue::kCompute));
    }
    CopyBytes(*kernels_, Queue::kCopy, loss, losses_.back().second);
  }

  void GradientComplete(Parameter& parameter) override {
    const int bucket = arena_->slots()[parameter.index].bucket;
    if (--left_[bucket] > 0) return;
    const base::Event ready = training_.forgotten == Forgotten::kGradients
                                  ? base::Event()
                                  : Record(*kernels_, Queue::kCompute);
    absl::StatusOr<base::Event> reduced = comm_->Start(
        comm::AllReduce(comm::ReduceOp::kSum, arena_->BucketGrads(bucket)),
        ready);
    started_.Update(reduced.status());
    if (reduced.ok()) reduced_[bucket] = *std::move(reduced);
  }
  void LastReaderDone(Parameter&) override {}

  const int rank_;
  const Training training_;
  CachingAllocator host_;
  const std::unique_ptr<Kernels> kernels_;
  comm::Communicator* const comm_;
  const std::unique_ptr<Sequential> model_;
  std::unique_ptr<ParameterArena> arena_;
  Sgd sgd_;
  Tensor scalars_;
  Tape tape_;
  int left_[kBuckets] = {};
  base::Event reduced_[kBuckets];
  absl::Status started_;  // status of the collectives
  std::vector<std::pair<Tensor, Tensor>> losses_;
  Tensor parameters_;
};

}  // namespace

bool operator==(const Trained& a, const Trained& b) {
  return a.status == b.status && a.parameters == b.parameters &&
         a.losses.size() == b.losses.size() &&
         std::memcmp(a.losses.data(), b.losses.data(),
                     a.losses.size() * sizeof(double)) == 0;
}

namespace {

using Ranks = std::vector<std::unique_ptr<Rank>>;

// `drive` runs one piece of work of any rank, chosen by the seed.
absl::Status Run(const Ranks& ranks, bool queued, Draws& draws,
                 const std::function<void()>& drive) {
  const auto meanwhile = [&] {
    if (!queued) return;
    for (int n = draws.Below(4) == 0 ? draws.Below(40) : 0; n > 0; --n) drive();
  };
  for (int step = 0; step < kSteps; ++step) {
    for (auto& rank : ranks) {
      TROUPE_RETURN_IF_ERROR(rank->ForwardAndBackward(step, meanwhile));
    }
    for (auto& rank : ranks) {
      while (!queued && !rank->Reduced()) drive();
      TROUPE_RETURN_IF_ERROR(rank->Update(step));
    }
  }
  std::vector<base::Event> finished;
  for (auto& rank : ranks) finished.push_back(rank->Finish());
  for (const base::Event& event : finished) {
    while (!event.ready()) drive();
    TROUPE_RETURN_IF_ERROR(event.status());
  }
  return absl::OkStatus();
}

}  // namespace

Trained Train(const Training& training) {
  const bool queued = training.seed.has_value();
  Draws draws(training.seed.value_or(0));
  auto memory = std::make_shared<GuardedMemory>(std::size_t{64} << 20);
  comm::LocalGroupOptions group;
  group.size = training.ranks;
  std::vector<std::unique_ptr<comm::Communicator>> comms =
      comm::MakeLocalGroup(group);
  if (queued) comms = comm::GuardGroup(std::move(comms), memory);
  Ranks ranks;
  Trained trained;
  for (int r = 0; r < training.ranks; ++r) {
    std::unique_ptr<Kernels> kernels = InnerKernels();
    if (queued) {
      kernels = CreateQueuedKernels(std::move(kernels), memory,
                                    *training.seed * 64 + r);
    }
    ranks.push_back(std::make_unique<Rank>(r, training, std::move(kernels),
                                           comms[r].get()));
    trained.status.Update(ranks.back()->Init());
  }
  const auto drive = [&] {
    const int at = draws.Below(2 * training.ranks);
    Rank& rank = *ranks[at / 2];
    at % 2 == 0 ? rank.Drive() : rank.comm().Progress();
  };
  trained.status.Update(Run(ranks, queued, draws, drive));
  if (!trained.status.ok()) return trained;
  for (auto& rank : ranks) rank->AddTo(trained);
  return trained;
}

}  // namespace troupe::nn
