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
	// FirstProtocol and LastProtocol are the versions of this protocol that this package has on both sides. The second
	// field of the handshake line is the highest that host and plugin have, "protocol" in plugin.json the lowest that
	// the plugin works with. Protocols names them for messages.
	FirstProtocol, LastProtocol = 1, 2
	Protocols                   = "1 and 2"
	// PluginName is the name under which the host dispenses the stage service.
	PluginName = "stage"
	// RingFD and LifelineFD are the file descriptors that a plugin process inherits.
	RingFD     = 3
	LifelineFD = 4
	// KeySize is the length of a row key in bytes.
	KeySize = 16
	// MaxReport is the most that a stage may report of what it drew for a row, in bytes of JSON.
	MaxReport = 64 << 10
	// MaxMessage is the largest gRPC message in bytes, in both directions. Messages never contain tensors, but
	// configurations may be long.
	MaxMessage = 64 << 20
)

// Handshake is the magic cookie and the version of go-plugin's handshake. The cookie is not a secret. It only prevents
// a start by hand.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  FirstProtocol, // of go-plugin's Plugins; VersionedPlugins have their own
	MagicCookieKey:   "XTTS_HOST_PLUGIN",
	MagicCookieValue: "9c1f6c0e5d7a4b61",
}

// PluginSets is VersionedPlugins of plugin.NewClient in a host. Dispensing PluginName then returns a
// stagepb.StageClient.
func PluginSets() map[int]plugin.PluginSet { return sets(nil) }

// sets has the service for each version: all of them have the same methods, and messages with more or fewer fields.
func sets(server stagepb.StageServer) map[int]plugin.PluginSet {
	versions := map[int]plugin.PluginSet{}
	for v := FirstProtocol; v <= LastProtocol; v++ {
		versions[v] = plugin.PluginSet{PluginName: &grpcPlugin{server: server}}
	}
	return versions
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
