#include "tools/bench/collectives/workers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "base/check.h"
#include "comm/connect/transports.h"
#include "comm/fabric.h"
#include "comm/local/local_group.h"
#include "comm/memory_store.h"
#include "comm/shm/shared_memory.h"
#include "nn/tensor/tensor.h"
#include "tools/bench/collectives/baselines.h"
#include "tools/bench/collectives/file_store.h"
#include "tools/bench/collectives/turns.h"

namespace troupe::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr char kTokenKey[] = "token";

using Links = std::vector<std::unique_ptr<comm::Link>>;

double Reduce(comm::Communicator& comm, nn::Allocator& allocator,
              const Turn& turn) {
  const comm::Collective sum = comm::AllReduce(
      comm::ReduceOp::kSum,
      nn::Tensor::Zeros({turn.bytes / 4}, nn::DType::kF32, allocator));
  return MedianOfBlocks(turn, [&] {
    const absl::Status status = comm.RunInline(sum, kTimeout);
    TROUPE_CHECK(status.ok(), "nothing aborts this group");
  });
}

void RunLocal(int ranks) {
  nn::CachingAllocator allocator;
  Turn turn;
  while (ReadTurn(&turn)) {
    comm::LocalGroupOptions options;
    options.size = ranks;
    const comm::Group group = comm::MakeLocalGroup(options);
    std::vector<std::thread> others;
    for (int rank = 1; rank < ranks; ++rank) {
      others.emplace_back([&, rank] { Reduce(*group[rank], allocator, turn); });
    }
    const double us = Reduce(*group[0], allocator, turn);
    for (std::thread& other : others) other.join();
    Answer(us);
  }
}

// Sleeps until rank 0 has the next turn; returns false after the last one.
absl::StatusOr<bool> NextTurn(comm::Communicator& comm, Turn* turn) {
  nn::CachingAllocator allocator;
  nn::Tensor words = nn::Tensor::Zeros({3}, nn::DType::kI64, allocator);
  std::int64_t* const numbers = words.span<std::int64_t>().data();
  if (comm.rank() == 0 && ReadTurn(turn)) {
    numbers[0] = turn->bytes;
    numbers[1] = turn->count;
    numbers[2] = turn->blocks;
  }
  TROUPE_ASSIGN_OR_RETURN(comm::Event told,
                          comm.Start(comm::Broadcast(0, words), comm::Event()));
  absl::Notification ready;
  told.OnReady([&](const absl::Status&) { ready.Notify(); });
  ready.WaitForNotification();
  TROUPE_RETURN_IF_ERROR(told.status());
  *turn = {numbers[0], numbers[1], numbers[2]};
  return turn->bytes > 0;
}

comm::ConnectOptions ConnectOptionsOf(const WorkerOptions& worker,
                                      const comm::TransportRule& transport) {
  comm::ConnectOptions options;
  options.process = worker.rank;
  options.processes = worker.ranks;
  options.transport = transport.transport;
  options.bind_address = worker.address;
  return options;
}

absl::Status RunOverLinks(const WorkerOptions& worker,
                          const comm::TransportRule& transport, Links links) {
  comm::FabricOptions options;
  if (!worker.algorithm.empty()) {
    options.two_step = worker.algorithm == "two_step";
  }
  options.process = worker.rank;
  comm::FabricGroupOptions world;
  world.name = "world";
  for (int rank = 0; rank < static_cast<int>(links.size()); ++rank) {
    options.process_of.push_back(rank);
    world.ranks.push_back(rank);
  }
  options.links = std::move(links);
  // An algorithm that the options name is one for links, so that no memory is
  // shared then.
  nn::CachingAllocator ordinary;
  nn::Allocator* allocator = &ordinary;
  if (transport.shares_memory && worker.algorithm.empty()) {
    options.shared_memory = std::make_shared<comm::SharedMemory>();
    allocator = &options.shared_memory->allocator();
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<comm::Fabric> fabric,
                          comm::Fabric::Make(std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(comm::Group group, fabric->MakeGroup(world));
  comm::Communicator& comm = *group[worker.rank];
  Turn turn;
  for (;;) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, NextTurn(comm, &turn));
    if (!more) break;
    const double us = Reduce(comm, *allocator, turn);
    if (worker.rank == 0) Answer(us);
  }
  // No rank may leave before all have received the last turn.
  return comm.RunInline(comm::Barrier(), kTimeout);
}

absl::Status RunConnected(const WorkerOptions& options,
                          const comm::TransportRule& transport) {
  FileStore store(options.folder);
  comm::ConnectOptions connect = ConnectOptionsOf(options, transport);
  if (options.rank == 0) {
    std::string token(connect.token.size(), '\0');
    if (::getrandom(token.data(), token.size(), 0) !=
        static_cast<ssize_t>(token.size())) {
      return absl::ErrnoToStatus(errno, "getrandom");
    }
    TROUPE_RETURN_IF_ERROR(store.Set(kTokenKey, token));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string token,
                          store.Get(kTokenKey, kTimeout));
  std::copy(token.begin(), token.end(), connect.token.begin());
  TROUPE_ASSIGN_OR_RETURN(comm::PeerLinks peers,
                          transport.connect(connect, store));
  return RunOverLinks(options, transport, std::move(peers.links));
}

// Starts the other ranks as children; none of them outlives this process.
absl::Status RunWithChildren(WorkerOptions options,
                             const comm::TransportRule& transport) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "collectives-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, folder);
  }
  options.folder = folder;
  const pid_t parent = ::getpid();
  std::vector<pid_t> children;
  for (int rank = 1; rank < options.ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      options.rank = rank;
      ::_exit(RunConnected(options, transport).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  const absl::Status status = RunConnected(options, transport);
  for (pid_t child : children) {
    if (!status.ok()) ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
  return status;
}

// Runs as one of the processes that mpirun has started and numbered.
absl::Status RunUnderMpirun(WorkerOptions options,
                            const comm::TransportRule& transport) {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr || !absl::SimpleAtoi(rank, &options.rank)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--worker=", options.way,
                     ": mpirun has not started this process; start it by "
                     "mpirun -n 2"));
  }
  comm::MemoryStore store;  // mpirun brings the processes together
  TROUPE_ASSIGN_OR_RETURN(
      comm::PeerLinks peers,
      transport.connect(ConnectOptionsOf(options, transport), store));
  return RunOverLinks(options, transport, std::move(peers.links));
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& options) {
  if (options.way == "sockets") return RunSockets(options.ranks);
  if (options.way == "local") {
    RunLocal(options.ranks);
    return absl::OkStatus();
  }
  if (options.way == "memcpy") {
    RunMemcpy(options.ranks);
    return absl::OkStatus();
  }
  const comm::TransportRule* const transport = comm::FindTransport(options.way);
  if (transport == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worker=", options.way,
                     ": must be sockets, local, memcpy or a transport of "
                     "comm.transport"));
  }
  if (transport->by_mpirun) return RunUnderMpirun(options, *transport);
  return options.folder.empty() ? RunWithChildren(options, *transport)
                                : RunConnected(options, *transport);
}

}  // namespace troupe::bench
