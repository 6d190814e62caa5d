// The transports between the processes of a job. transports.h has a row for
// each.
//
//   options.transport = Transport::kTcp;

#ifndef COMM_CONNECT_TRANSPORT_H_
#define COMM_CONNECT_TRANSPORT_H_

namespace troupe::comm {

enum class Transport {
  kAuto,  // kShm if both are on one host, otherwise kTcp
  kShm,
  kTcp,
  kMpi,  // requires that one mpirun has started all of them (comm/mpi)
};

}  // namespace troupe::comm

#endif  // COMM_CONNECT_TRANSPORT_H_
