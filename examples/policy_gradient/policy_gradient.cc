// A loop of reinforcement learning on two ranks: each plays without gradients,
// and then takes several steps on what it has played (PPO, Schulman et al.
// 2017, arXiv:1707.06347, eq. 7). Walkers in a corridor learn to go right,
// where cells pay more. policy_gradient.py is the same with PyTorch, with 59
// lines, blank lines and comments aside.
//
//   bazel run //examples/policy_gradient

#include <stdexcept>
#include <vector>

#include "troupe/troupe.h"

using namespace troupe;

constexpr int kWalkers = 32, kMoves = 16, kCells = 8, kRounds = 30, kEpochs = 4;

struct Policy : nn::Net {
  nn::Linear& hidden = Add<nn::Linear>("hidden", 1, 16);
  nn::Linear& out = Add<nn::Linear>("out", 16, 2);
  Var Forward(Var x) override { return out(hidden(x).Tanh()).LogSoftmax(); }
};

// The log-probability of the moves that were made: 1 is right, 0 is left.
Var LogProbability(const Var& log_probs, const Var& right) {
  return nn::Where(right, log_probs.Slice(1, 2, 1), log_probs.Slice(0, 1, 1));
}

void Run(Rank& rank) {
  auto policy = rank.Make<Policy>();
  DDP ddp(policy);
  Adam adam(ddp, {/*lr=*/0.01});
  double paid = 0;
  for (int round = 0; round < kRounds; ++round) {
    // Plays.
    std::vector<Var> places, moves, before, returns(kMoves);
    {
      auto no_grad = rank.NoGrad();
      std::vector<Var> rewards;
      Var place = rank.Zeros({kWalkers, 1});
      for (int i = 0; i < kMoves; ++i) {
        Var log_probs = policy(place / kCells);
        Var right =
            rank.Rand({kWalkers, 1}) < nn::Exp(log_probs.Slice(1, 2, 1));
        places.push_back(place / kCells);
        moves.push_back(right);
        before.push_back(LogProbability(log_probs, right));
        place = nn::Clamp(place + 2 * right - 1, 0, kCells - 1);
        rewards.push_back(place / kCells);
      }
      Var later = rank.Zeros({kWalkers, 1});
      for (int i = kMoves - 1; i >= 0; --i) {
        later = returns[i] = rewards[i] + 0.95 * later;
      }
      Var sum = nn::Mean(nn::Cat(rewards, 0)) * kMoves;
      AllReduce(sum, ReduceOp::kAvg);
      paid = sum.item();
    }
    if (round % 10 == 0) rank.Log("round %d: paid %.2f\n", round, paid);
    // Learns.
    Var place = nn::Cat(places, 0), right = nn::Cat(moves, 0);
    Var old = nn::Cat(before, 0), all = nn::Cat(returns, 0);
    Var advantage = all - nn::Mean(all);
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      adam.ZeroGrad();
      Var ratio = nn::Exp(LogProbability(ddp(place), right) - old);
      Var bounded = nn::Where(advantage > 0, nn::Clamp(ratio, 0, 1.2),
                              nn::Clamp(ratio, 0.8));
      (-nn::Mean(bounded * advantage)).Backward();
      adam.Step();
    }
  }
  rank.Log("a walker is paid %.2f\n", paid);
  if (!(paid > 9)) throw std::runtime_error("it has not learnt");
}

int main() { return Main(Run, {/*ranks=*/2}); }
