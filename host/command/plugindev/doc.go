// Package plugindev repeats what the author of a plugin does after each change of its sources: build the plugin, start
// it, send a clip through it, and look at what it has made of the clip.
package plugindev
