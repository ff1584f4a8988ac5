// Package record keeps what a run leaves for people: the files of its folder and their names, and its log.
package record
