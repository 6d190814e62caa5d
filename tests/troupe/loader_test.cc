#include "troupe/loader.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/status_error.h"
#include "data/batch_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

// Input and target of sample i are the number i. `watch` is called before each
// batch is read, on the thread that reads it.
class WatchedDataset : public data::Dataset {
 public:
  using Watch = std::function<absl::Status(absl::Span<const std::int64_t>)>;

  explicit WatchedDataset(std::int64_t size, Watch watch = nullptr)
      : Dataset(size, Spec()), watch_(std::move(watch)) {}

 private:
  static data::SampleSpec Spec() {
    data::SampleSpec spec = data::RegressionSpec({1}, 1);
    spec.input_dtype = spec.target_dtype = nn::DType::kI64;
    return spec;
  }
  absl::Status Gather(absl::Span<const std::int64_t> indices, std::int64_t,
                      const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    if (watch_ != nullptr) {
      if (absl::Status status = watch_(indices); !status.ok()) return status;
    }
    std::copy(indices.begin(), indices.end(), inputs.data<std::int64_t>());
    std::copy(indices.begin(), indices.end(), targets.data<std::int64_t>());
    return absl::OkStatus();
  }

  const Watch watch_;
};

data::DatasetPtr Samples(std::int64_t size,
                         WatchedDataset::Watch watch = nullptr) {
  return std::make_shared<WatchedDataset>(size, std::move(watch));
}

Numbers ToNumbers(const nn::Tensor& t) {
  return {t.data<std::int64_t>(), t.data<std::int64_t>() + t.numel()};
}

DataLoaderOptions BatchesOf(std::int64_t size, int workers = 0) {
  DataLoaderOptions options;
  options.batch_size = size;
  options.workers = workers;
  return options;
}

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() { env_.context = &ctx_; }

  // Returns the inputs of a pass, batch by batch.
  static std::vector<Numbers> Pass(DataLoader& loader) {
    std::vector<Numbers> batches;
    for (auto [x, y] : loader) {
      batches.push_back(ToNumbers(x));
      EXPECT_EQ(ToNumbers(y), batches.back());
    }
    return batches;
  }
  template <typename Run>
  static std::string ErrorOf(Run run) {
    return base::Try(run).ToString();
  }

  nn::CachingAllocator allocator_;
  std::unique_ptr<nn::Kernels> kernels_ = nn::CreateReferenceKernels();
  nn::Context ctx_{*kernels_};
  LoaderEnv env_;
};

TEST_F(LoaderTest, HasTheBatchesOfAJobInEveryEpoch) {
  const data::DatasetPtr dataset = Samples(53);
  for (int world : {1, 2, 4}) {
    for (int rank = 0; rank < world; ++rank) {
      for (int workers : {0, 3}) {
        env_.rank = rank, env_.world = world, env_.seed = 5;
        DataLoaderOptions options = BatchesOf(4, workers);
        options.shuffle = true;
        options.drop_last = true;
        DataLoader loader(env_, dataset, options);
        data::SamplerOptions sampler;
        sampler.global_batch_size = 4 * world;
        sampler.seed = 5;
        data::BatchSource job = *data::BatchSource::Create(
            dataset, sampler, {rank, world, /*micro_batch_size=*/4},
            allocator_);
        std::vector<data::Batch> wanted;
        for (int epoch = 0; epoch < 3; ++epoch) {
          EXPECT_EQ(loader.epoch(), epoch);
          const std::vector<Numbers> batches = Pass(loader);
          EXPECT_EQ(static_cast<std::int64_t>(batches.size()), loader.size());
          for (const Numbers& batch : batches) {
            ASSERT_TRUE(job.Next(wanted).ok());
            ASSERT_EQ(wanted[0].epoch, epoch);
            EXPECT_EQ(batch, ToNumbers(wanted[0].inputs));
          }
        }
      }
    }
  }
}

TEST_F(LoaderTest, PadsTheEndOfAnEpochOrDropsIt) {
  env_.world = 2, env_.rank = 1;
  DataLoader padded(env_, Samples(9), BatchesOf(3, /*workers=*/1));
  EXPECT_THAT(Pass(padded),
              ElementsAre(ElementsAre(3, 4, 5), ElementsAre(8, 0)));
  DataLoaderOptions options = BatchesOf(3);
  options.drop_last = true;
  DataLoader dropped(env_, Samples(9), options);
  EXPECT_EQ(dropped.size(), 1);
  EXPECT_THAT(Pass(dropped), ElementsAre(ElementsAre(3, 4, 5)));
}

TEST_F(LoaderTest, APassIsAnEpochUnlessItIsSet) {
  DataLoaderOptions options = BatchesOf(20, /*workers=*/2);
  options.shuffle = true;
  DataLoader loader(env_, Samples(20), options);
  const std::vector<Numbers> first = Pass(loader), second = Pass(loader);
  EXPECT_NE(first, second);
  loader.SetEpoch(0);
  EXPECT_EQ(Pass(loader), first);
  EXPECT_EQ(Pass(loader), second);
  options.seed = 99;
  DataLoader other(env_, Samples(20), options);
  EXPECT_NE(Pass(other), first);
}

TEST_F(LoaderTest, APassMayBeLeftAndAnOldOneThrows) {
  for (int workers : {0, 2}) {
    DataLoader loader(env_, Samples(8), BatchesOf(2, workers));
    for (auto [x, y] : loader) {
      EXPECT_THAT(ToNumbers(x), ElementsAre(0, 1));
      break;
    }
    EXPECT_EQ(Pass(loader).size(), 4u);
    auto old = loader.begin();
    EXPECT_THAT(ToNumbers((*old).inputs), ElementsAre(0, 1));
    ++old;
    ++old;  // without a look at the batch
    EXPECT_THAT(ToNumbers((*old).inputs), ElementsAre(4, 5));
    ++old;
    loader.begin();
    EXPECT_EQ(ErrorOf([&] { *old; }),
              "FAILED_PRECONDITION: DataLoader: another pass over the loader "
              "has begun since this one; finish a pass first, or use a loader "
              "for each");
  }
}

// Counts the batches whose reading has begun, and compares them with those that
// the loop has asked for.
struct Counter {
  absl::Mutex mutex;
  int begun = 0, taken = 0, ahead_most = 0;

  WatchedDataset::Watch watch() {
    return [this](absl::Span<const std::int64_t>) {
      absl::MutexLock lock(&mutex);
      ++begun;
      ahead_most = std::max(ahead_most, begun - taken);
      return absl::OkStatus();
    };
  }
  bool AwaitBegun(int count) {
    const auto reached = [&] { return begun >= count; };
    absl::MutexLock lock(&mutex);
    return mutex.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(60));
  }
};

TEST_F(LoaderTest, WorkersReadABoundedNumberOfBatchesAhead) {
  Counter counter;
  DataLoaderOptions options = BatchesOf(1, /*workers=*/2);
  options.prefetch_factor = 3;
  {
    DataLoader loader(env_, Samples(40, counter.watch()), options);
    auto it = loader.begin();
    for (int i = 0; i < 30; ++i, ++it) {
      // All that may be read ahead is, before the loop asks for it.
      ASSERT_TRUE(counter.AwaitBegun(i + 6));
      {
        absl::MutexLock lock(&counter.mutex);
        ++counter.taken;
      }
      EXPECT_THAT(ToNumbers((*it).inputs), ElementsAre(i));
    }
    ASSERT_TRUE(counter.AwaitBegun(36));
  }
  EXPECT_EQ(counter.begun, 36);
  EXPECT_EQ(counter.ahead_most, 6);
}

TEST_F(LoaderTest, BatchesKeepTheirOrderWhenALaterOneIsReadFirst) {
  absl::Notification later;
  DataLoader loader(
      env_,
      Samples(4,
              [&](absl::Span<const std::int64_t> indices) {
                if (indices[0] == 2) later.Notify();
                return indices[0] == 0 && !later.WaitForNotificationWithTimeout(
                                              absl::Seconds(60))
                           ? absl::DeadlineExceededError("alone")
                           : absl::OkStatus();
              }),
      BatchesOf(2, /*workers=*/2));
  EXPECT_THAT(Pass(loader), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST_F(LoaderTest, ReadsInPlaceWithoutWorkersAndInASharedThread) {
  const std::thread::id here = std::this_thread::get_id();
  bool elsewhere = false;
  Counter counter;
  const auto watch = [&](absl::Span<const std::int64_t> indices) {
    elsewhere |= std::this_thread::get_id() != here;
    return counter.watch()(indices);
  };
  env_.shares_thread = true;
  env_.await = [](const base::Event&) {
    return absl::InternalError("there is nothing to wait for");
  };
  for (int workers : {0, 2}) {
    env_.shares_thread = workers > 0;
    counter.begun = 0;
    DataLoader loader(env_, Samples(6, watch), BatchesOf(2, workers));
    auto it = loader.begin();
    EXPECT_EQ(counter.begun, 0);
    EXPECT_THAT(ToNumbers((*it).inputs), ElementsAre(0, 1));
    EXPECT_EQ(counter.begun, 1);
  }
  EXPECT_FALSE(elsewhere);
}

TEST_F(LoaderTest, WaitsAsTheRankDoes) {
  absl::Notification asked;
  int waits = 0;
  env_.await = [&](const base::Event& done) {
    ++waits;
    asked.Notify();  // a worker reads on only now
    absl::Notification read;
    done.OnReady([&](const absl::Status&) { read.Notify(); });
    read.WaitForNotification();
    return done.status();
  };
  DataLoader loader(env_,
                    Samples(2,
                            [&](absl::Span<const std::int64_t>) {
                              asked.WaitForNotification();
                              return absl::OkStatus();
                            }),
                    BatchesOf(2, /*workers=*/1));
  EXPECT_THAT(Pass(loader), ElementsAre(ElementsAre(0, 1)));
  EXPECT_EQ(waits, 1);
}

TEST_F(LoaderTest, AReadThatTakesTooLongIsAnError) {
  absl::Notification go_on;
  DataLoaderOptions options = BatchesOf(2, /*workers=*/1);
  options.timeout = absl::Milliseconds(1);
  DataLoader loader(env_,
                    Samples(2,
                            [&](absl::Span<const std::int64_t>) {
                              go_on.WaitForNotification();
                              return absl::OkStatus();
                            }),
                    options);
  EXPECT_EQ(ErrorOf([&] { Pass(loader); }),
            "DEADLINE_EXCEEDED: DataLoader of rank 0, epoch 0, batch 0: it "
            "took longer than 1ms; raise DataLoaderOptions::timeout, or the "
            "number of workers");
  go_on.Notify();
}

TEST_F(LoaderTest, AnErrorOfTheDatasetHasItsBatchAndCanBeRepeated) {
  env_.rank = 1, env_.world = 2;
  for (int workers : {0, 2}) {
    bool broken = true, throws = true;
    absl::Mutex mutex;
    DataLoader loader(env_,
                      Samples(12,
                              [&](absl::Span<const std::int64_t> indices) {
                                absl::MutexLock lock(&mutex);
                                if (indices[0] != 6 || !broken) {
                                  return absl::OkStatus();
                                }
                                if (throws) throw std::runtime_error("no disk");
                                return absl::DataLossError("a bad picture");
                              }),
                      BatchesOf(2, workers));
    loader.SetEpoch(3);
    auto it = loader.begin();
    EXPECT_THAT(ToNumbers((*it).inputs), ElementsAre(2, 3));
    ++it;
    EXPECT_EQ(ErrorOf([&] { *it; }),
              "INTERNAL: DataLoader of rank 1, epoch 3, batch 1: the dataset "
              "threw: no disk");
    {
      absl::MutexLock lock(&mutex);
      throws = false;
    }
    EXPECT_EQ(ErrorOf([&] { *it; }),
              "DATA_LOSS: DataLoader of rank 1, epoch 3, batch 1: a bad "
              "picture");
    {
      absl::MutexLock lock(&mutex);
      broken = false;
    }
    EXPECT_THAT(ToNumbers((*it).inputs), ElementsAre(6, 7));
    ++it;
    EXPECT_THAT(ToNumbers((*it).inputs), ElementsAre(10, 11));
  }
}

TEST_F(LoaderTest, DrawsAreThoseOfTheBatchsPosition) {
  env_.rank = 1, env_.world = 2;
  DataLoader loader(env_, Samples(9), BatchesOf(3));
  auto it = loader.begin();
  *it;
  EXPECT_FALSE(ctx_.random().has_value());
  ctx_.set_random({/*seed=*/1, /*step=*/5, /*sample=*/0, /*rank=*/1});
  Numbers positions;
  for (auto [x, y] : loader) positions.push_back(ctx_.random()->sample);
  EXPECT_THAT(positions, ElementsAre(3, 2));
  EXPECT_EQ(ctx_.random()->step, 5);
  EXPECT_EQ(ctx_.random()->rank, 1);
}

TEST_F(LoaderTest, CopiesToTheDevice) {
  const auto memory = std::make_shared<nn::GuardedMemory>(1 << 20);
  const auto kernels =
      nn::CreateQueuedKernels(nn::CreateReferenceKernels(), memory, /*seed=*/3);
  nn::Context ctx(*kernels);
  env_.context = &ctx;
  for (int workers : {0, 2}) {
    DataLoader loader(env_, Samples(6), BatchesOf(2, workers));
    std::vector<Numbers> batches;
    for (auto [x, y] : loader) {
      EXPECT_EQ(x.tensor().device(), kernels->device());
      EXPECT_EQ(&y.context(), &ctx);
      const nn::Tensor host =
          *nn::CopyToHost(*kernels, nn::Queue::kCompute, y.tensor());
      ASSERT_TRUE(
          nn::Synchronize(*kernels, nn::Record(*kernels, nn::Queue::kCompute))
              .ok());
      batches.push_back(ToNumbers(host));
    }
    EXPECT_THAT(batches, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                     ElementsAre(4, 5)));
  }
}

TEST_F(LoaderTest, LoadsTensors) {
  const nn::Tensor x = nn::Tensor::Of<float>({3, 1}, {1, 2, 3}, allocator_);
  const nn::Tensor y = nn::Tensor::Of<std::int64_t>({3}, {0, 1, 1}, allocator_);
  DataLoader loader(env_, TensorDataset(x, y, /*num_classes=*/2), {2});
  std::vector<std::int64_t> sizes;
  for (auto [inputs, labels] : loader) {
    sizes.push_back(inputs.dim(0));
    EXPECT_EQ(labels.dim(0), inputs.dim(0));
  }
  EXPECT_THAT(sizes, ElementsAre(2, 1));
  EXPECT_EQ(ErrorOf([&] { TensorDataset(x, y, 1); }),
            "INVALID_ARGUMENT: TensorDataset: target 1 is 1, not a class below "
            "1; number classes from 0");
}

TEST_F(LoaderTest, RefusesOptionsThatCannotWork) {
  const auto error = [&](const DataLoaderOptions& options) {
    return ErrorOf([&] { DataLoader(env_, Samples(4), options); });
  };
  EXPECT_EQ(error(BatchesOf(0)),
            "INVALID_ARGUMENT: DataLoader: batch_size (0) must be at least 1");
  EXPECT_EQ(error(BatchesOf(1, -1)),
            "INVALID_ARGUMENT: DataLoader: workers (-1) must be from 0 to 256");
  DataLoaderOptions options;
  options.prefetch_factor = 0;
  EXPECT_EQ(error(options),
            "INVALID_ARGUMENT: DataLoader: prefetch_factor (0) must be from 1 "
            "to 1024");
  options = BatchesOf(5);
  options.drop_last = true;
  EXPECT_THAT(
      error(options),
      HasSubstr("DataLoader: batch_size (5) of 1 ranks is more than the "
                "4 samples of an epoch"));
  EXPECT_THAT(ErrorOf([&] { DataLoader(env_, nullptr); }),
              HasSubstr("there is no dataset; pass one"));
  env_.rank = 2, env_.world = 2;
  EXPECT_THAT(error(BatchesOf(1)), HasSubstr("rank 2 is not one of 2 ranks"));
  env_.context = nullptr;
  EXPECT_THAT(error(BatchesOf(1)), HasSubstr("set LoaderEnv::context"));
  env_ = {&ctx_};
  DataLoader loader(env_, Samples(4));
  EXPECT_EQ(ErrorOf([&] { loader.SetEpoch(-1); }),
            "INVALID_ARGUMENT: DataLoader: epoch -1 must be from 0 to 2^32 - "
            "1");
}

}  // namespace
}  // namespace troupe
