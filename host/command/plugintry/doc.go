// Package plugintry shows what a stage does to one clip: it sends the clip through the stage, and through those before
// it that make its inputs, and writes the result as a sound or as a picture.
package plugintry
