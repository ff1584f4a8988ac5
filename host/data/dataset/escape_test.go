package dataset

import (
	"context"
	"path/filepath"
	"testing"
)

// TestIDsStayBelow: no id names a recording outside of its folder, whatever has the id and whether the recording is
// there. A path may, which has an ending or is in a column of paths.
func TestIDsStayBelow(t *testing.T) {
	const anywhere = "does not name a file under "
	const refused, refusedTree = anywhere + "wavs", anywhere + "the folder of the data set"
	for _, c := range []struct{ name, file, text, err string }{
		{"table", "metadata.csv", "../private|hello there\n", `metadata.csv:1: id "../private" ` + refused},
		{
			"table of other recordings", "metadata.csv", "good|hello there\n../private|hello there\n",
			`metadata.csv:2: id "../private" ` + refused,
		},
		{
			"table without the recording", "metadata.csv", "../nothing|hello there\n",
			`metadata.csv:1: id "../nothing" ` + refused,
		},
		{"absolute id", "metadata.csv", "/nothing|hello there\n", `metadata.csv:1: id "/nothing" ` + refused},
		{
			"m-ailabs", "by_book/female/anna/a_book/metadata.csv",
			"good|hello|hello\n../../../../../../private|hello|hello\n",
			`by_book/female/anna/a_book/metadata.csv:2: id "by_book/female/anna/a_book/../../../../../../private" ` +
				refusedTree,
		},
		{"m-ailabs within", "by_book/mix/a_book/metadata.csv", "x/../good|hello|hello\n", refusedTree},
		{"m-ailabs absolute", "by_book/mix/a_book/metadata.csv", "/private|hello|hello\n", refusedTree},
		{"libritts", "84/7/84_7.trans.tsv", "84_7_1\thello\thello\n../../../private\thello\thello\n",
			`84/7/84_7.trans.tsv:2: id "84/7/../../../private" ` + refusedTree},
		{"libritts within", "84/7/84_7.trans.tsv", "./84_7_1\thello\thello\n", refusedTree},
		{
			"librispeech", "84/7/84-7.trans.txt", "../../../private HELLO\n",
			`84/7/84-7.trans.txt:1: id "84/7/../../../private" ` + refusedTree,
		},
		{"librispeech with a backslash", "84/7/84-7.trans.txt", "a\\b HELLO\n", "has a backslash"},
		{"vctk", "txt/p225/p225\\1.txt", "hello", "has a backslash"},
	} {
		t.Run(c.name, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "data")
			recording := wavFile(8000, 1, ramp(1, 1000))
			write(t, filepath.Join(above, "private.wav"), recording)
			write(t, filepath.Join(dir, "private.wav"), recording)
			write(t, filepath.Join(dir, "wavs/good.wav"), recording)
			write(t, filepath.Join(dir, c.file), []byte(c.text))
			_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
			contains(t, err, c.err)
		})
	}
	above := t.TempDir()
	write(t, filepath.Join(above, "private.wav"), wavFile(8000, 1, ramp(1, 1000)))
	write(t, filepath.Join(above, "data/metadata.csv"), []byte("../private.wav|hello there\n"))
	ix := open(t, Config{Dir: filepath.Join(above, "data"), SampleRate: 8000})
	if len(ix.Rows) != 1 || ix.Rows[0].ID != "../private.wav" {
		t.Errorf("a path: %+v", ix.Rows)
	}
}
