// Package newplugin implements the command `plugins new`: it writes a folder with a plugin that works, for an author
// to change. The folder has the SDK in it, so it can be built without a checkout of this repository.
package newplugin
