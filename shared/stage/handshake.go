package stage

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// What both sides of the process boundary must agree on before they can talk. docs/plugin-protocol.md says
// what each value means.
const (
	// Protocol is the application protocol's version: the second field of the handshake line, and "protocol"
	// in plugin.json.
	Protocol = 1
	// PluginName is the name under which the host dispenses the stage service.
	PluginName = "stage"
	// RingFD and LifelineFD are the file descriptors that a plugin process inherits.
	RingFD     = 3
	LifelineFD = 4
	// KeySize is the length of a row key in bytes.
	KeySize = 16
	// MaxMessage bounds one gRPC message in bytes, in both directions. Tensors never travel in messages;
	// configurations may be long.
	MaxMessage = 64 << 20
)

// Handshake is the magic cookie and version of go-plugin's handshake. The cookie is no secret: it only keeps a
// person from starting a plugin by hand.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  Protocol,
	MagicCookieKey:   "XTTS_HOST_PLUGIN",
	MagicCookieValue: "9c1f6c0e5d7a4b61",
}

// PluginSet is what a host gives to plugin.NewClient. Dispensing PluginName then returns a stagepb.StageClient.
func PluginSet() plugin.PluginSet {
	return plugin.PluginSet{PluginName: &grpcPlugin{}}
}

// grpcPlugin joins go-plugin to the stage service: server is set in a plugin process, nil in the host.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server stagepb.StageServer
}

func (p *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	stagepb.RegisterStageServer(s, p.server)
	return nil
}

func (p *grpcPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return stagepb.NewStageClient(c), nil
}
