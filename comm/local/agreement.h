// Compares what the ranks of a local group have started as one collective.
//
//   const absl::Status agreed = CheckAgreement(ring, rank, seq);
//   if (!agreed.ok()) return agreed;
//
// The last rank to arm sees the slots of all; a rank that has claimed a chunk
// compares again, since ranks that armed before may not have seen their peers.
// Threads: those that have entered the group (group_state.h).

#ifndef COMM_LOCAL_AGREEMENT_H_
#define COMM_LOCAL_AGREEMENT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "comm/local/operation_ring.h"

namespace troupe::comm::internal {

// Returns kFailedPrecondition if a rank's signature differs from that of
// `rank`. All ranks have armed, or a chunk is claimed.
absl::Status CheckAgreement(const OperationRing& ring, int rank,
                            std::uint64_t seq);
// Returns kFailedPrecondition if a rank that has joined collective `seq`
// started another one than `rank` did. Some ranks may not have joined yet.
absl::Status CompareWithJoined(const OperationRing& ring, int rank,
                               std::uint64_t seq);
// Returns kFailedPrecondition if a rank does not expect what another one sends.
// All ranks have armed an all_to_all by counts.
absl::Status CompareCounts(const OperationRing& ring, std::uint64_t seq);

// Returns the error that the ranks started different collectives; `how` names
// two of them.
absl::Status Differs(std::uint64_t seq, absl::string_view how);

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_AGREEMENT_H_
