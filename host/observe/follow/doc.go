// Package follow reads the folder of a run again and again while the run writes to it, and keeps of it what a page
// shows: curves in a bounded number of bins, what was spoken, clips that cannot be used, the end of the log.
//
//	run := follow.New("runs/first")
//	for run.Read(1 << 20) { // until all that is there is read
//	}
//	curves := run.Curves(1, math.MaxInt64, 600)
//
// Brief is for a list of runs. A Run reads only what was appended since the last time, and begins again if a file was
// cut or replaced, as a resumed run does. No link in the folder is followed. It writes nothing, takes no lock and needs
// bounded memory, whatever the folder has.
package follow
