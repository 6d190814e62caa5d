#include "tests/comm/links/linked_group.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "comm/fabric.h"
#include "comm/shm/shm_link.h"
#include "comm/tcp/tcp_link.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::comm {
namespace {

using Fabrics = std::vector<std::unique_ptr<Fabric>>;

// A rank that keeps the fabrics alive.
class LinkedRank final : public WrappedCommunicator {
 public:
  LinkedRank(std::unique_ptr<Communicator> inner,
             std::shared_ptr<Fabrics> fabrics)
      : WrappedCommunicator(std::move(inner)), fabrics_(std::move(fabrics)) {}

  absl::Status RunInline(const Collective& collective,
                         absl::Duration timeout) override {
    return inner().RunInline(collective, timeout);
  }

 private:
  const std::shared_ptr<Fabrics> fabrics_;
};

std::unique_ptr<Link> TcpEnd(base::OwnedFd socket, int peer) {
  TcpLinkOptions options;
  options.peer = peer;
  options.address = "this test";
  return *MakeTcpLink(std::move(socket), options);
}

}  // namespace

LinkPair MakeTcpPairOf(int a, int b) {
  SocketPair sockets = MakeTcpSockets();
  return {TcpEnd(std::move(sockets.a), b), TcpEnd(std::move(sockets.b), a)};
}

LinkPair MakeShmPairOf(int a, int b) {
  const auto segment = *ShmSegment::Create(kRingBytesMin);
  SocketPair sockets = MakeSockets();
  ShmLinkOptions options;
  options.peer = b;
  LinkPair pair;
  pair.a = *MakeShmLink(segment, std::move(sockets.a), options);
  options.peer = a;
  options.side = 1;
  pair.b = *MakeShmLink(segment, std::move(sockets.b), options);
  return pair;
}

namespace {

std::shared_ptr<SharedMemory> OneMemory() {
  static const auto memory = std::make_shared<SharedMemory>();
  return memory;
}

AllLinks MakeLinks(PairFactory make_pair, const std::vector<int>& process_of) {
  const int processes =
      process_of.empty()
          ? 0
          : 1 + *std::max_element(process_of.begin(), process_of.end());
  AllLinks links(processes);
  for (auto& of_one : links) of_one.resize(processes);
  for (int a = 0; a < processes; ++a) {
    for (int b = a + 1; b < processes; ++b) {
      LinkPair pair = make_pair(a, b);
      links[a][b] = std::move(pair.a);
      links[b][a] = std::move(pair.b);
    }
  }
  return links;
}

std::shared_ptr<Fabrics> MakeFabrics(AllLinks links,
                                     const std::vector<int>& process_of,
                                     bool sharing) {
  auto fabrics = std::make_shared<Fabrics>();
  for (std::size_t process = 0; process < links.size(); ++process) {
    FabricOptions options;
    options.process = static_cast<int>(process);
    options.process_of = process_of;
    options.links = std::move(links[process]);
    if (sharing) {
      options.shared_memory = OneMemory();
      options.eager_bytes = 0;
    }
    auto fabric = Fabric::Make(std::move(options));
    TROUPE_CHECK(fabric.ok(), "the options are in order");
    fabrics->push_back(*std::move(fabric));
  }
  return fabrics;
}

Ranks MakeRanks(const std::shared_ptr<Fabrics>& fabrics,
                const std::string& name, std::size_t size) {
  FabricGroupOptions group;
  group.name = name;
  for (std::size_t rank = 0; rank < size; ++rank) {
    group.ranks.push_back(static_cast<int>(rank));
  }
  Ranks ranks(size);
  for (const std::unique_ptr<Fabric>& fabric : *fabrics) {
    auto part = fabric->MakeGroup(group);
    TROUPE_CHECK(part.ok(), "the group is in order");
    for (std::size_t rank = 0; rank < size; ++rank) {
      if ((*part)[rank] == nullptr) continue;
      ranks[rank] =
          std::make_unique<LinkedRank>(std::move((*part)[rank]), fabrics);
    }
  }
  return ranks;
}

// Repeats an all-reduce until the process of `fabric` has read one by
// reference. By then, the processes have lent each other their memory.
void ReduceUntilLent(const Ranks& ranks, const Fabric& fabric) {
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Communicator>& rank : ranks) {
    threads.emplace_back([&rank, &fabric] {
      const nn::Tensor range =
          nn::Tensor::Zeros({1}, nn::DType::kI32, SharedTensors());
      for (std::int32_t over = 0; over == 0;) {
        *range.data<std::int32_t>() =
            rank->rank() == 0 && fabric.by_reference() > 0;
        const absl::Status status =
            rank->RunInline(AllReduce(ReduceOp::kMax, range), kTimeout);
        TROUPE_CHECK(status.ok(), "nothing aborts this group");
        over = *range.data<std::int32_t>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

nn::Allocator& SharedTensors() { return OneMemory()->allocator(); }

Ranks MakeLinkedGroup(PairFactory make_pair,
                      const std::vector<int>& process_of) {
  return MakeGroupOver(MakeLinks(make_pair, process_of), process_of);
}

Ranks MakeGroupOver(AllLinks links, const std::vector<int>& process_of) {
  return MakeRanks(MakeFabrics(std::move(links), process_of, /*sharing=*/false),
                   "suite", process_of.size());
}

Ranks MakeSharingGroup(const std::vector<int>& process_of) {
  const auto fabrics = MakeFabrics(MakeLinks(&MakeShmPairOf, process_of),
                                   process_of, /*sharing=*/true);
  if (fabrics->size() > 1) {
    ReduceUntilLent(MakeRanks(fabrics, "first", process_of.size()),
                    *fabrics->front());
  }
  return MakeRanks(fabrics, "suite", process_of.size());
}

}  // namespace troupe::comm
