package prometheus

import "github.com/xtts-host/xtts-host/host/base/address"

// Flag names the address.
var Flag = address.Flag{Name: "--metrics", Example: "127.0.0.1:9464"}
