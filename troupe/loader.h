// Batches of a dataset for a training loop of a program's own: PyTorch's
// DataLoader and DistributedSampler in one, since rank and world are known.
//
//   LoaderEnv env;
//   env.context = &ctx, env.rank = 1, env.world = 4, env.seed = 7;
//   DataLoaderOptions options = {/*batch_size=*/64, /*shuffle=*/true};
//   options.workers = 2;
//   DataLoader loader(env, train, options);
//   for (int epoch = 0; epoch < 10; ++epoch) {
//     loader.SetEpoch(epoch);
//     for (auto [x, y] : loader) {             // Vars on the rank's device
//       Var loss = nn::CrossEntropy((*model)(x), y);
//       loss.Backward();
//     }
//   }
//
// Tensors in host memory become a dataset, and tensors of random numbers, too:
//
//   Var inputs = Randn(ctx, {640, 10}), targets = Randn(ctx, {640, 5});
//   DataLoader toy(env, TensorDataset(inputs, targets), {/*batch_size=*/64});
//
// Options have PyTorch's names and defaults. batch_size is that of a rank, as
// in PyTorch's loops with a DistributedSampler. The order is that of the
// project's sampler: with the same seed, and a global batch of batch_size x
// world, the whole batches of a loop are those of a job, on every rank. An
// epoch's end is PyTorch's: the last global batch is filled up with samples
// from the beginning of the epoch's order, so that all ranks have equally many
// batches of equal sizes, or with drop_last left out (data/rank_batches.h).
//
// Each pass over the loader is an epoch, with an order of its own: the first
// one is epoch 0, or that of SetEpoch(), and each pass is followed by the next
// epoch. So a loop without SetEpoch() shuffles anew, too. A pass may be left
// early. One pass at a time: an iterator of an earlier one throws.
//
// Samples are read ahead of the loop by `workers` threads: at most
// workers x prefetch_factor batches of host memory wait, or are being read.
// Batches do not depend on it. With 0 the loop itself reads them.
//
// A batch's position among the samples of all ranks becomes that of the
// context's draws (StepPosition::sample), if the context draws: dropout is then
// that of a job.
//
// Errors: base::StatusError, in the constructor for options that cannot work,
// in the loop for those of the dataset, with the rank, the epoch and the batch.
// Threads: the rank's own; the dataset is read by the workers. The destructor
// waits until these have read the batches that they have begun.

#ifndef TROUPE_LOADER_H_
#define TROUPE_LOADER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/event.h"
#include "data/dataset.h"
#include "data/rank_batches.h"
#include "nn/autograd/context.h"
#include "nn/autograd/var.h"
#include "nn/tensor/allocator.h"

namespace troupe {

class BatchReader;
struct BatchRead;

// Limits on DataLoaderOptions.
inline constexpr int kLoaderWorkersMax = 256;
inline constexpr int kPrefetchFactorMax = 1024;

// The parts of a rank's program that a loader uses.
struct LoaderEnv {
  nn::Context* context = nullptr;  // required; outlives the loader
  int rank = 0;                    // along the axis of data parallelism
  int world = 1;
  std::uint64_t seed = 0;  // the same on all ranks
  // Host memory for batches; null: the loader's own. Outlives the loader.
  nn::Allocator* allocator = nullptr;
  // Whether all ranks share one thread (the simulator): the loop then reads
  // batches in place, whatever DataLoaderOptions::workers says.
  bool shares_thread = false;
  // Waits for an event and returns its status, so that a rank's strand can go
  // on meanwhile; unset: blocks the thread, for up to
  // DataLoaderOptions::timeout.
  std::function<absl::Status(const base::Event&)> await = nullptr;
};

struct DataLoaderOptions {
  std::int64_t batch_size = 1;  // samples of a rank
  bool shuffle = false;
  bool drop_last = false;
  int workers = 0;          // num_workers, as threads
  int prefetch_factor = 2;  // batches read ahead for each worker
  // Seed of the order, if it is not that of the program.
  std::optional<std::uint64_t> seed = std::nullopt;
  // Limit on the time that the loop waits for the workers to read a batch.
  absl::Duration timeout = absl::Minutes(5);
};

// A batch on the rank's device, for `auto [x, y]`. Shapes: data/dataset.h.
struct LoadedBatch {
  nn::Var inputs;
  nn::Var targets;
};

class DataLoader {
 public:
  DataLoader(const LoaderEnv& env, data::DatasetPtr dataset,
             const DataLoaderOptions& options = {});
  // A dataset without a rank is a compile error that says what to write.
  template <
      typename D,
      std::enable_if_t<std::is_convertible_v<D, data::DatasetPtr>, int> = 0>
  explicit DataLoader(const D&, const DataLoaderOptions& options = {})
      : DataLoader(LoaderEnv(), nullptr, options) {
    static_assert(std::is_convertible_v<D, LoaderEnv>,
                  "the rank comes first: DataLoader loader(rank, dataset, "
                  "{/*batch_size=*/16});");
  }
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Number of batches in an epoch; the same on all ranks.
  std::int64_t size() const { return batches_.size(); }
  const data::Dataset& dataset() const { return *dataset_; }

  // Sets the epoch of the next pass, in [0, 2^32).
  void SetEpoch(std::int64_t epoch);
  // Returns the epoch of the next pass.
  std::int64_t epoch() const { return epoch_; }

  struct End {};
  // One pass over the loader (an input iterator).
  class Iterator {
   public:
    LoadedBatch operator*();
    Iterator& operator++();
    friend bool operator==(const Iterator& it, End) { return it.AtEnd(); }
    friend bool operator!=(const Iterator& it, End) { return !it.AtEnd(); }

   private:
    friend class DataLoader;
    Iterator(DataLoader* loader, std::int64_t pass)
        : loader_(loader), pass_(pass) {}
    bool AtEnd() const { return number_ >= loader_->size(); }

    DataLoader* loader_;
    std::int64_t pass_;
    std::int64_t number_ = 0;  // batch of the epoch that comes next
    std::optional<LoadedBatch> loaded_ = {};  // batch `number_`
  };
  // Begins a pass, and starts to read its batches.
  Iterator begin();
  End end() const { return {}; }

 private:
  // Starts reads until the limit, or the end of the epoch.
  void ReadAhead();
  // Drops the reads that were started; the next one is of batch `number`.
  void RestartAt(std::int64_t number);
  absl::Status Await(const base::Event& done) const;
  // Returns batch `number` of a pass. After an error it can be repeated.
  LoadedBatch Take(std::int64_t pass, std::int64_t number);
  LoadedBatch ToDevice(const BatchRead& read);

  const LoaderEnv env_;
  const data::DatasetPtr dataset_;
  const DataLoaderOptions options_;
  data::RankBatches batches_;  // its epoch is that of the pass
  const std::unique_ptr<nn::Allocator> own_memory_;
  std::int64_t epoch_ = 0;
  std::int64_t pass_ = 0;
  std::int64_t next_read_ = 0;   // first batch of the pass that is not started
  const std::size_t reads_max_;  // batches read ahead; 0: none
  std::deque<std::shared_ptr<BatchRead>> reads_;
  // The last member: its threads end before the others are destroyed.
  const std::unique_ptr<BatchReader> reader_;
};

// Returns the dataset of these tensors in host memory, [N, ...] each, like
// torch's TensorDataset. With num_classes > 0 the targets are class numbers
// below it, i64 [N] (data/in_memory_dataset.h).
data::DatasetPtr TensorDataset(nn::Tensor inputs, nn::Tensor targets,
                               std::int64_t num_classes = 0);

}  // namespace troupe

#endif  // TROUPE_LOADER_H_
