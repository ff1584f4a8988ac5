"""The memory that a plugin shares with the host: slots of one size, each for one batch."""
import mmap


class Ring:
    def __init__(self, fd, slots, slot_size):
        self.slots, self.slot_size = slots, slot_size
        self.memory = mmap.mmap(fd, slots * slot_size)
        self._registered = False
        self.synchronize = None  # waits for the GPU, once an array of it was made

    def on_gpu(self, cupy, array):
        """A CuPy array over a NumPy array of this memory, which is registered with the driver at the first call."""
        runtime = cupy.cuda.runtime
        if not self._registered:
            runtime.hostRegister(_address(self.memory), len(self.memory), 2)  # cudaHostRegisterMapped
            self._registered, self.synchronize = True, runtime.deviceSynchronize
        # With unified addresses, which 64-bit Linux has, the address is the same on the GPU.
        memory = cupy.cuda.UnownedMemory(array.ctypes.data, array.nbytes, self.memory, 0)
        return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))


def _address(memory):
    import numpy as np
    return np.frombuffer(memory, np.uint8).ctypes.data
