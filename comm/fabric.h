// What a process has of the others: a link to each, over which groups of ranks
// and parcels travel.
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
// which they have no rank. A group whose ranks all live here is a local group
// (local/local_group.h); one that spans processes computes the same bits
// (docs/collectives.md, "Between processes").
//
// A lost peer ends all groups that include it, with a status that names the
// process, its ranks, and what was waited for; and tells `on_lost`. A fabric
// does not recover: make a new one, of the next generation.
//
// Parcels: tensors from process to process, beside all groups, with a header
// that says what they are. Those of one channel and sender come in order.
//
// Driving: with `run_thread` a thread of the fabric moves all that can be
// moved. Without, whoever waits calls Progress(), a communicator's or this
// one's. A process without links has no thread. A local group is driven, and
// aborted, by its ranks alone: no lost peer, nor Abort() here, ends it.
//
// Lifetime: what is given to a fabric stays until its event is ready. Its
// groups may outlive it, aborted.
//
// Threads: MakeGroup, SendParcel, SetParcelHandler, Progress and Abort from
// any; MakeGroup from one at a time.

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
  // This process, and where each global rank lives.
  int process = 0;
  std::vector<int> process_of;
  // By process; null at `process`. Empty: there are no others.
  std::vector<std::unique_ptr<Link>> links;
  // By process, for errors. Empty: "process 1".
  std::vector<std::string> names;
  // Which attempt of the job this is: frames of another are refused.
  std::uint32_t generation = 0;
  // A peer is lost: once for each, in a thread that calls Progress(). Does not
  // block, nor use the fabric.
  std::function<void(int process, const absl::Status& why)> on_lost;

  bool run_thread = true;
  // How long the thread looks for work before it sleeps.
  absl::Duration look_for = absl::Microseconds(50);
  // How long Abort() waits for links to let go of ranges before it closes them.
  absl::Duration abort_grace = absl::Milliseconds(100);
  // The next three are the same in all processes, which see to that.
  //
  // What is not longer goes in one frame with its announcement.
  std::size_t eager_bytes = std::size_t{16} << 10;
  // What is longer is cut into pieces, at most kFrameBytesMax long.
  std::size_t piece_bytes = std::size_t{256} << 10;
  // Whether groups of three processes and more take two steps where one would
  // do (spanning/algorithm.h); none: as measured. For benchmarks.
  std::optional<bool> two_step;

  // Ranges that lie there are read by processes of this host where they lie,
  // once all ranges of a collective do (docs/collectives.md, "By reference");
  // null: all go by links. The bits are the same.
  std::shared_ptr<SharedMemory> shared_memory;
};

struct FabricGroupOptions {
  std::string name;  // for errors
  // Global ranks, each once; a communicator's rank is its place here.
  std::vector<int> ranks;
  // Collectives that one rank may have in flight; a power of two.
  int in_flight_max = 256;
  // Chunks of a group inside the process (LocalGroupOptions).
  std::size_t chunk_bytes = std::size_t{32} << 10;
};

// What comes with a payload.
struct Parcel {
  int from = 0;  // the process that sent it
  std::string header;
  std::size_t bytes = 0;  // of the payload
};

inline constexpr std::size_t kParcelHeaderBytesMax = 512;

// Takes the parcels of a channel. Called in a thread that drives the fabric,
// one call at a time for each sender; does not block, may use the fabric.
class ParcelHandler {
 public:
  virtual ~ParcelHandler() = default;
  // Where the payload goes: a tensor of parcel.bytes bytes, which is what the
  // sender says: to be compared with what it may be. An error ends the link:
  // the sender broke a rule.
  virtual absl::StatusOr<nn::Tensor> Receive(const Parcel& parcel) = 0;
  // All of it is there. Not called for parcels of a peer that is lost.
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
  // Collectives whose elements went by reference (FabricOptions::shared_memory)
  // so far.
  std::int64_t by_reference() const;

  // A communicator for each of options.ranks, null where it lives elsewhere.
  //   kInvalidArgument: names what is wrong. Nothing was made.
  absl::StatusOr<Group> MakeGroup(FabricGroupOptions options);

  // Sends `payload` (which may be undefined: the header alone) once `after` is
  // ready; the event is ready when it may be reused. An `after` that fails
  // aborts the fabric: the peer would wait for ever.
  //   kInvalidArgument: no such process, too long a header, no memory.
  absl::StatusOr<Event> SendParcel(int to, std::uint32_t channel,
                                   absl::string_view header,
                                   const nn::Tensor& payload, Event after);
  // Parcels that came before wait for it. Null: those to come wait. When it
  // returns, no call to the handler before is running; not from within one.
  void SetParcelHandler(std::uint32_t channel,
                        std::shared_ptr<ParcelHandler> handler);

  // Does a bounded piece of the work that is there; false when there is none.
  bool Progress();

  // Ends all work of the groups that span processes, and all parcels, here and
  // on the peers. The first status counts.
  void Abort(absl::Status status);

 private:
  explicit Fabric(FabricOptions options);

  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::comm

#endif  // COMM_FABRIC_H_
