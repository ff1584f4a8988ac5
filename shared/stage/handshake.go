package stage

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// The values that both processes must agree on before they can communicate. docs/plugin-protocol.md specifies each of
// them.
const (
	// Protocol is the version of this protocol: the second field of the handshake line, and "protocol" in plugin.json.
	Protocol = 1
	// PluginName is the name under which the host dispenses the stage service.
	PluginName = "stage"
	// RingFD and LifelineFD are the file descriptors that a plugin process inherits.
	RingFD     = 3
	LifelineFD = 4
	// KeySize is the length of a row key in bytes.
	KeySize = 16
	// MaxMessage is the largest gRPC message in bytes, in both directions. Messages never contain tensors, but
	// configurations may be long.
	MaxMessage = 64 << 20
)

// Handshake is the magic cookie and the version of go-plugin's handshake. The cookie is not a secret. It only prevents
// a start by hand.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  Protocol,
	MagicCookieKey:   "XTTS_HOST_PLUGIN",
	MagicCookieValue: "9c1f6c0e5d7a4b61",
}

// PluginSet is the argument of plugin.NewClient in a host. Dispensing PluginName then returns a stagepb.StageClient.
func PluginSet() plugin.PluginSet {
	return plugin.PluginSet{PluginName: &grpcPlugin{}}
}

// grpcPlugin connects go-plugin to the stage service. server is nil in the host.
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
