package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/xtts-host/xtts-host/gpu"
)

var distances = map[nvml.GpuTopologyLevel]gpu.Distance{
	nvml.TOPOLOGY_INTERNAL: gpu.SameBoard, nvml.TOPOLOGY_SINGLE: gpu.OneSwitch,
	nvml.TOPOLOGY_MULTIPLE: gpu.ManySwitches, nvml.TOPOLOGY_HOSTBRIDGE: gpu.HostBridge,
	nvml.TOPOLOGY_NODE: gpu.SameNode, nvml.TOPOLOGY_SYSTEM: gpu.CrossNode,
}

func (i *inventory) Link(a, b string) (gpu.Link, error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	x, err := i.handle(a)
	if err != nil {
		return gpu.Link{}, err
	}
	y, err := i.handle(b)
	if err != nil {
		return gpu.Link{}, err
	}
	if a == b {
		return gpu.Link{}, fmt.Errorf("link of GPU %s with itself", a)
	}
	level, ret := x.GetTopologyCommonAncestor(y)
	if err := failed("topology of "+a+" and "+b, ret); err != nil {
		return gpu.Link{}, err
	}
	distance, ok := distances[level]
	if !ok {
		distance = gpu.CrossNode // an unknown level is the farthest
	}
	l := gpu.Link{Distance: distance, Peer: peer(x, y, nvml.P2P_CAPS_INDEX_READ) && peer(x, y,
		nvml.P2P_CAPS_INDEX_WRITE)}
	if peer(x, y, nvml.P2P_CAPS_INDEX_NVLINK) {
		l.NVLinks = nvlinks(x, y)
	}
	return l, nil
}

// peer queries one capability between two GPUs. If the driver does not know, the answer is false.
func peer(x, y nvml.Device, capability nvml.GpuP2PCapsIndex) bool {
	status, ret := x.GetP2PStatus(y, capability)
	return ret == nvml.SUCCESS && status == nvml.P2P_STATUS_OK
}

// nvlinks counts the NVLink connections between two GPUs that are known to be connected by NVLink: the active links of
// x that end at y or, with an NVSwitch, all its active links.
func nvlinks(x, y nvml.Device) int {
	target, ret := y.GetPciInfo()
	direct, active := 0, 0
	for link := range nvml.NVLINK_MAX_LINKS {
		state, linkRet := x.GetNvLinkState(link)
		if linkRet != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		active++
		remote, remoteRet := x.GetNvLinkRemotePciInfo(link)
		if ret == nvml.SUCCESS && remoteRet == nvml.SUCCESS && remote.Domain == target.Domain &&
			remote.Bus == target.Bus && remote.Device == target.Device {
			direct++
		}
	}
	if direct > 0 {
		return direct
	}
	return max(1, active)
}
