# wrong-kernel: a wrong kernel of the fused graph is found at the start, and the results are right
wrong-kernel() { gotest ./host/train 'TestFusion$'; }

# refused-program: a program that the compiler or the driver refuses leaves only its regions plain, with the compiler's message
refused-program() {
  gotest ./gpu/nvrtc TestRefused
  gotest ./ortgraphs/fused TestTrainingGraphs
}

# lost-gpu: a fault of the GPU during the proof names the fused graph and --fuse off
lost-gpu() { gotest ./host/train TestProofLosesTheGPU; }

# fresh-weights: the proof sees the gradients where weights are zero, changes no weight, and names the results that prove nothing
fresh-weights() { gotest ./host/train 'TestProofOfFreshWeights|TestUnproved'; }

# emulation: the emulation of CUDA refuses accesses that are not aligned, and copies arrive when they are waited for
emulation() { gotest ./ortgraphs/fuse/cudac/cudactest 'TestFaults|TestContracted'; }

# other-values: sums of the gradient are not taken from the result if their values are others, and a program is the same again
other-values() { gotest ./ortgraphs/fuse 'TestAttentionKernels|TestGenerateChangesNothing'; }

# open-sessions: sessions that the fused graph does not need are closed, also after a failure
open-sessions() { gotest ./host/train TestUnopened; }

# not-fused: a graph that cannot be fused is trained as exported, and a warning says why
not-fused() {
  gotest ./host/train TestUnfused
  gotest ./host/run/session TestFusionIsReported
}

# capture-of-fused: CUDA graphs are judged by the graph that runs: fusing removes parts of different sizes
capture-of-fused() { gotest ./ortgraphs/fused TestCapturable; }

# fuse-on-cpu: --fuse is a setting, and on the CPU a warning says that it has no effect
fuse-on-cpu() {
  clips data 12 1
  train --train-data data --max-steps 2 --run-dir run --fuse on 2>output
  says '--fuse on has no effect on the CPU'
}
