// The runtime's errors: names, texts, and the last error of a thread.

#include <cuda_runtime_api.h>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

// Returns the name of any error of the header; texts exist for those that the
// emulation returns or that a test may request.
const char* ErrorName(cudaError_t error) {
  switch (error) {
#define NAME(error) \
  case error:       \
    return #error;
    NAME(cudaSuccess)
    NAME(cudaErrorInvalidValue)
    NAME(cudaErrorMemoryAllocation)
    NAME(cudaErrorInitializationError)
    NAME(cudaErrorCudartUnloading)
    NAME(cudaErrorProfilerDisabled)
    NAME(cudaErrorProfilerNotInitialized)
    NAME(cudaErrorProfilerAlreadyStarted)
    NAME(cudaErrorProfilerAlreadyStopped)
    NAME(cudaErrorInvalidConfiguration)
    NAME(cudaErrorInvalidPitchValue)
    NAME(cudaErrorInvalidSymbol)
    NAME(cudaErrorInvalidHostPointer)
    NAME(cudaErrorInvalidDevicePointer)
    NAME(cudaErrorInvalidTexture)
    NAME(cudaErrorInvalidTextureBinding)
    NAME(cudaErrorInvalidChannelDescriptor)
    NAME(cudaErrorInvalidMemcpyDirection)
    NAME(cudaErrorAddressOfConstant)
    NAME(cudaErrorTextureFetchFailed)
    NAME(cudaErrorTextureNotBound)
    NAME(cudaErrorSynchronizationError)
    NAME(cudaErrorInvalidFilterSetting)
    NAME(cudaErrorInvalidNormSetting)
    NAME(cudaErrorMixedDeviceExecution)
    NAME(cudaErrorNotYetImplemented)
    NAME(cudaErrorMemoryValueTooLarge)
    NAME(cudaErrorStubLibrary)
    NAME(cudaErrorInsufficientDriver)
    NAME(cudaErrorCallRequiresNewerDriver)
    NAME(cudaErrorInvalidSurface)
    NAME(cudaErrorDuplicateVariableName)
    NAME(cudaErrorDuplicateTextureName)
    NAME(cudaErrorDuplicateSurfaceName)
    NAME(cudaErrorDevicesUnavailable)
    NAME(cudaErrorIncompatibleDriverContext)
    NAME(cudaErrorMissingConfiguration)
    NAME(cudaErrorPriorLaunchFailure)
    NAME(cudaErrorLaunchMaxDepthExceeded)
    NAME(cudaErrorLaunchFileScopedTex)
    NAME(cudaErrorLaunchFileScopedSurf)
    NAME(cudaErrorSyncDepthExceeded)
    NAME(cudaErrorLaunchPendingCountExceeded)
    NAME(cudaErrorInvalidDeviceFunction)
    NAME(cudaErrorNoDevice)
    NAME(cudaErrorInvalidDevice)
    NAME(cudaErrorDeviceNotLicensed)
    NAME(cudaErrorSoftwareValidityNotEstablished)
    NAME(cudaErrorStartupFailure)
    NAME(cudaErrorInvalidKernelImage)
    NAME(cudaErrorDeviceUninitialized)
    NAME(cudaErrorMapBufferObjectFailed)
    NAME(cudaErrorUnmapBufferObjectFailed)
    NAME(cudaErrorArrayIsMapped)
    NAME(cudaErrorAlreadyMapped)
    NAME(cudaErrorNoKernelImageForDevice)
    NAME(cudaErrorAlreadyAcquired)
    NAME(cudaErrorNotMapped)
    NAME(cudaErrorNotMappedAsArray)
    NAME(cudaErrorNotMappedAsPointer)
    NAME(cudaErrorECCUncorrectable)
    NAME(cudaErrorUnsupportedLimit)
    NAME(cudaErrorDeviceAlreadyInUse)
    NAME(cudaErrorPeerAccessUnsupported)
    NAME(cudaErrorInvalidPtx)
    NAME(cudaErrorInvalidGraphicsContext)
    NAME(cudaErrorNvlinkUncorrectable)
    NAME(cudaErrorJitCompilerNotFound)
    NAME(cudaErrorUnsupportedPtxVersion)
    NAME(cudaErrorJitCompilationDisabled)
    NAME(cudaErrorUnsupportedExecAffinity)
    NAME(cudaErrorUnsupportedDevSideSync)
    NAME(cudaErrorContained)
    NAME(cudaErrorInvalidSource)
    NAME(cudaErrorFileNotFound)
    NAME(cudaErrorSharedObjectSymbolNotFound)
    NAME(cudaErrorSharedObjectInitFailed)
    NAME(cudaErrorOperatingSystem)
    NAME(cudaErrorInvalidResourceHandle)
    NAME(cudaErrorIllegalState)
    NAME(cudaErrorLossyQuery)
    NAME(cudaErrorSymbolNotFound)
    NAME(cudaErrorNotReady)
    NAME(cudaErrorIllegalAddress)
    NAME(cudaErrorLaunchOutOfResources)
    NAME(cudaErrorLaunchTimeout)
    NAME(cudaErrorLaunchIncompatibleTexturing)
    NAME(cudaErrorPeerAccessAlreadyEnabled)
    NAME(cudaErrorPeerAccessNotEnabled)
    NAME(cudaErrorSetOnActiveProcess)
    NAME(cudaErrorContextIsDestroyed)
    NAME(cudaErrorAssert)
    NAME(cudaErrorTooManyPeers)
    NAME(cudaErrorHostMemoryAlreadyRegistered)
    NAME(cudaErrorHostMemoryNotRegistered)
    NAME(cudaErrorHardwareStackError)
    NAME(cudaErrorIllegalInstruction)
    NAME(cudaErrorMisalignedAddress)
    NAME(cudaErrorInvalidAddressSpace)
    NAME(cudaErrorInvalidPc)
    NAME(cudaErrorLaunchFailure)
    NAME(cudaErrorCooperativeLaunchTooLarge)
    NAME(cudaErrorTensorMemoryLeak)
    NAME(cudaErrorNotPermitted)
    NAME(cudaErrorNotSupported)
    NAME(cudaErrorSystemNotReady)
    NAME(cudaErrorSystemDriverMismatch)
    NAME(cudaErrorCompatNotSupportedOnDevice)
    NAME(cudaErrorMpsConnectionFailed)
    NAME(cudaErrorMpsRpcFailure)
    NAME(cudaErrorMpsServerNotReady)
    NAME(cudaErrorMpsMaxClientsReached)
    NAME(cudaErrorMpsMaxConnectionsReached)
    NAME(cudaErrorMpsClientTerminated)
    NAME(cudaErrorCdpNotSupported)
    NAME(cudaErrorCdpVersionMismatch)
    NAME(cudaErrorStreamCaptureUnsupported)
    NAME(cudaErrorStreamCaptureInvalidated)
    NAME(cudaErrorStreamCaptureMerge)
    NAME(cudaErrorStreamCaptureUnmatched)
    NAME(cudaErrorStreamCaptureUnjoined)
    NAME(cudaErrorStreamCaptureIsolation)
    NAME(cudaErrorStreamCaptureImplicit)
    NAME(cudaErrorCapturedEvent)
    NAME(cudaErrorStreamCaptureWrongThread)
    NAME(cudaErrorTimeout)
    NAME(cudaErrorGraphExecUpdateFailure)
    NAME(cudaErrorExternalDevice)
    NAME(cudaErrorInvalidClusterSize)
    NAME(cudaErrorFunctionNotLoaded)
    NAME(cudaErrorInvalidResourceType)
    NAME(cudaErrorInvalidResourceConfiguration)
    NAME(cudaErrorUnknown)
#undef NAME
    default:
      return "unrecognized error code";
  }
}

const char* ErrorText(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection:
      return "invalid copy direction for memcpy";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorECCUncorrectable:
      return "uncorrectable ECC error encountered";
    case cudaErrorPeerAccessUnsupported:
      return "peer access is not supported between these two devices";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorIllegalState:
      return "the operation cannot be performed in the present state";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchTimeout:
      return "the launch timed out and was terminated";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "peer access is already enabled";
    case cudaErrorPeerAccessNotEnabled:
      return "peer access has not been enabled";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "part or all of the requested memory range is already mapped";
    case cudaErrorHostMemoryNotRegistered:
      return "pointer does not correspond to a registered memory region";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotPermitted:
      return "operation not permitted";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureMerge:
      return "operation would result in a merge of separate capture sequences";
    case cudaErrorStreamCaptureUnmatched:
      return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a "
             "capturing blocking stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a "
             "capturing stream";
    case cudaErrorStreamCaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from "
             "another thread";
    default:
      return ErrorName(error);
  }
}

// Returns the last error. A broken device's error stays, even after a call that
// clears.
cudaError_t LastError(bool clear) {
  const WorldLock lock;
  HostThread& thread = ThisThread();
  const bool has_device = !TheWorld().devices.empty();
  if (has_device && CurrentDevice().broken != cudaSuccess) {
    return CurrentDevice().broken;
  }
  const cudaError_t error = thread.last_error;
  if (clear) thread.last_error = cudaSuccess;
  return error;
}

}  // namespace
}  // namespace emulated_cuda

extern "C" {

cudaError_t cudaGetLastError() {
  return emulated_cuda::LastError(/*clear=*/true);
}
cudaError_t cudaPeekAtLastError() {
  return emulated_cuda::LastError(/*clear=*/false);
}
const char* cudaGetErrorName(cudaError_t error) {
  return emulated_cuda::ErrorName(error);
}
const char* cudaGetErrorString(cudaError_t error) {
  return emulated_cuda::ErrorText(error);
}

}  // extern "C"
