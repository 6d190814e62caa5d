// By what the processes of a job exchange tensors.
//
//   options.transport = Transport::kTcp;

#ifndef COMM_CONNECT_TRANSPORT_H_
#define COMM_CONNECT_TRANSPORT_H_

namespace troupe::comm {

enum class Transport {
  kAuto,  // kShm where both are on one host, else kTcp
  kShm,
  kTcp,
  kMpi,  // of the mpirun that has started all of them (comm/mpi)
};

}  // namespace troupe::comm

#endif  // COMM_CONNECT_TRANSPORT_H_
