package ort

import (
	"fmt"
	"path/filepath"

	onnx "github.com/yalue/onnxruntime_go"
)

// Optimize writes the graph in the file src to dst as a session would run it, after ONNX Runtime's own optimization. It
// omits layouts for processor-specific vector units, so the file shows what any machine runs.
func Optimize(src, dst string) error {
	if err := optimize(src, dst); err != nil {
		return fmt.Errorf("optimize %s: %w", filepath.Base(src), err)
	}
	return nil
}

func optimize(src, dst string) error {
	if err := retain(sessionKind); err != nil {
		return err
	}
	defer release(sessionKind)
	options, err := onnx.NewSessionOptions()
	if err != nil {
		return reclassify(err)
	}
	defer options.Destroy()
	for _, set := range []func() error{
		func() error { return options.SetGraphOptimizationLevel(onnx.GraphOptimizationLevelEnableExtended) },
		func() error { return options.SetLogSeverityLevel(onnx.LoggingLevelFatal) },
		func() error { return options.SetOptimizedModelFilePath(dst) },
	} {
		if err := set(); err != nil {
			return reclassify(err)
		}
	}
	session, err := onnx.NewDynamicAdvancedSession(src, nil, nil, options)
	if err != nil {
		return reclassify(err)
	}
	return reclassify(session.Destroy())
}
