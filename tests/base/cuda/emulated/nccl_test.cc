// Tests the emulated NCCL: several ranks of one process, on one or more
// threads.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <thread>
#include <vector>

#include "base/cuda/emulated/emulated_nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"
#include "tests/base/seeds.h"

namespace emulated_cuda_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using troupe::ReplayCommand;
using troupe::Seeds;

void NewWorldOf(int devices, std::uint64_t seed) {
  emulated_cuda::Options options = OneThread(seed);
  options.devices = devices;
  emulated_cuda::Reset(options);
}

// Ranks on one thread. Each has a device, a stream and two buffers of 64 bytes.
struct Ranks {
  explicit Ranks(int count)
      : comms(count), streams(count), in(count), out(count) {
    EXPECT_EQ(ncclCommInitAll(comms.data(), count, nullptr), ncclSuccess);
    for (int r = 0; r < count; ++r) {
      cudaSetDevice(r);
      streams[r] = NewStream();
      in[r] = OnDevice<char>(64);
      out[r] = OnDevice<char>(64);
    }
  }
  ~Ranks() {
    for (cudaStream_t stream : streams) cudaStreamSynchronize(stream);
    for (std::size_t r = 0; r < comms.size(); ++r) {
      cudaSetDevice(static_cast<int>(r));
      cudaFree(in[r]);
      cudaFree(out[r]);
      cudaStreamDestroy(streams[r]);
      if (comms[r] != nullptr) ncclCommDestroy(comms[r]);
    }
  }
  template <typename T>
  void Put(int rank, std::vector<T> values) {
    cudaMemcpyAsync(in[rank], values.data(), values.size() * sizeof(T),
                    cudaMemcpyHostToDevice, streams[rank]);
  }
  template <typename T>
  std::vector<T> Get(int rank, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), out[rank], count * sizeof(T),
                              cudaMemcpyDeviceToHost, streams[rank]),
              cudaSuccess);
    return values;
  }
  // Calls f(rank) for all ranks, between ncclGroupStart() and ncclGroupEnd().
  template <typename F>
  ncclResult_t Group(F f) {
    ncclGroupStart();
    for (std::size_t r = 0; r < comms.size(); ++r) {
      EXPECT_EQ(f(static_cast<int>(r)), ncclSuccess);
    }
    return ncclGroupEnd();
  }

  std::vector<ncclComm_t> comms;
  std::vector<cudaStream_t> streams;
  std::vector<char*> in;
  std::vector<char*> out;
};

template <typename T>
std::vector<T> ReduceAll(ncclDataType_t type, ncclRedOp_t op,
                         std::vector<T> terms) {
  Ranks ranks(static_cast<int>(terms.size()));
  for (std::size_t r = 0; r < terms.size(); ++r) {
    ranks.Put<T>(static_cast<int>(r), {terms[r]});
  }
  EXPECT_EQ(ranks.Group([&](int r) {
    return ncclAllReduce(ranks.in[r], ranks.out[r], 1, type, op, ranks.comms[r],
                         ranks.streams[r]);
  }),
            ncclSuccess);
  std::vector<T> results;
  for (std::size_t r = 0; r < terms.size(); ++r) {
    results.push_back(ranks.Get<T>(static_cast<int>(r), 1)[0]);
  }
  return results;
}

TEST(NcclTest, ReducesEveryTypeWithEveryOperator) {
  NewWorldOf(3, 1);
  const auto all = [](auto value) { return ElementsAre(value, value, value); };
  EXPECT_THAT(ReduceAll<float>(ncclFloat32, ncclSum, {1, 2, 4}), all(7.0f));
  EXPECT_THAT(ReduceAll<double>(ncclFloat64, ncclProd, {3, 2, 4}), all(24.0));
  EXPECT_THAT(ReduceAll<int>(ncclInt32, ncclMin, {3, -2, 4}), all(-2));
  EXPECT_THAT(ReduceAll<std::int64_t>(ncclInt64, ncclMax, {3, -2, 4}),
              all(std::int64_t{4}));
  EXPECT_THAT(ReduceAll<int>(ncclInt32, ncclAvg, {3, 1, 4}), all(2));
  EXPECT_THAT(ReduceAll<unsigned char>(ncclUint8, ncclSum, {200, 100, 1}),
              all(static_cast<unsigned char>(45)));
  // An average rounds 1/3, then each product, then each sum.
  const float third = 1.0f / 3.0f;
  EXPECT_THAT(ReduceAll<float>(ncclFloat32, ncclAvg, {1, 10, 100}),
              all(third + 10 * third + 100 * third));
}

TEST(NcclTest, HalvesAreRoundedAfterEachTerm) {
  NewWorldOf(3, 1);
  std::vector<__half> halves;
  for (float value : {2048.0f, 1.0f, 1.0f}) {
    halves.push_back(__float2half_rn(value));
  }
  for (__half sum : ReduceAll<__half>(ncclFloat16, ncclSum, halves)) {
    EXPECT_EQ(__half2float(sum), 2048.0f) << "2049 is no half, twice";
  }
  std::vector<__nv_bfloat16> brains;
  for (float value : {256.0f, 1.0f, 3.0f}) {
    brains.push_back(__float2bfloat16_rn(value));
  }
  for (__nv_bfloat16 sum :
       ReduceAll<__nv_bfloat16>(ncclBfloat16, ncclSum, brains)) {
    EXPECT_EQ(__bfloat162float(sum), 260.0f) << "256 + 1 is 256, + 3 is 260";
  }
}

TEST(NcclTest, TheOtherCollectives) {
  for (std::uint64_t seed : Seeds(30)) {
    NewWorldOf(3, seed);
    {
      Ranks ranks(3);
      for (int r = 0; r < 3; ++r) {
        ranks.Put<int>(r, {10 * r, 10 * r + 1, 10 * r + 2});
      }
      const auto run = [&](auto f) { ASSERT_EQ(ranks.Group(f), ncclSuccess); };
      run([&](int r) {
        return ncclBroadcast(ranks.in[r], ranks.out[r], 3, ncclInt32, 2,
                             ranks.comms[r], ranks.streams[r]);
      });
      EXPECT_THAT(ranks.Get<int>(0, 3), ElementsAre(20, 21, 22));
      run([&](int r) {
        return ncclAllGather(ranks.in[r], ranks.out[r], 2, ncclInt32,
                             ranks.comms[r], ranks.streams[r]);
      });
      EXPECT_THAT(ranks.Get<int>(1, 6), ElementsAre(0, 1, 10, 11, 20, 21));
      run([&](int r) {
        return ncclReduceScatter(ranks.in[r], ranks.out[r], 1, ncclInt32,
                                 ncclSum, ranks.comms[r], ranks.streams[r]);
      });
      for (int r = 0; r < 3; ++r) {
        EXPECT_THAT(ranks.Get<int>(r, 1), ElementsAre(30 + 3 * r));
      }
      run([&](int r) {
        return ncclReduce(ranks.in[r], ranks.out[r], 2, ncclInt32, ncclMax, 1,
                          ranks.comms[r], ranks.streams[r]);
      });
      EXPECT_THAT(ranks.Get<int>(1, 2), ElementsAre(20, 21));
      EXPECT_THAT(ranks.Get<int>(0, 1), ElementsAre(30)) << "not the root";
    }
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
}

// Each rank sends to the next rank and to itself, and receives from the
// previous one and from itself.
TEST(NcclTest, SendsAndReceivesOfAGroupGoTogether) {
  for (std::uint64_t seed : Seeds(50)) {
    NewWorldOf(3, seed);
    {
      Ranks ranks(3);
      for (int r = 0; r < 3; ++r) ranks.Put<int>(r, {r});
      const ncclResult_t result = ranks.Group([&](int r) {
        auto* const out = reinterpret_cast<int*>(ranks.out[r]);
        ncclSend(ranks.in[r], 1, ncclInt32, (r + 1) % 3, ranks.comms[r],
                 ranks.streams[r]);
        ncclRecv(out, 1, ncclInt32, (r + 2) % 3, ranks.comms[r],
                 ranks.streams[r]);
        ncclSend(ranks.in[r], 1, ncclInt32, r, ranks.comms[r],
                 ranks.streams[r]);
        return ncclRecv(out + 1, 1, ncclInt32, r, ranks.comms[r],
                        ranks.streams[r]);
      });
      ASSERT_EQ(result, ncclSuccess);
      for (int r = 0; r < 3; ++r) {
        EXPECT_THAT(ranks.Get<int>(r, 2), ElementsAre((r + 2) % 3, r));
      }
    }
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
}

// Rank 1 receives from ranks 0 and 2 in one group. Rank 2 waits for rank 0, so
// the transfer from rank 0 must run without waiting for the other.
TEST(NcclTest, OneTransferOfAGroupDoesNotWaitForTheOthers) {
  NewWorldOf(3, 1);
  {
    Ranks ranks(3);
    for (int r = 0; r < 3; ++r) ranks.Put<int>(r, {100 + r});
    const auto comm = ranks.comms;
    const auto stream = ranks.streams;
    ncclGroupStart();
    ncclRecv(ranks.out[1], 1, ncclInt32, 0, comm[1], stream[1]);
    ncclRecv(ranks.out[1] + 4, 1, ncclInt32, 2, comm[1], stream[1]);
    ncclGroupEnd();
    ncclSend(ranks.in[0], 1, ncclInt32, 1, comm[0], stream[0]);
    ncclSend(ranks.in[0], 1, ncclInt32, 2, comm[0], stream[0]);
    ncclRecv(ranks.out[2], 1, ncclInt32, 0, comm[2], stream[2]);
    ncclSend(ranks.in[2], 1, ncclInt32, 1, comm[2], stream[2]);
    EXPECT_THAT(ranks.Get<int>(1, 2), ElementsAre(100, 102));
    EXPECT_THAT(ranks.Get<int>(2, 1), ElementsAre(100));
  }
  EXPECT_EQ(AllProblems(), "");
}

TEST(NcclTest, OneThreadPerRank) {
  for (std::uint64_t seed : Seeds(10)) {
    emulated_cuda::Options options;
    options.seed = seed;
    emulated_cuda::Reset(options);
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    float sums[2] = {};
    const auto rank = [&](int r) {
      cudaSetDevice(r);
      const cudaStream_t stream = NewStream();
      float* const x = OnDevice<float>(1);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      ncclResult_t state = ncclCommInitRankConfig(&comm, 2, id, r, &config);
      while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
      EXPECT_EQ(state, ncclSuccess);
      const float mine = 1.0f + static_cast<float>(r);
      cudaMemcpyAsync(x, &mine, 4, cudaMemcpyHostToDevice, stream);
      state = ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, comm, stream);
      while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
      EXPECT_EQ(state, ncclSuccess);
      cudaMemcpyAsync(&sums[r], x, 4, cudaMemcpyDeviceToHost, stream);
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
      cudaFree(x);
      cudaStreamDestroy(stream);
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
    EXPECT_THAT(sums, ElementsAre(3.0f, 3.0f)) << ReplayCommand(seed);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
}

TEST(NcclTest, ARankThatNeverComesLeavesTheOtherPendingUntilItAborts) {
  NewWorld(3);
  {
    Ranks ranks(2);
    cudaSetDevice(0);
    ASSERT_EQ(ncclAllReduce(ranks.in[0], ranks.in[0], 8, ncclFloat32, ncclSum,
                            ranks.comms[0], ranks.streams[0]),
              ncclSuccess);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(cudaStreamQuery(ranks.streams[0]), cudaErrorNotReady);
    }
    cudaGetLastError();
    ASSERT_EQ(ncclCommAbort(ranks.comms[0]), ncclSuccess);
    ranks.comms[0] = nullptr;
    EXPECT_EQ(cudaStreamSynchronize(ranks.streams[0]), cudaSuccess);
  }
  EXPECT_EQ(AllProblems(), "");
}

TEST(NcclTest, AWaitForARankThatNeverComesIsADeadlock) {
  NewWorld(3);
  Ranks ranks(2);
  cudaSetDevice(0);
  ncclAllReduce(ranks.in[0], ranks.in[0], 8, ncclFloat32, ncclSum,
                ranks.comms[0], ranks.streams[0]);
  EXPECT_EQ(cudaStreamSynchronize(ranks.streams[0]), cudaErrorLaunchTimeout);
  const auto problems = emulated_cuda::Problems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], HasSubstr("deadlock: the host waits for stream"));
  EXPECT_THAT(problems[0], HasSubstr("the first ncclAllReduce, in "));
  EXPECT_THAT(problems[0], HasSubstr("which waits for its peers"));
}

TEST(NcclTest, RanksThatDisagreeAreReportedAndStayPending) {
  NewWorld(3);
  Ranks ranks(2);
  ASSERT_EQ(ranks.Group([&](int r) {
    return ncclAllReduce(ranks.in[r], ranks.in[r], r == 0 ? 8 : 4, ncclFloat32,
                         ncclSum, ranks.comms[r], ranks.streams[r]);
  }),
            ncclSuccess);
  cudaSetDevice(1);
  EXPECT_EQ(cudaStreamSynchronize(ranks.streams[1]), cudaErrorLaunchTimeout);
  const auto problems = emulated_cuda::Problems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0], HasSubstr("the ranks disagree in a collective:\n"
                                     "  rank 0: ncclAllReduce of 8 elements"));
  EXPECT_THAT(problems[1], HasSubstr("which does not fit its peers"));
}

TEST(NcclTest, SplitsByColorInOrderOfKeys) {
  for (const bool blocking : {true, false}) {
    NewWorldOf(4, 5);
    ncclComm_t all[4];
    ASSERT_EQ(ncclCommInitAll(all, 4, nullptr), ncclSuccess);
    ncclComm_t parts[4];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    ncclGroupStart();
    for (int r = 0; r < 4; ++r) {
      const int color = r == 3 ? NCCL_SPLIT_NOCOLOR : r % 2;
      ncclCommSplit(all[r], color, /*key=*/-r, &parts[r], &config);
    }
    EXPECT_EQ(ncclGroupEnd(), blocking ? ncclSuccess : ncclInProgress);
    EXPECT_EQ(parts[3], nullptr);
    for (int r = 0; r < 3; ++r) {
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) ncclCommGetAsyncError(parts[r], &state);
      int rank = -1;
      int count = -1;
      ASSERT_EQ(ncclCommUserRank(parts[r], &rank), ncclSuccess);
      ASSERT_EQ(ncclCommCount(parts[r], &count), ncclSuccess);
      EXPECT_EQ(count, r == 1 ? 1 : 2);
      EXPECT_EQ(rank, r == 0 ? 1 : 0) << "rank 2 has the smaller key";
      EXPECT_EQ(ncclCommDestroy(parts[r]), ncclSuccess);
    }
    for (ncclComm_t comm : all) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(AllProblems(), "");
  }
}

TEST(NcclTest, ACommunicatorInProgressIsNotUsed) {
  NewWorld(1);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress) << "the other rank is missing";
  int rank = 0;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(comm), HasSubstr("before its last call"));
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(AllProblems(), "");
}

TEST(NcclTest, FactorsRegistrationsAndErrors) {
  NewWorld(1);
  {
    Ranks ranks(2);
    std::vector<ncclRedOp_t> ops(2);
    for (int r = 0; r < 2; ++r) {
      float factor = 0.5f + static_cast<float>(r);
      ASSERT_EQ(
          ncclRedOpCreatePreMulSum(&ops[r], &factor, ncclFloat32,
                                   ncclScalarHostImmediate, ranks.comms[r]),
          ncclSuccess);
      ranks.Put<float>(r, {8.0f});
      void* registration = nullptr;
      EXPECT_EQ(
          ncclCommRegister(ranks.comms[r], ranks.in[r], 64, &registration),
          ncclSuccess);
      EXPECT_EQ(ncclCommDeregister(ranks.comms[r], registration), ncclSuccess);
    }
    ASSERT_EQ(ranks.Group([&](int r) {
      return ncclAllReduce(ranks.in[r], ranks.out[r], 1, ncclFloat32, ops[r],
                           ranks.comms[r], ranks.streams[r]);
    }),
              ncclSuccess);
    EXPECT_THAT(ranks.Get<float>(0, 1), ElementsAre(4.0f + 12.0f));
    EXPECT_EQ(ncclRedOpDestroy(ops[0], ranks.comms[0]), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(ranks.in[0], ranks.out[0], 1, ncclFloat32, ops[0],
                            ranks.comms[0], ranks.streams[0]),
              ncclInvalidArgument);
    emulated_cuda::FailComm(ranks.comms[1], ncclRemoteError);
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(ranks.comms[1], &state), ncclSuccess);
    EXPECT_EQ(state, ncclRemoteError);
  }
  EXPECT_EQ(AllProblems(), "");
}

}  // namespace
}  // namespace emulated_cuda_test
