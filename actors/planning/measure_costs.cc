#include "actors/planning/measure_costs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/chunks/chunk.h"
#include "actors/chunks/step/step_loss.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/planning/absent_ranks.h"
#include "actors/planning/calibrate.h"
#include "actors/planning/expected_memory.h"
#include "actors/spec/optimizer_states.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "data/batch_source.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/caching_allocator.h"
#include "pipeline/balance.h"
#include "pipeline/plan.h"

namespace troupe::actors {
namespace {

using pipeline::StageCosts;

// Limit on the micro-batches of a round: the first one writes gradients, later
// ones add to them.
constexpr int kMicroBatchesMax = 4;
constexpr double kSeconds = 0.4;
constexpr int kRoundsMin = 4, kRoundsMax = 200;

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns a plan in which every unit is a stage.
absl::StatusOr<pipeline::Plan> PlanOfUnits(
    const JobSpec& spec, const std::vector<std::string>& units) {
  pipeline::PlanOptions options = spec.plan;
  const std::int64_t micro_batch = options.MicroBatchSize();
  const int count = std::min(options.MicroBatches(), kMicroBatchesMax);
  options.mesh = pipeline::Mesh(/*dp=*/1, static_cast<int>(units.size()),
                                options.mesh.tp());
  options.cuts.assign(units.begin() + 1, units.end());
  options.micro_batch_size = micro_batch;
  options.global_batch_size = micro_batch * count;
  options.schedule = nullptr;
  options.placement.clear();
  options.virtual_stages = 1;
  options.inline_bytes = 0;
  options.cross_step = false;
  options.data_dtype = spec.dtype;
  options.loss_scale = spec.loss_scale;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                          MakeOptimizer(spec));
  SetNeedsOfUpdates(*optimizer, options.reductions);
  return MakeJobPlan(spec, options);
}

// Returns the samples of a round.
absl::StatusOr<StepBatches> BatchesOf(const JobSpec& spec,
                                      const pipeline::Plan& plan,
                                      nn::Allocator& allocator) {
  data::SamplerOptions sampler;
  sampler.global_batch_size = plan.global_batch_size;
  sampler.seed = spec.seed;
  data::Share share;
  share.micro_batch_size = plan.micro_batch_size;
  TROUPE_ASSIGN_OR_RETURN(
      data::BatchSource source,
      data::BatchSource::Create(SamplesOf(spec), sampler, share, allocator));
  StepBatches batches;
  TROUPE_RETURN_IF_ERROR(source.Next(batches));
  return batches;
}

// Adjacent units that are measured in one thread.
class Part {
 public:
  struct Setup {
    const JobSpec* spec = nullptr;
    const pipeline::Plan* plan = nullptr;
    int first = 0, count = 0;  // first unit, and number of units
    int number = 0;            // number of this part
  };

  explicit Part(const Setup& setup)
      : setup_(setup), others_(setup.plan->mesh.tp()), trace_(nullptr, 0) {}

  absl::Status Open(const StepBatches& batches) {
    batches_ = batches;
    TROUPE_ASSIGN_OR_RETURN(kernels_,
                            OpenRankKernels(*setup_.spec, setup_.number));
    others_.UseKernels(kernels_.get());
    TROUPE_ASSIGN_OR_RETURN(
        StepLoss loss, StepLoss::Create(*kernels_, {/*stop_on_nan=*/false,
                                                    setup_.plan->loss_scale}));
    loss_ = std::make_unique<StepLoss>(std::move(loss));
    for (int i = 0; i < setup_.count; ++i) {
      Chunk::Setup chunk;
      chunk.spec = setup_.spec;
      chunk.plan = setup_.plan;
      chunk.stage = setup_.first + i;
      chunk.axes = others_.axes();
      chunk.kernels = kernels_;
      chunk.trace = &trace_;
      chunk.start_threads = base::AvailableCores();
      chunk.scalars = loss_->scalars();
      TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> made,
                              Chunk::Create(chunk, &others_));
      chunks_.push_back(std::move(made));
    }
    rounds_.resize(chunks_.size());
    counts_.resize(chunks_.size());
    return absl::OkStatus();
  }

  // Set the tensors that the neighbours send: the activations of the part
  // before, and the gradients of the part after this one. All micro-batches of
  // all rounds use the same.
  void set_input(const nn::TensorList& tensors) { input_ = tensors; }
  void set_gradient(const nn::TensorList& tensors) { gradient_ = tensors; }

  // Run the first round, part by part: a forward, which returns the input of
  // the next part, and a backward, which returns the gradient for the part
  // before.
  absl::StatusOr<nn::TensorList> FirstForward() {
    TROUPE_RETURN_IF_ERROR(BeginRound());
    TROUPE_RETURN_IF_ERROR(Forward(0));
    return first_output_;
  }
  absl::StatusOr<nn::TensorList> FirstBackward() {
    TROUPE_RETURN_IF_ERROR(Backward(0, Chunk::Mode::kWhole, nullptr));
    return first_gradient_;
  }

  // Runs and times one round of all micro-batches. `split`: with backward in
  // two halves.
  absl::Status Round(bool split) {
    TROUPE_RETURN_IF_ERROR(BeginRound());
    for (int m = 0; m < static_cast<int>(batches_.size()); ++m) {
      TROUPE_RETURN_IF_ERROR(Forward(m));
      if (split) {
        TROUPE_RETURN_IF_ERROR(
            Backward(m, Chunk::Mode::kInputs, &Times::inputs));
        TROUPE_RETURN_IF_ERROR(
            Backward(m, Chunk::Mode::kWeights, &Times::weights));
      } else {
        TROUPE_RETURN_IF_ERROR(
            Backward(m, Chunk::Mode::kWhole, &Times::backward));
      }
    }
    TROUPE_RETURN_IF_ERROR(Update());
    EndRound(split);
    return absl::OkStatus();
  }

  void AddCosts(std::vector<pipeline::UnitCosts>& units) const {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      StageCosts& costs = units[setup_.first + i].costs;
      costs.forward = Median(rounds_[i].forward);
      costs.inputs = Median(rounds_[i].inputs);
      costs.weights = Median(rounds_[i].weights);
      costs.backward = Median(rounds_[i].backward);
      costs.update = Median(rounds_[i].update);
      costs.activation = counts_[i].activation;
      units[setup_.first + i].forward_sums = counts_[i].forward;
      units[setup_.first + i].backward_sums = counts_[i].backward;
    }
  }

 private:
  // Seconds of one unit in one round.
  struct Times {
    double forward = 0, inputs = 0, weights = 0, backward = 0, update = 0;
  };
  // Bytes that a unit keeps of a micro-batch, and its sums of layers over tp.
  struct Counts {
    double activation = 0;
    pipeline::LayerSums forward, backward;
  };
  // Seconds of one unit, a number for each round.
  struct Rounds {
    std::vector<double> forward, inputs, weights, backward, update;
  };

  absl::Status BeginRound() {
    now_.assign(chunks_.size(), Times());
    const nn::StepScalars values = chunks_[0]->parameters().ScalarsOf(step_);
    TROUPE_RETURN_IF_ERROR(loss_->BeginStep(StepKind::kTrain, step_, values));
    for (const auto& chunk : chunks_) {
      chunk->BeginStep(StepKind::kTrain, step_, batches_);
    }
    ++step_;
    return Settle();
  }

  // Waits until a device with queues has run its work.
  absl::Status Settle() {
    if (kernels_->queues() == nullptr) return absl::OkStatus();
    return nn::Synchronize(*kernels_,
                           nn::Record(*kernels_, nn::Queue::kCompute));
  }

  absl::Status Forward(int m) {
    nn::TensorList between = input_;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      Chunk& chunk = *chunks_[i];
      const double before = BytesInUse();
      const double begin = Now();
      if (!chunk.is_first()) {
        TROUPE_RETURN_IF_ERROR(chunk.ReceiveActivations(m, between));
      }
      TROUPE_RETURN_IF_ERROR(chunk.Forward(m));
      TROUPE_RETURN_IF_ERROR(Settle());
      now_[i].forward += Now() - begin;
      counts_[i].forward = others_.TakeSums();
      // The first round is left out: kernels allocate their own memory in it.
      if (!rounds_[i].forward.empty()) {
        double& activation = counts_[i].activation;
        activation = std::max(activation, BytesInUse() - before);
      }
      if (!chunk.is_last()) between = chunk.TakeOutputs(m);
    }
    first_output_ = between;
    return absl::OkStatus();
  }

  absl::Status Backward(int m, Chunk::Mode mode, double Times::*time) {
    nn::TensorList between = gradient_;
    for (std::size_t i = chunks_.size(); i-- > 0;) {
      Chunk& chunk = *chunks_[i];
      const double begin = Now();
      if (mode != Chunk::Mode::kWeights && !chunk.is_last()) {
        TROUPE_RETURN_IF_ERROR(chunk.ReceiveGradients(m, between));
      }
      chunk.BeginBackward(m, mode);
      for (bool more = true; more;) {
        TROUPE_ASSIGN_OR_RETURN(more, chunk.NextPiece());
      }
      TROUPE_RETURN_IF_ERROR(Settle());
      if (time != nullptr) now_[i].*time += Now() - begin;
      const pipeline::LayerSums sums = others_.TakeSums();
      if (mode == Chunk::Mode::kWhole) counts_[i].backward = sums;
      if (mode != Chunk::Mode::kWeights && !chunk.is_first()) {
        between = chunk.TakeInputGradients(m);
      }
    }
    first_gradient_ = between;
    return absl::OkStatus();
  }

  absl::Status Update() {
    TROUPE_RETURN_IF_ERROR(loss_->PassToUpdates());
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      BucketUpdates& updates = chunks_[i]->parameters().updates();
      const double begin = Now();
      const nn::Tensor& scalars = loss_->scalars();
      if (setup_.plan->update_needs_all_buckets) {
        TROUPE_RETURN_IF_ERROR(updates.Inspect(scalars));
        TROUPE_RETURN_IF_ERROR(updates.Conclude(scalars));
      }
      const pipeline::StagePlan& stage = setup_.plan->stages[setup_.first + i];
      for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
        TROUPE_RETURN_IF_ERROR(updates.Update(static_cast<int>(k), scalars));
      }
      TROUPE_RETURN_IF_ERROR(Settle());
      now_[i].update += Now() - begin;
    }
    return absl::OkStatus();
  }

  void EndRound(bool split) {
    const auto count = static_cast<double>(batches_.size());
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      Rounds& all = rounds_[i];
      all.forward.push_back(now_[i].forward / count);
      all.update.push_back(now_[i].update);
      if (split) {
        all.inputs.push_back(now_[i].inputs / count);
        all.weights.push_back(now_[i].weights / count);
      } else {
        all.backward.push_back(now_[i].backward / count);
      }
    }
  }

  double BytesInUse() const {
    return static_cast<double>(kernels_->allocator().stats().bytes_in_use);
  }

  const Setup setup_;
  AbsentRanks others_;
  StepTrace trace_;
  StepBatches batches_;
  std::shared_ptr<nn::Kernels> kernels_;
  std::unique_ptr<StepLoss> loss_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  nn::TensorList input_, gradient_, first_output_, first_gradient_;
  std::int64_t step_ = 0;
  std::vector<Times> now_;
  std::vector<Rounds> rounds_;
  std::vector<Counts> counts_;
};

// Returns the number of ranks that compute at once on this machine.
int RanksAtOnce(const JobSpec& spec, int units) {
  if (!spec.device.is_host()) return 1;
  const int room = base::AvailableCores() / spec.plan.threads_per_rank;
  return std::max(1, std::min({spec.plan.mesh.size(), room, units}));
}

// Divides the units into as many parts as are measured at once, of similar
// numbers of FLOPs.
absl::StatusOr<std::vector<std::unique_ptr<Part>>> MakeParts(
    const JobSpec& spec, const pipeline::Plan& plan,
    const std::vector<std::string>& units) {
  pipeline::ModelCosts flops;
  for (std::size_t i = 0; i < units.size(); ++i) {
    pipeline::UnitCosts& unit = flops.units.emplace_back();
    unit.path = units[i];
    unit.costs = {plan.stages[i].flops, 0, 0, 0};
  }
  pipeline::CutOptions options;
  options.placement = pipeline::LoopedPlacement(
      RanksAtOnce(spec, static_cast<int>(units.size())), /*chunks=*/1);
  TROUPE_ASSIGN_OR_RETURN(const pipeline::FoundCuts found,
                          pipeline::FindCuts(flops, options));
  std::vector<int> begins = {0};
  for (const pipeline::Cut& cut : found.cuts) {
    const auto unit =
        std::find(units.begin(), units.end(), std::get<std::string>(cut.at));
    begins.push_back(static_cast<int>(unit - units.begin()));
  }
  begins.push_back(static_cast<int>(units.size()));
  std::vector<std::unique_ptr<Part>> parts;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    Part::Setup setup;
    setup.spec = &spec;
    setup.plan = &plan;
    setup.first = begins[i];
    setup.count = begins[i + 1] - begins[i];
    setup.number = static_cast<int>(i);
    parts.push_back(std::make_unique<Part>(setup));
  }
  return parts;
}

// Opens the parts, and gives each the activations and gradients of its
// neighbours.
absl::Status Open(const StepBatches& batches,
                  std::vector<std::unique_ptr<Part>>& parts) {
  nn::TensorList between;
  for (const auto& part : parts) {
    TROUPE_RETURN_IF_ERROR(part->Open(batches));
    part->set_input(between);
    TROUPE_ASSIGN_OR_RETURN(between, part->FirstForward());
    for (nn::Tensor& tensor : between) tensor = tensor.Detached();
  }
  between.clear();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    (*part)->set_gradient(between);
    TROUPE_ASSIGN_OR_RETURN(between, (*part)->FirstBackward());
  }
  return absl::OkStatus();
}

// Runs rounds of all parts at once. All go on until each has enough rounds, so
// that every part is measured beside the others.
absl::Status RunRounds(std::vector<std::unique_ptr<Part>>& parts) {
  std::atomic<std::size_t> have_enough{0};
  std::vector<absl::Status> statuses(parts.size());
  const auto run = [&](std::size_t i) {
    const double begin = Now();
    bool enough = false;
    for (int round = 0; have_enough.load() < parts.size(); ++round) {
      statuses[i] = parts[i]->Round(/*split=*/round % 2 != 0);
      const bool ends = (round + 1 >= kRoundsMin && Now() - begin > kSeconds) ||
                        round + 1 >= kRoundsMax || !statuses[i].ok();
      if (ends && !std::exchange(enough, true)) have_enough.fetch_add(1);
      if (!statuses[i].ok()) return;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < parts.size(); ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) TROUPE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// Returns `spec` without the fields that have no part in measuring.
JobSpec Alone(const JobSpec& spec) {
  JobSpec alone = spec;
  alone.cluster.reset();
  alone.init = InitOptions();
  alone.trace = nullptr;
  alone.stop_on_nan = false;
  return alone;
}

}  // namespace

absl::StatusOr<pipeline::ModelCosts> MeasureCosts(const JobSpec& spec) {
  const JobSpec alone = Alone(spec);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> units,
                          pipeline::CutPlaces(spec.model));
  TROUPE_ASSIGN_OR_RETURN(const pipeline::Plan plan, PlanOfUnits(alone, units));
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const StepBatches batches,
                          BatchesOf(alone, plan, memory));
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Part>> parts,
                          MakeParts(alone, plan, units));
  TROUPE_RETURN_IF_ERROR(Open(batches, parts));
  TROUPE_RETURN_IF_ERROR(RunRounds(parts));
  pipeline::ModelCosts costs;
  costs.units.resize(units.size());
  for (const auto& part : parts) part->AddCosts(costs.units);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ExpectedMemory> memories,
                          ExpectMemoryOfRanks(alone, plan));
  for (std::size_t i = 0; i < units.size(); ++i) {
    pipeline::UnitCosts& unit = costs.units[i];
    unit.path = units[i];
    unit.held_bytes = memories[i].held();
    unit.output_bytes =
        static_cast<double>(plan.stages[i].output.numel()) *
        static_cast<double>(nn::SizeOf(plan.stages[i].output_dtype));
  }
  costs.transfer = MeasureHandOffSeconds();
  return costs;
}

}  // namespace troupe::actors
