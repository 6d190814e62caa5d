// The front for training loops of one's own: everything that a program in the
// manner of PyTorch needs.
//
//   #include "troupe/troupe.h"
//
//   void Run(troupe::Rank& rank) {
//     troupe::Var x = rank.Full({1}, rank.number());
//     troupe::AllReduce(x);
//     rank.Print("the sum is %g\n", x.item());
//   }
//   int main() { return troupe::ExitCode(troupe::Spawn(Run, /*ranks=*/4)); }
//
// docs/coming_from_pytorch.md has PyTorch's calls beside these.

#ifndef TROUPE_TROUPE_H_
#define TROUPE_TROUPE_H_

#include "nn/autograd/create.h"
#include "nn/autograd/var.h"
#include "nn/autograd/var_math.h"
#include "nn/modules/linear.h"
#include "nn/modules/net.h"
#include "nn/modules/sequential.h"
#include "troupe/data_parallel.h"
#include "troupe/ddp.h"
#include "troupe/engine.h"
#include "troupe/group.h"
#include "troupe/join.h"
#include "troupe/loader.h"
#include "troupe/model.h"
#include "troupe/optimizer.h"
#include "troupe/pipeline_parallel.h"
#include "troupe/plateau.h"
#include "troupe/profiler.h"
#include "troupe/program.h"
#include "troupe/rank.h"
#include "troupe/state.h"

#endif  // TROUPE_TROUPE_H_
