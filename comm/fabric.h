// This process's connections to the other processes of a job: one link to each,
// which carries groups of ranks and parcels.
//
//   FabricOptions options;
//   options.process = 0;
//   options.process_of = {0, 0, 1, 1};         // ranks 2 and 3 live elsewhere
//   options.links = std::move(links);          // null for this process
//   options.names = {"process 0 (host a, pid 17)",
//                    "process 1 (host b, pid 4711)"};
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Fabric> fabric,
//                           Fabric::Make(std::move(options)));
//   TROUPE_ASSIGN_OR_RETURN(Group dp, fabric->MakeGroup({"dp", {0, 2}}));
//   dp[0]->RunInline(AllReduce(ReduceOp::kSum, gradients), timeout);
//   // dp[1] is null: rank 2 lives elsewhere
//
// Groups: all processes make the same ones in the same order, also those in
// which they have no rank; a group with a key of its own is made by its
// members' processes alone, in any order. A group whose ranks all live in one
// process is a local group (local/local_group.h); one that spans processes
// computes the same bits (docs/collectives.md, "Between processes").
//
// A lost peer ends all groups that include it, with a status that names the
// process, its ranks, and what was waited for; `on_lost` is called. A fabric
// cannot be used again after that: make a new one, of the next generation.
//
// Parcels are tensors sent from process to process, independently of groups,
// with a header that describes them. Those of one channel and sender arrive in
// order.
//
// Driving: with `run_thread` a thread of the fabric moves all data. Without it,
// a thread that waits calls Progress() of a communicator or of the fabric. A
// process without links has no thread. A local group is driven, and aborted, by
// its ranks alone: neither a lost peer nor Fabric::Abort() ends it.
//
// Lifetime: a tensor passed to a fabric stays alive until its event is ready.
// Groups may outlive their fabric, aborted.
//
// Threads: MakeGroup, SendParcel, SetParcelHandler, Progress and Abort may be
// called from any thread; MakeGroup by one at a time.

#ifndef COMM_FABRIC_H_
#define COMM_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "comm/communicator.h"
#include "comm/link.h"
#include "comm/local/local_group.h"
#include "comm/shm/shared_memory.h"

namespace troupe::comm {

struct FabricOptions {
  // Number of this process, and the process of each global rank.
  int process = 0;
  std::vector<int> process_of;
  // Links, indexed by process; null at `process`. Empty: there are no other
  // processes.
  std::vector<std::unique_ptr<Link>> links;
  // Names for errors, indexed by process. Empty: "process 1", ...
  std::vector<std::string> names;
  // Number of the attempt to run the job: frames of another are refused.
  std::uint32_t generation = 0;
  // Called once for each lost peer, in a thread that calls Progress(). Must not
  // block, nor use the fabric.
  std::function<void(int process, const absl::Status& why)> on_lost;

  bool run_thread = true;
  // Time that the thread looks for work before it sleeps.
  absl::Duration look_for = absl::Microseconds(50);
  // Time that Abort() waits for links to release ranges before it closes them.
  absl::Duration abort_grace = absl::Milliseconds(100);
  // The next three must be equal in all processes, which compare them.
  //
  // Size of payload up to which it travels in one frame with its announcement;
  // none: by link (Link::eager_bytes), and 16 KB for messages and parcels.
  std::optional<std::size_t> eager_bytes;
  // Size of the pieces of a longer payload, at most kFrameBytesMax.
  std::size_t piece_bytes = std::size_t{256} << 10;
  // Whether groups of three or more processes take two steps where one is
  // possible (spanning/algorithm.h); none: chosen by measurements. For
  // benchmarks.
  std::optional<bool> two_step;

  // Memory that other processes of this host have mapped. They read ranges in
  // it directly, if all ranges of a collective lie in it (docs/collectives.md,
  // "By reference"); null: all data travels over links. The bits are the same.
  std::shared_ptr<SharedMemory> shared_memory;
};

struct FabricGroupOptions {
  std::string name;  // for errors
  // Global ranks, each once; a communicator's rank is its index here.
  std::vector<int> ranks;
  // Limit on the collectives that one rank may have in flight; a power of two.
  int in_flight_max = 256;
  // Size of the chunks of a group within one process (LocalGroupOptions).
  std::size_t chunk_bytes = std::size_t{32} << 10;
  // Number below kGroupKeysMax that names the group in all its processes, for
  // groups that are made while a program runs. None: the order names it.
  std::optional<std::uint32_t> key = std::nullopt;
};

inline constexpr std::uint32_t kGroupKeysMax = std::uint32_t{1} << 23;

// Description of a payload.
struct Parcel {
  int from = 0;  // sending process
  std::string header;
  std::size_t bytes = 0;  // size of the payload
};

inline constexpr std::size_t kParcelHeaderBytesMax = 512;

// Receives the parcels of a channel. Called in a thread that drives the fabric,
// one call at a time for each sender; must not block, may use the fabric.
class ParcelHandler {
 public:
  virtual ~ParcelHandler() = default;
  // Returns a tensor of parcel.bytes bytes for the payload. The size is the
  // sender's claim: check it against the expected one. An error ends the link,
  // as the sender broke a rule.
  virtual absl::StatusOr<nn::Tensor> Receive(const Parcel& parcel) = 0;
  // Called when `payload` is complete. Not called for parcels of a lost peer.
  virtual void Complete(const Parcel& parcel, const nn::Tensor& payload) = 0;
};

class Fabric {
 public:
  // kInvalidArgument: names the field that does not fit.
  static absl::StatusOr<std::unique_ptr<Fabric>> Make(FabricOptions options);
  // Aborts everything.
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  int process() const;
  int processes() const;
  // Returns the number of collectives so far whose elements were read by
  // reference (FabricOptions::shared_memory).
  std::int64_t by_reference() const;

  // Returns a communicator for each of options.ranks, null where the rank lives
  // in another process.
  //   kInvalidArgument: names the option that is wrong. Nothing was made.
  //   kAlreadyExists: this process has made a spanning group with this key.
  absl::StatusOr<Group> MakeGroup(FabricGroupOptions options);

  // Sends `payload` (undefined: the header alone) once `after` is ready; the
  // event is ready when it may be reused. An `after` that fails aborts the
  // fabric: the peer would wait for ever.
  //   kInvalidArgument: no such process, too long a header, no memory.
  absl::StatusOr<Event> SendParcel(int to, std::uint32_t channel,
                                   absl::string_view header,
                                   const nn::Tensor& payload, Event after);
  // Sets the handler of a channel; parcels that arrived before are kept for it.
  // Null: later ones are kept. When it returns, no call to the previous handler
  // is running; must not be called from within one.
  void SetParcelHandler(std::uint32_t channel,
                        std::shared_ptr<ParcelHandler> handler);

  // Does a bounded piece of pending work; returns false if there was none.
  bool Progress();

  // Ends all work of the groups that span processes, and all parcels, in this
  // process and on the peers. Only the first status counts.
  void Abort(absl::Status status);

 private:
  explicit Fabric(FabricOptions options);

  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::comm

#endif  // COMM_FABRIC_H_
