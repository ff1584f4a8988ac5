package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/plain"
)

// find finds the list of a data set and how it is laid out, and opens it.
func (ix *Index) find(ctx context.Context, cfg Config, path string) (io.Reader, error) {
	asked, err := layout.Parse(cfg.Layout)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", cmp.Or(cfg.LayoutFlag, "--list-layout"), cfg.Layout, err)
	}
	cfg.Progress(filepath.Base(path), 0, 0) // recognising its layout takes time on a slow disk
	at, err := locate(path, cfg.Split, cfg.Before)
	if err != nil {
		return nil, err
	}
	ix.Dir, ix.List = at.dir, at.list
	if at.tree != "" {
		if asked != nil && asked.Name != at.tree {
			return nil, hint.Errorf("leave "+cmp.Or(cfg.LayoutFlag, "--list-layout")+" out, or name a list",
				"the folder has no list, but is laid out as %s", at.tree)
		}
		return ix.openTree(ctx, at.tree, cfg)
	}
	list, err := files.Open(filepath.Join(ix.Dir, ix.List))
	if err != nil {
		return nil, err
	}
	if err = ix.recognise(cfg, list, asked); err != nil {
		list.Close()
		return nil, err
	}
	return list, nil
}

// openTree makes a list from a folder, until ctx ends.
func (ix *Index) openTree(ctx context.Context, tree string, cfg Config) (list io.Reader, err error) {
	list, ix.places, err = listOfTree(tree, ix.Dir, cfg.Split, func(what string, done int) error {
		cfg.Progress(what+" of "+filepath.Base(ix.Dir), done, 0)
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	ix.Dir, ix.List = filepath.Dir(ix.Dir), filepath.Base(ix.Dir)
	ix.take(&layout.Decision{Layout: layout.Layout{Name: tree, Kind: layout.Tree}, Lines: len(ix.places)})
	return list, nil
}

// recognise finds out how a list is laid out.
func (ix *Index) recognise(cfg Config, list io.ReaderAt, asked *layout.Layout) error {
	head := make([]byte, 256)
	n, err := list.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", ix.List, err)
	}
	if err := plain.CheckWide(filepath.Join(ix.Dir, ix.List), head[:n]); err != nil {
		return fmt.Errorf("%s: %w", ix.List, err)
	}
	d, err := layout.Recognise(source(ix.Dir, ix.List, cfg.LayoutFlag), asked)
	before, flag := cfg.Before && asked == nil, cmp.Or(cfg.LayoutFlag, "--list-layout")
	asBefore := "continue as before with " + flag + " " + layout.LastColumn
	if layout.ObjectsName(ix.List) {
		asBefore = "continue as before with " + flag + " jsonl"
	}
	switch {
	case before && err != nil && hint.Of(err) != "": // the list, not the disk
		if _, question := errors.AsType[*layout.Question](err); question {
			asBefore += ", or " + hint.Of(err) + " --allow data"
		}
		return hint.Errorf(asBefore, "%w", err)
	case err != nil:
		return err
	case before && !d.AsBefore:
		return hint.Errorf(asBefore+"; with "+flag+" "+hint.Word(d.String())+" --allow data the texts are other ones",
			"%s: the list is now read as %s, but this run began with a version that took the last column as the text",
			ix.List, d.Describe())
	}
	ix.take(d)
	return nil
}

func (ix *Index) take(d *layout.Decision) {
	ix.layout, ix.Layout, ix.LayoutText, ix.Remarks = d, d.String(), d.Describe(), d.Remarks
}
