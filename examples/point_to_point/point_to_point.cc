// Two ranks exchange a tensor by messages, blocking and not, as PyTorch's
// tutorial "Writing Distributed Applications with PyTorch" begins:
//
//   def run_blocking(rank, size):
//       tensor = torch.zeros(1)
//       if rank == 0:
//           tensor += 1
//           dist.send(tensor=tensor, dst=1)
//       else:
//           dist.recv(tensor=tensor, src=0)
//       print('Rank ', rank, ' has data ', tensor[0])
//
// point_to_point.py is the whole program with PyTorch, with 32 lines, blank
// lines and comments aside.
//
//   bazel run //examples/point_to_point

#include <stdexcept>

#include "troupe/troupe.h"

using namespace troupe;

void RunBlocking(Rank& rank) {
  Var tensor = rank.Zeros({1});
  if (rank.number() == 0) {
    tensor += 1;
    Send(tensor, /*to=*/1);
  } else {
    Recv(tensor, /*from=*/0);
  }
  rank.Print("has %g\n", tensor.item());
  if (tensor.item() != 1) throw std::runtime_error("the message was lost");
}

void RunNonblocking(Rank& rank) {
  Var tensor = rank.Zeros({1});
  Work work;
  if (rank.number() == 0) {
    tensor += 1;
    work = rank.world().StartSend(tensor, /*to=*/1);
  } else {
    work = rank.world().StartRecv(tensor, /*from=*/0);
  }
  work.Wait();
  rank.Print("has %g\n", tensor.item());
  if (tensor.item() != 1) throw std::runtime_error("the message was lost");
}

int main() {
  const absl::Status status = Spawn(RunBlocking, /*ranks=*/2);
  return ExitCode(status.ok() ? Spawn(RunNonblocking, /*ranks=*/2) : status);
}
