package dashboard

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/wav"
)

const (
	// mostWords bounds a text to speak, in bytes, and mostSpeech what is spoken of it. patience is the longest time for
	// that.
	mostWords  = 2000
	mostSpeech = 64 << 20
	patience   = 10 * time.Minute
	// mostVoice bounds a recording of the voice that a page sends, in bytes, and sending the time for it.
	mostVoice = 10 << 20
	sending   = time.Minute
	// mostKept is the number of the last sounds that are kept.
	mostKept = 8
	// nice is the priority of what speaks: whatever trains on this machine comes first.
	nice = 19
)

// speaker speaks with the program's own synthesize, one text at a time, in a process of its own. The process reads a
// checkpoint, on the CPU and with the lowest priority, and ends with this one.
type speaker struct {
	program string

	busy sync.Mutex // held while a text is spoken

	mu     sync.Mutex // guards what follows
	spoken []speech   // the last ones
	count  int64
}

// speech is what was spoken.
type speech struct {
	id   int64
	run  *run
	data []byte // a WAV file
}

// wait returns when nothing speaks any more.
func (s *speaker) wait() {
	s.busy.Lock()
	defer s.busy.Unlock()
}

// order is a request to speak.
type order struct {
	Text       string `json:"text"`
	Language   string `json:"language"`
	Checkpoint string `json:"checkpoint"`
	Voice      string `json:"voice"`     // a recording in the run folder, "" for none
	Recording  []byte `json:"recording"` // one of the reader instead, as a file of any kind
}

var errBusy = errors.New("another text is being spoken")

// speak answers with the number of the speech, or with what the program says against it.
func (s *Server) speak(w http.ResponseWriter, q *http.Request, r *run) {
	if s.speaker.program == "" {
		http.Error(w, "this page does not speak", http.StatusNotFound)
		return
	}
	if !s.speaker.busy.TryLock() { // before the recording needs memory
		http.Error(w, errBusy.Error(), http.StatusConflict)
		return
	}
	defer s.speaker.busy.Unlock()
	answer := http.NewResponseController(w)
	answer.SetReadDeadline(time.Now().Add(sending))
	var o order
	dec := json.NewDecoder(http.MaxBytesReader(w, q.Body, 16<<10+mostVoice*4/3))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil || !utf8.ValidString(o.Text) {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	answer.SetReadDeadline(time.Time{})
	if err := o.check(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer.SetWriteDeadline(time.Now().Add(patience + limit))
	ctx, cancel := context.WithTimeout(q.Context(), patience)
	defer cancel()
	began := time.Now()
	id, seconds, err := s.speaker.speak(ctx, r, &o)
	if err != nil {
		http.Error(w, visible.Short(err.Error(), 2000), http.StatusUnprocessableEntity)
		return
	}
	send(w, map[string]any{"id": id, "seconds": seconds, "took_s": time.Since(began).Seconds()})
}

// check refuses what no page of this server asks for.
func (o *order) check() error {
	switch {
	case strings.TrimSpace(o.Text) == "":
		return errors.New("the text is empty")
	case len(o.Text) > mostWords:
		return fmt.Errorf("the text has more than %d bytes", mostWords)
	case !rundir.IsCheckpoint(o.Checkpoint):
		return errors.New("there is no such checkpoint")
	case strings.HasPrefix(o.Language, "-") || len(o.Language) > 35:
		return errors.New("there is no such language")
	case o.Voice != "" && (!record.IsSample(o.Voice) || !strings.HasSuffix(o.Voice, ".wav")):
		return errors.New("there is no such voice")
	case o.Voice != "" && len(o.Recording) > 0:
		return errors.New("there are two voices")
	}
	return nil
}

// speak has the program speak. A model that has no languages is asked again without one: the page offers those of the
// texts, and the run folder does not say what the model knows. The caller holds busy.
func (s *speaker) speak(ctx context.Context, r *run, o *order) (id int64, seconds float64, err error) {
	data, err := s.start(ctx, r, o)
	if err != nil && o.Language != "" && strings.Contains(err.Error(), "has no languages") {
		o.Language = ""
		data, err = s.start(ctx, r, o)
	}
	if err != nil {
		return 0, 0, err
	}
	sound, err := audio.New(memoryFile{bytes.NewReader(data)})
	if err != nil {
		return 0, 0, fmt.Errorf("what was spoken is no sound: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.spoken = append(s.spoken, speech{s.count, r, data})
	s.spoken = s.spoken[max(0, len(s.spoken)-mostKept):]
	return s.count, float64(sound.Frames) / float64(sound.SampleRate), nil
}

// start starts the program, and returns the WAV file that it writes.
func (s *speaker) start(ctx context.Context, r *run, o *order) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.program, "synthesize", "--run="+r.Folder()+"@"+o.Checkpoint, "--text-file=-",
		"--out=-", "--device=cpu", fmt.Sprint("--threads=", max(1, runtime.NumCPU()/2)))
	if o.Language != "" {
		cmd.Args = append(cmd.Args, "--language="+o.Language)
	}
	if o.Voice != "" || len(o.Recording) > 0 {
		voice, err := voiceOf(r, o)
		if err != nil {
			return nil, err
		}
		defer voice.Close()
		cmd.ExtraFiles = []*os.File{voice}
		cmd.Args = append(cmd.Args, "--speaker="+voiceFile)
	}
	out := &bounded{most: mostSpeech}
	said := &bounded{most: 16 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(o.Text), out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	runtime.LockOSThread() // the kernel takes the end of this thread for that of the process
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, nice)
	if err := cmd.Wait(); err != nil {
		return nil, refusal(ctx, err, said.Bytes())
	}
	return whole(out.Bytes()), nil
}

// voiceOf copies the recording of an order, or one of the run folder, which is no link, into memory that another
// process can read.
func voiceOf(r *run, o *order) (_ *os.File, err error) {
	data := o.Recording
	if o.Voice != "" {
		if data, err = files.In(r.Folder(), strings.Split(o.Voice, "/")...).Read(mostSound); err != nil {
			return nil, fmt.Errorf("the voice: %s", reason(err))
		}
	}
	fd, err := unix.MemfdCreate("voice", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the voice: %w", err)
	}
	voice := os.NewFile(uintptr(fd), "voice")
	if _, err := voice.Write(data); err != nil {
		return nil, errors.Join(err, voice.Close())
	}
	return voice, nil
}

// controls are flags of the program by the names that the page has for them.
var controls = strings.NewReplacer("--speaker "+voiceFile, "Voice", "--speaker", "Voice", "--language", "Language",
	"--text-file -", "Text", "--run", "Checkpoint")

// voiceFile is the recording of the voice for the program.
const voiceFile = "/proc/self/fd/3"

// refusal is what a program that has failed says, in the terms of the page: its error, and its hint if that names no
// flag, which a page does not have.
func refusal(ctx context.Context, err error, said []byte) error {
	if ctx.Err() != nil {
		return errors.New("stopped")
	}
	var lines []string
	for line := range strings.Lines(string(said)) {
		line = strings.TrimSpace(line)
		useless := strings.HasPrefix(line, "hint: ") && strings.Contains(line, "--")
		if strings.HasPrefix(line, "error: ") || lines != nil && line != "" && !useless {
			lines = append(lines, controls.Replace(strings.TrimPrefix(line, "error: ")))
		}
	}
	if lines == nil {
		return fmt.Errorf("synthesize: %w", err)
	}
	return errors.New(strings.Join(lines, "; "))
}

// whole is a WAV file whose header does not say how long it is, with a header that does.
func whole(data []byte) []byte {
	if len(data) < wav.HeaderSize || !bytes.HasPrefix(data, []byte("RIFF")) {
		return data
	}
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
	binary.LittleEndian.PutUint32(data[wav.HeaderSize-4:], uint32(len(data)-wav.HeaderSize))
	return data
}

// memoryFile is an audio.Source that is not on a disk.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error               { return nil }
func (memoryFile) Name() string               { return "speech" }
func (memoryFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// samplesOf reads the samples of a WAV file.
func samplesOf(file []byte) ([]float32, int, error) { return decode(memoryFile{bytes.NewReader(file)}) }

// find returns what was spoken with a checkpoint of a run, nil if it is not kept.
func (s *speaker) find(r *run, id int64) (b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.spoken {
		if one.id == id && one.run == r {
			b = one.data
		}
	}
	return b
}

// speech answers with what was spoken, or with the picture of it.
func (s *Server) speech(w http.ResponseWriter, q *http.Request, r *run) {
	name, isPicture := strings.CutSuffix(q.PathValue("id"), ".png")
	data := s.speaker.find(r, number(strings.TrimSuffix(name, ".wav"), 0))
	switch {
	case data == nil:
		http.Error(w, "this speech is not kept any more", http.StatusNotFound)
	case isPicture:
		s.draw(w, q, func() ([]float32, int, error) { return samplesOf(data) })
	default:
		sendFile(w, q, "audio/wav", data)
	}
}

// bounded keeps the first bytes of what is written, and refuses the others.
type bounded struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}

// ReadFrom hides that of the buffer, which has no limit.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{b}, r) }
