// A trainable tensor as a module declares it: name, shape and initialiser
// first, memory later, when the plan has decided where it lives.
//
//   Parameter& w = Declare("weight", {out, in}, Initializer::Uniform(bound));
//   w.value;    // meta until ParameterArena binds it, then a view of the arena
//
// One thread at a time: the rank's compute strand.

#ifndef NN_AUTOGRAD_PARAMETER_H_
#define NN_AUTOGRAD_PARAMETER_H_

#include <cstdint>
#include <string>

#include "nn/tensor/tensor.h"

namespace troupe::nn {

// How a parameter is first filled. Draws are keyed by (seed, full name,
// element), so they depend on neither order nor rank.
struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal, kIntegers };
  Kind kind = Kind::kConstant;
  double a = 0;  // constant: value; uniform, integers: low; normal: mean
  double b = 0;  // uniform, integers: high; normal: standard deviation

  static Initializer Constant(double value) {
    return {Kind::kConstant, value, 0};
  }
  static Initializer Uniform(double bound) {
    return {Kind::kUniform, -bound, bound};
  }
  // Every integer of [low, high] alike: for tests in exact arithmetic.
  static Initializer Integers(int low, int high) {
    return {Kind::kIntegers, static_cast<double>(low),
            static_cast<double>(high)};
  }
  static Initializer Normal(double mean, double stddev) {
    return {Kind::kNormal, mean, stddev};
  }
};

struct Parameter {
  std::string name;  // "0.weight": the module's path and its own name
  Shape shape;
  DType dtype = DType::kF32;
  Initializer init;
  // False: frozen. Set it before an arena is made, in the module's constructor
  // say: only then do optimizers leave the value alone (parameter_arena.h).
  bool requires_grad = true;
  // True: the forward that the job was planned from did not use it, so it is
  // saved and not trained. Context::Use() refuses it where there is a tape.
  bool unused = false;

  Tensor value;
  // Of the sum of losses so far this step. May be undefined while there is none
  // (ParameterArena::ReleaseGrads).
  Tensor grad;
  // False at the start of a step: the first gradient overwrites, later ones
  // add. So no pass over memory is spent on zeros.
  bool grad_written = false;
  // Place in the rank's list of parameters; -1 until an arena binds it.
  int index = -1;

  // The leaf of this parameter on the tape that used it last (tape.h).
  TapeRef leaf;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_PARAMETER_H_
