// A trainable tensor as a module declares it: name, shape and initialiser
// first, memory later, when the plan has decided where it lives.
//
//   Parameter& w = Declare("weight", {out, in}, Initializer::Uniform(bound));
//   w.value;    // meta until ParameterArena binds it, then a view of the arena
//
// Threads: one at a time, the rank's compute strand.

#ifndef NN_AUTOGRAD_PARAMETER_H_
#define NN_AUTOGRAD_PARAMETER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/autograd/initializer.h"
#include "nn/autograd/sharding.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// The gradient of the first of two uses, as a table of tokens and as a head,
// say; backward reaches it last.
struct FirstUse {
  // Whether a tape that uses the parameter twice keeps this gradient by itself:
  // micro-batches add up use by use, so that two stages that hold one use each
  // have the same sums. After the step's last gradient, the code that set it
  // adds both (AddUses() in tape.h).
  bool apart = false;
  Tensor grad;           // undefined until it is written
  bool written = false;  // like Parameter::grad_written
};

struct Parameter {
  std::string name;  // "0.weight": the module's path and its own name
  // Other names of a parameter that several modules share, in their order
  // ("lm_head.weight" if `name` is "wte.weight"). Files are saved under `name`,
  // and may have any of the names when they are read.
  std::vector<std::string> other_names;
  // Whether a cut has parted the modules that share it: each part then keeps
  // both names from the whole model.
  bool keeps_names = false;
  // Shape of the value here, and that of the whole parameter: they differ if it
  // is cut among the ranks along an axis of the mesh, by `sharding`.
  Shape shape;
  Shape global_shape;
  Sharding sharding;
  DType dtype = DType::kF32;
  Initializer init;
  // False: frozen. Set it before an arena is made (in the module's constructor,
  // say): only then do optimizers leave the value alone (parameter_arena.h).
  bool requires_grad = true;
  // Whether the forward that the job was planned from did not use it, so that
  // it is saved and not trained. Context::Use() refuses it if there is a tape.
  bool unused = false;

  Tensor value;
  // Gradient of the sum of this step's losses so far. May be undefined until
  // something is written to it (ParameterArena::ReleaseGrads).
  Tensor grad;
  // False at the start of a step: the first gradient overwrites, later ones
  // add. So no pass over memory writes zeros.
  bool grad_written = false;
  FirstUse first_use;
  // Index in the rank's list of parameters; -1 until an arena binds it.
  int index = -1;

  // The parameter that is used in place of this one, which then has no memory
  // of its own (Module::TieParameter); null: this one is used itself.
  std::shared_ptr<Parameter> tied_to;

  // The leaf of this parameter on the tape that used it last (tape.h).
  TapeRef leaf;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_PARAMETER_H_
