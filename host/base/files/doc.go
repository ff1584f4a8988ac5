// Package files is the one place through which the program opens, writes, renames, removes and locks files.
//
// A path that a person named may lead anywhere: [Open], [Read] and [Stat] follow its links, and refuse what is not a
// regular file, because a pipe blocks and a device may have no end. A [Path] names what the program itself keeps, such
// as a file of a run folder. The folder at its root may be reached through links, but nothing below it is followed: a
// run folder may come from someone else, and a link in it could lead to any file of the user.
//
//	data, err := files.Read(name, 1<<20)           // a file that the user named
//	run := files.In(dir)                           // a run folder
//	f, err := run.Join("metrics.jsonl").Append()   // never through a link, and never into another folder's file
//	err = run.Join("report.json").Replace(data)    // the old content, or the new one
//
// Reads wait for a disk that fails for a while, as long as the process has a [Patience] ([WaitWith]). Writes leave that
// to their callers, which know what has to be written again.
package files
