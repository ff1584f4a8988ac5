// Package stagepb contains the generated code of stage.proto, the control plane between the host and a plugin process.
// docs/plugin-protocol.md is its specification; scripts/gen-proto.sh regenerates it.
package stagepb
