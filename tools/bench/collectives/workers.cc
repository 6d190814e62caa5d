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

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "base/check.h"
#include "comm/connect/connect_links.h"
#include "comm/fabric.h"
#include "comm/local/local_group.h"
#include "comm/mpi/mpi_process.h"
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

absl::Status RunOverLinks(const WorkerOptions& worker, int process,
                          Links links) {
  comm::FabricOptions options;
  if (!worker.algorithm.empty()) {
    options.two_step = worker.algorithm == "two_step";
  }
  options.process = process;
  comm::FabricGroupOptions world;
  world.name = "world";
  for (int rank = 0; rank < static_cast<int>(links.size()); ++rank) {
    options.process_of.push_back(rank);
    world.ranks.push_back(rank);
  }
  options.links = std::move(links);
  // Ordinary memory if no link can share it. An algorithm that the options name
  // is one for links, so that no memory is shared then.
  const auto memory = std::make_shared<comm::SharedMemory>();
  if (worker.algorithm.empty()) options.shared_memory = memory;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<comm::Fabric> fabric,
                          comm::Fabric::Make(std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(comm::Group group, fabric->MakeGroup(world));
  comm::Communicator& comm = *group[process];
  Turn turn;
  for (;;) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, NextTurn(comm, &turn));
    if (!more) break;
    const double us = Reduce(comm, memory->allocator(), turn);
    if (process == 0) Answer(us);
  }
  // No rank may leave before all have received the last turn.
  return comm.RunInline(comm::Barrier(), kTimeout);
}

absl::Status RunConnected(const WorkerOptions& options) {
  FileStore store(options.folder);
  comm::ConnectOptions connect;
  connect.process = options.rank;
  connect.processes = options.ranks;
  connect.transport =
      options.way == "shm" ? comm::Transport::kShm : comm::Transport::kTcp;
  connect.bind_address = options.address;
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
  TROUPE_ASSIGN_OR_RETURN(Links links, comm::ConnectLinks(connect, store));
  return RunOverLinks(options, options.rank, std::move(links));
}

// Starts the other ranks as children; none of them outlives this process.
absl::Status RunWithChildren(WorkerOptions options) {
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
      ::_exit(RunConnected(options).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  const absl::Status status = RunConnected(options);
  for (pid_t child : children) {
    if (!status.ok()) ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
  return status;
}

absl::Status RunMpi(const WorkerOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<comm::MpiProcess> mpi,
                          comm::MpiProcess::Start());
  TROUPE_ASSIGN_OR_RETURN(Links links, mpi->MakeLinks(/*generation=*/0));
  return RunOverLinks(options, mpi->process(), std::move(links));
}

}  // namespace

absl::Status RunWorker(const WorkerOptions& options) {
  if (options.way == "local") {
    RunLocal(options.ranks);
  } else if (options.way == "memcpy") {
    RunMemcpy(options.ranks);
  } else if (options.way == "sockets") {
    return RunSockets(options.ranks);
  } else if (options.way == "mpi") {
    return RunMpi(options);
  } else if (options.way == "shm" || options.way == "tcp") {
    return options.folder.empty() ? RunWithChildren(options)
                                  : RunConnected(options);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no way \"", options.way, "\""));
  }
  return absl::OkStatus();
}

}  // namespace troupe::bench
