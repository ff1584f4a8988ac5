// Package archive is the format in which a plugin is passed on: one file with the plugin's folder and an index of it.
// It writes archives, reads those of strangers, and compares an installed folder with the archive that it came from.
// It opens no network connection, starts no program, and knows nothing of signatures.
//
// An archive is a tar file compressed by gzip. Its first file is index.json ([Index]); the files of the plugin follow
// below plugin/, sorted by name. The same files make the same bytes: there are no times, no owners, and only the modes
// 0644 and 0755.
//
//	index, err := archive.Write(out, "plugins/room-echo")     // what plugin.sum lists
//	content, err := archive.Read(in, size, nil)               // checks all of it, and writes nothing
//	err := archive.Unpack(in, size, content.Sum, folder)      // into a new folder
//
// Read refuses what Write does not make: other kinds of entries, names that lead elsewhere, files that the index does
// not have or has otherwise, and more data than the limits below.
package archive
