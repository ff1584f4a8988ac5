package supervise

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// draws returns what the stage reports of its rows, by row. An error is a violation of the protocol.
func (c *call) draws(r *stagepb.Result) ([]json.RawMessage, error) {
	if len(r.Draws) == 0 {
		return nil, nil
	}
	if !c.msg.Report {
		return nil, fmt.Errorf("it reports draws of row %d, which the host did not ask for", r.Draws[0].GetRow())
	}
	byRow := make([]json.RawMessage, c.rows)
	for _, d := range r.Draws {
		switch {
		case int64(d.GetRow()) >= int64(c.rows):
			return nil, fmt.Errorf("it reports draws of row %d of a batch of %d", d.GetRow(), c.rows)
		case byRow[d.Row] != nil:
			return nil, fmt.Errorf("it reports the draws of row %d twice", d.Row)
		case len(d.Json) > stage.MaxReport:
			return nil, fmt.Errorf("the draws that it reports of row %d have %d bytes, more than %d", d.Row,
				len(d.Json), stage.MaxReport)
		case !json.Valid([]byte(d.Json)) || !strings.HasPrefix(strings.TrimLeft(d.Json, " \t\r\n"), "{"):
			return nil, fmt.Errorf("the draws that it reports of row %d are not a JSON object", d.Row)
		}
		byRow[d.Row] = json.RawMessage(d.Json)
	}
	return byRow, nil
}
