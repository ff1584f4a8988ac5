// Package pluginstore packs plugins for others, installs what others have packed, and says what has been installed: the
// commands plugins pack, key, index, install, verify and remove. docs/plugins-share.md shows their use.
//
// An archive is checked whole before anything is shown, and shown before anything is written. It is unpacked into a
// folder beside its place and renamed, so that an installation that fails or is interrupted leaves nothing.
package pluginstore
