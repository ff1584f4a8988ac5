// Package synthesizetest makes a bundle that speaks, for tests. Its graphs compute what a test can compute as well:
//
//   - voice: the mean of the clip. speaker: its largest magnitude, and its norm.
//   - The model's keys are the voice, the tokens, and for each code the code plus its position. The target is the sum
//     of the keys modulo 7, or 7 if there are more than 40 keys. The logit of a code is minus the square of its
//     distance to the target. The latent has two numbers: the target plus the sum of the parameters stop_head.weight
//     and stop_head.bias, and the number of keys.
//   - A latent has 4 samples: a quarter of the first number of the latent before and of that after it, half of its own,
//     and 0.01 of its second number, times 0.1, times the first number of the speaker, times a pattern: 1/12, 2/12, ...
//     of 12 samples.
//
// testdata/make_graphs.py writes the graphs.
package synthesizetest

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed testdata/*.onnx testdata/*.safetensors
var graphs embed.FS

// Stop is the code that ends a text.
const Stop = 7

type object = map[string]any

func tensor(name, dtype string, shape ...any) object {
	return object{"name": name, "dtype": dtype, "shape": shape}
}

func entry(name, kind string, inputs, outputs []object, more object) object {
	e := object{"name": name, "kind": kind, "file": name + ".onnx", "inputs": inputs, "outputs": outputs}
	for key, value := range more {
		e[key] = value
	}
	return e
}

// inference returns the entries of the graphs.
func inference() []object {
	wave := []object{tensor("waveform", "f32", "B", "T_wav"), tensor("waveform_lengths", "i32", "B")}
	mel, voice := tensor("conditioning_mel", "f32", "B", "T_cond", 1), tensor("voice", "f32", "B", 1, 1)
	keys, speaker := tensor("keys", "f32", "B", "T_next"), tensor("speaker", "f32", "B", 2)
	logits, latent := tensor("logits", "f32", "B", 8), tensor("latent", "f32", "B", 2)
	fed := tensor("keys", "f32", "B", "T_next")
	fed["feeds"] = "past_keys"
	return []object{
		entry("conditioning_mel", "stage", wave, []object{mel, tensor("conditioning_lengths", "i32", "B")},
			object{"sample_rate": 22050}),
		entry("speaker", "stage", wave[:1], []object{speaker}, object{"sample_rate": 22050}),
		entry("conditioning", "decode", []object{mel}, []object{voice}, nil),
		entry("prefill", "decode",
			[]object{voice, tensor("tokens", "i32", "B", "T_text"), tensor("token_lengths", "i32", "B")},
			[]object{logits, latent, keys}, nil),
		entry("step", "decode", []object{tensor("code", "i32", "B"), tensor("position", "i32", "B"), tensor("past_keys",
			"f32", "B", "T_past")},
			[]object{logits, latent, fed}, nil),
		entry("vocoder", "vocoder", []object{tensor("latents", "f32", "B", "T_latent", 2), speaker},
			[]object{tensor("waveform", "f32", "B", "T_wav")},
			object{"sample_rate": 24000, "weights": "vocoder.safetensors"}),
	}
}

// synthesis returns the entry of that name.
func synthesis() object {
	return object{
		"longest":   60,
		"reference": object{"speaker": 2.0, "voice": 3.0, "chunk": 0.5, "least": 0.2},
		"codes": object{
			"stop": Stop, "prompt": []int{1}, "vocoder": object{"context": 1, "latents": 3, "samples": 12},
			"sampling": object{"temperature": 0.75, "top_k": 5, "top_p": 0.85, "repetition_penalty": 1},
		},
	}
}

// Write makes the bundle in a folder that does not exist: the bundle base with the graphs, and with the tokenizer of
// that file, which has a tag for each language.
func Write(folder, base, tokenizer string) error {
	if err := os.CopyFS(folder, os.DirFS(base)); err != nil {
		return err
	}
	index := filepath.Join(folder, "bundle.json")
	text, err := os.ReadFile(index)
	if err != nil {
		return err
	}
	var bundle object
	if err := json.Unmarshal(text, &bundle); err != nil {
		return fmt.Errorf("%s: %w", index, err)
	}
	files := bundle["files"].(object)
	add := func(name string, data []byte) error {
		sum := sha256.Sum256(data)
		files[name] = hex.EncodeToString(sum[:])
		return os.WriteFile(filepath.Join(folder, name), data, 0o666)
	}
	of, err := os.ReadFile(tokenizer)
	if err != nil {
		return err
	}
	if err := add("tokenizer.json", of); err != nil {
		return err
	}
	list, err := graphs.ReadDir("testdata")
	if err != nil {
		return err
	}
	for _, file := range list {
		data, err := graphs.ReadFile("testdata/" + file.Name())
		if err != nil {
			return err
		}
		if err := add(file.Name(), data); err != nil {
			return err
		}
	}
	bundle["inference"], bundle["synthesis"] = inference(), synthesis()
	bundle["tokenizer"] = object{"file": "tokenizer.json", "prefix": "[{language}]"}
	if text, err = json.Marshal(bundle); err != nil {
		return err
	}
	return os.WriteFile(index, text, 0o666)
}
