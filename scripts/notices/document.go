package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const head = `# Third-party notices

xtts-host is licensed under Apache-2.0 ([LICENSE](LICENSE)). This file lists the work of others that a build contains or
fetches. ` + "`make notices`" + ` writes it, and ` + "`make check`" + ` fails if it does not match the build.

## In the program and the plugins

These Go modules are linked into ` + "`bin/xtts-host`" + ` or a first-party plugin, on x86-64 or arm64, with or without
CUDA. The last line is a library in JavaScript, for the page of runs. The numbers refer to the texts at the end. Some
modules contain C headers of another project; the notices at the top of these headers are among the texts. The sources
of a module are at its path, in the version of the table.

| module | version | license | texts |
|---|---|---|---|
`

const tail = `
The standard library of Go is linked, too, in the version of the toolchain that builds the program. Its license is
BSD-3-Clause by The Go Authors, with a patent grant: the texts of golang.org/x/sys.

## In this repository

| file | from | license |
|---|---|---|
| ` + "`ortgraphs/onnxpb/onnx.proto`" + ` | the ONNX project | Apache-2.0 |
| ` + "`host/data/dataset/sample/sample.zip`" +
	` | recordings made with eSpeak NG 1.51, texts of this project | CC0-1.0 |
| ` + "`host/observe/dashboard/static/uplot.js`, `uplot.css`" + ` | uPlot 1.6.32, of npm, in the program | MIT |
| ` + "`host/observe/dashboard/testdata/axe.min.js`" + ` | axe-core 4.14.1, for tests, in no program | MPL-2.0 |

## Fetched by a build

The repository and ` + "`make build`" +
	` contain none of these files. The scripts fetch them from PyPI, with pinned hashes,
to ` + "`.cache`" + ` on the machine that builds. An archive of a release (` + "`make release`" +
	`) contains one of them:
` + "`lib/libonnxruntime.so`" + `, ONNX Runtime without CUDA, with its license and notices in ` +
	"`licenses/onnxruntime`" + `.
If you pass the others on, for example in a container image, their licenses apply to you. Each wheel contains its
license.

| what | fetched by | license |
|---|---|---|
| ONNX Runtime, with or without CUDA | ` + "`scripts/fetch-ort.sh`, `xtts-host fetch cuda`" +
	` | MIT, with ThirdPartyNotices.txt in the wheel |
| CUDA runtime, cuBLAS, cuRAND, cuFFT, cuDNN, NVRTC | ` + "`xtts-host fetch cuda`" +
	`, those that the machine lacks | NVIDIA's license agreements of CUDA and cuDNN |
| NCCL | ` + "`xtts-host fetch cuda` with several GPUs, `xtts-host fetch nccl`" + ` | BSD-3-Clause, License.txt in the wheel |
| the header ` + "`cuda.h`" + ` | ` + "`scripts/cgo-env.sh`" + `, to compile | NVIDIA's license agreement of CUDA |

NVIDIA's driver, with ` + "`libcuda`" + ` and NVML, belongs to the machine. The Python packages of the exporter
(` + "`scripts/xtts_export/requirements.txt`" + `) and of the tests are no part of a build.

## Texts
`

// document returns the content of the file. A text that several modules share has one number.
func document(modules []*module) []byte {
	var out bytes.Buffer
	out.WriteString(head)
	var all []string
	var from [][]string
	for _, m := range modules {
		var ids, numbers []string
		for _, t := range m.texts {
			if id := kind(t.content); id != "" && !strings.Contains(t.name, "/") && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			n := slices.Index(all, t.content)
			if n < 0 {
				n, all, from = len(all), append(all, t.content), append(from, nil)
			}
			from[n] = append(from[n], m.Path+"/"+t.name)
			numbers = append(numbers, fmt.Sprintf("[%d](#text-%d)", n+1, n+1))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", m.Path, m.Version, strings.Join(ids, ", "),
			strings.Join(numbers, " "))
	}
	out.WriteString(tail)
	for n, content := range all {
		fmt.Fprintf(&out, "\n### Text %d\n\n", n+1)
		for _, f := range from[n] {
			fmt.Fprintf(&out, "- `%s`\n", f)
		}
		fmt.Fprintf(&out, "\n```text\n%s\n```\n", content)
	}
	return out.Bytes()
}
