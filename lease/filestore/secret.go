package filestore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// secretName is the name of the directory's secret file.
const secretName = "secret"

// Secret returns the secrets in the file "secret" of a directory, in the form of
// [randflake.ParseKeyring]. If the file does not exist, Secret creates it, and the directory, but
// not its parent. Several processes may do so at once: all of them get the same secret.
func Secret(ctx context.Context, dir string) (*randflake.Keyring, error) {
	o, err := newObjects(dir)
	if err != nil {
		return nil, err
	}
	return o.secret(ctx)
}

func (o *objects) secret(ctx context.Context) (*randflake.Keyring, error) {
	k, err := locked(ctx, o, o.create, func(d *directory) (*randflake.Keyring, error) {
		text, err := d.root.ReadFile(secretName)
		if errors.Is(err, fs.ErrNotExist) {
			text, err = d.draw()
		}
		if err != nil {
			return nil, err
		}
		k, err := randflake.ParseKeyring(string(text))
		if err != nil {
			return nil, &lease.Error{Err: err, Fix: "correct that line of the file"}
		}
		return k, d.disk.syncName(d.root, secretName)
	})
	if err != nil {
		return nil, fmt.Errorf("filestore: %s: %w", filepath.Join(o.path, secretName), err)
	}
	return k, nil
}

// draw creates the secret file. It has its content when it gets its name, and it replaces no other
// one, even one that an operator puts there.
func (d *directory) draw() (text []byte, err error) {
	var secret [16]byte
	entropy.Read(secret[:])
	text = []byte("# the secret of the lease store in this directory\n" +
		hex.EncodeToString(secret[:]) + "\n")
	if err := d.write(secretName+unfinished, text); err != nil {
		return nil, err
	}
	return text, errors.Join(d.root.Link(secretName+unfinished, secretName),
		d.root.Remove(secretName+unfinished))
}

// write creates a file and syncs its data.
func (d *directory) write(name string, data []byte) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
