// Package layer3 decodes frames of MPEG audio layer III into mono float32 samples: MPEG-1 and MPEG-2 (ISO/IEC 11172-3
// and 13818-3), with intensity stereo, and MPEG-2.5, the extension to 8,000, 11,025 and 12,000 Hz that encoders and
// decoders share.
//
// Package mp3 finds the frames and their main data; this package knows neither files nor tags. The channels are
// averaged between filter bank and synthesis, which is linear: a stereo frame costs one synthesis. Frames may be
// damaged: every loop ends at the end of the data, and no value is used as an index before it is checked.
//
//	var d layer3.Decoder
//	d.Reset()
//	err := d.Decode(samples, frame) // for each frame of a recording
package layer3
