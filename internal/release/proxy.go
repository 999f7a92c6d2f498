package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// serve writes the modules for users into a folder that GOPROXY can point to.
func (t *tree) serve(ctx context.Context, folder, version string) error {
	for _, m := range t.released() {
		if err := t.serveModule(ctx, folder, m, version); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

func (t *tree) serveModule(ctx context.Context, folder string, m mod, version string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	folder = filepath.Join(folder, escaped, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	goMod, err := t.at(m, version)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339)),
		version + ".mod":  string(goMod),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	files, err := t.files(ctx, m, goMod)
	if err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	err = zip.Create(archive, module.Version{Path: m.path, Version: version}, files)
	return errors.Join(err, archive.Close())
}

// files returns the files of a module's release: those that git tracks or would add, and the
// repository's license.
func (t *tree) files(ctx context.Context, m mod, goMod []byte) (files []zip.File, err error) {
	names, err := command(ctx, filepath.Join(t.dir, m.dir), nil,
		"git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ".")
	if err != nil {
		return nil, err
	}
	license := false
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		on := filepath.Join(t.dir, m.dir, name)
		if _, err := os.Lstat(on); errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		f := file{path: name, disk: on}
		if name == "go.mod" {
			f.data = goMod
		}
		license = license || name == "LICENSE"
		files = append(files, f)
	}
	if !license {
		files = append(files, file{path: "LICENSE", disk: filepath.Join(t.dir, "LICENSE")})
	}
	return files, nil
}

// file is a file on disk, with other contents if data is set.
type file struct {
	path, disk string
	data       []byte
}

func (f file) Path() string                { return f.path }
func (f file) Lstat() (os.FileInfo, error) { return os.Lstat(f.disk) }

func (f file) Open() (io.ReadCloser, error) {
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data)), nil
	}
	return os.Open(f.disk)
}
