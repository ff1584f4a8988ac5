// Package featurecache keeps what stages compute from clips in a folder, for later epochs and for other runs.
//
//	cache, err := featurecache.Open(featurecache.Config{Dir: dir, Flag: "--feature-cache", Limit: 16 << 30, Failed: warn})
//	...
//	data, found := cache.Get(key, nil)
//	if found != featurecache.Hit {
//		data = compute()
//		cache.Put(key, data)
//	}
//
// The caller makes the key of everything that the data depend on. An entry is a file whose name is its key. It ends
// with a checksum of key and data, so a file that was cut off, changed or renamed is not used. Several processes may
// use a folder at the same time: a file gets its name when it is complete. No file is synced: after a crash of the
// machine, the checksum finds what is missing.
//
// The folder has a bound. Every Cache removes the entries that were not used for the longest time, in the background,
// each time that it has written a twentieth of the bound. It removes nothing but entries. A folder that was opened with
// Config.Prepare keeps all of them: when it has reached the bound, nothing is added to it.
package featurecache
