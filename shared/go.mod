// What a plugin of an author imports: the SDK, the ring, the manifests, what computes features and what reads
// recordings. It needs no cgo.
module github.com/xtts-host/xtts-host/shared

go 1.26.0

require (
	github.com/hajimehoshi/go-mp3 v0.3.4
	github.com/hashicorp/go-hclog v1.6.3
	github.com/hashicorp/go-plugin v1.8.0
	github.com/jfreymuth/vorbis v1.0.2
	github.com/pion/opus v0.1.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/zaf/g711 v1.4.0
	golang.org/x/sys v0.49.0
	golang.org/x/text v0.43.0
	gonum.org/v1/gonum v0.17.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/fatih/color v1.13.0 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/mattn/go-colorable v0.1.12 // indirect
	github.com/mattn/go-isatty v0.0.17 // indirect
	github.com/oklog/run v1.1.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)
